// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
)

// Proxy configures authorization, audit and limits of requests to members.
type Proxy struct {
	AuthorizeMemberRequests bool
	AuditRequests           bool
	AuditPolicyFile         string
	AuditLogPath            string
	MaxInFlightPerMember    int
	MaxInFlightPerUser      int
	MaxLongPerMember        int
	MaxLongPerUser          int
}

func newProxy() Proxy {
	return Proxy{
		AuditRequests:        true,
		MaxInFlightPerMember: clustergateway.DefaultMaxInFlight,
		MaxInFlightPerUser:   clustergateway.DefaultMaxInFlightPerUser,
		MaxLongPerMember:     clustergateway.DefaultMaxLong,
		MaxLongPerUser:       clustergateway.DefaultMaxLongPerUser,
	}
}

// AddFlags binds the options to a command line.
func (o *Proxy) AddFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.AuthorizeMemberRequests, "authorize-member-requests", o.AuthorizeMemberRequests, "Also authorize each request to a member on the hub, with the verb, the namespace, the resource (with its group after a dot), API group "+clustergateway.InnerGroup+" and the member as name.")
	// The chart of the previous version sets the previous name. Remove after the next release.
	flags.BoolVar(&o.AuthorizeMemberRequests, "authorize-inner", o.AuthorizeMemberRequests, "Previous name of --authorize-member-requests.")
	flags.Lookup("authorize-inner").Deprecated = "use --authorize-member-requests"
	flags.Lookup("authorize-inner").Hidden = true
	flags.BoolVar(&o.AuditRequests, "audit-requests", o.AuditRequests, "Log one line for each request to a member: user, impersonated user, request, status code, bytes and duration.")
	flags.StringVar(&o.AuditPolicyFile, "audit-policy-file", o.AuditPolicyFile, "Path of the audit policy, in the format of kube-apiserver, for events of the aggregated API. Events are written to --audit-log-path. Events for requests to members have the annotations "+clustergateway.AnnotationMember+", "+clustergateway.AnnotationAs+" and "+clustergateway.AnnotationEnded+".")
	flags.StringVar(&o.AuditLogPath, "audit-log-path", o.AuditLogPath, "Path of the audit log, or - for standard output. The file is rotated at 100 MiB, and ten files are kept.")
	flags.IntVar(&o.MaxInFlightPerMember, "max-requests-per-member", o.MaxInFlightPerMember, "Maximum number of short requests in flight for one member. Further requests get 429.")
	flags.IntVar(&o.MaxInFlightPerUser, "max-requests-per-user", o.MaxInFlightPerUser, "Maximum number of short requests in flight of one user, for all members together. Further requests get 429.")
	flags.IntVar(&o.MaxLongPerMember, "max-long-requests-per-member", o.MaxLongPerMember, "Maximum number of long-running requests (watch, logs -f, exec, port-forward) in flight for one member. Further requests get 429.")
	flags.IntVar(&o.MaxLongPerUser, "max-long-requests-per-user", o.MaxLongPerUser, "Maximum number of long-running requests in flight of one user, for all members together. Further requests get 429.")
}

// Validate returns every error at once.
func (o *Proxy) Validate() []error {
	var all []error
	for flag, limit := range map[string]int{
		"--max-requests-per-member": o.MaxInFlightPerMember, "--max-requests-per-user": o.MaxInFlightPerUser,
		"--max-long-requests-per-member": o.MaxLongPerMember, "--max-long-requests-per-user": o.MaxLongPerUser,
	} {
		if limit < 1 {
			all = append(all, fmt.Errorf("%s %d is not above zero", flag, limit))
		}
	}
	if (o.AuditPolicyFile == "") != (o.AuditLogPath == "") {
		all = append(all, errors.New("--audit-policy-file and --audit-log-path need each other: set both or neither"))
	}
	return all
}
