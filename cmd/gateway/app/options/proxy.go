// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
)

// Proxy says what is asked, recorded and bounded of requests for members.
type Proxy struct {
	AuthorizeInner       bool
	AuditRequests        bool
	AuditPolicyFile      string
	AuditLogPath         string
	MaxInFlightPerMember int
	MaxInFlightPerUser   int
	MaxLongPerMember     int
	MaxLongPerUser       int
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
	flags.BoolVar(&o.AuthorizeInner, "authorize-inner", o.AuthorizeInner, "Ask the hub about each request on a member too: verb, namespace, resource with its group behind a dot, in group "+clustergateway.InnerGroup+", with the member as name.")
	flags.BoolVar(&o.AuditRequests, "audit-requests", o.AuditRequests, "Write a line into the log for each request for a member: who, as whom, what, code, bytes, duration.")
	flags.StringVar(&o.AuditPolicyFile, "audit-policy-file", o.AuditPolicyFile, "Audit policy, as kube-apiserver takes it, for events of the aggregated API in --audit-log-path; those of requests for members have annotations "+clustergateway.AnnotationMember+", "+clustergateway.AnnotationAs+" and "+clustergateway.AnnotationEnded+".")
	flags.StringVar(&o.AuditLogPath, "audit-log-path", o.AuditLogPath, "File of those events, - for stdout; rotated at 100 MiB, ten are kept.")
	flags.IntVar(&o.MaxInFlightPerMember, "max-requests-per-member", o.MaxInFlightPerMember, "How many short requests for one member may be under way; more get 429.")
	flags.IntVar(&o.MaxInFlightPerUser, "max-requests-per-user", o.MaxInFlightPerUser, "How many short requests of one user may be under way, for all members together; more get 429.")
	flags.IntVar(&o.MaxLongPerMember, "max-long-requests-per-member", o.MaxLongPerMember, "How many requests that last (watches, followed logs, exec, port-forward) for one member may be under way; more get 429.")
	flags.IntVar(&o.MaxLongPerUser, "max-long-requests-per-user", o.MaxLongPerUser, "How many requests that last of one user may be under way, for all members together; more get 429.")
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
		all = append(all, errors.New("--audit-policy-file goes with --audit-log-path, and it with that"))
	}
	return all
}
