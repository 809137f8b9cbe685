// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	configv1alpha1 "fleetgate.io/fleetgate/pkg/apis/config/v1alpha1"
	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
	"fleetgate.io/fleetgate/pkg/kube/configfile"
)

// Proxy configures authorization, audit and limits of requests to members.
type Proxy struct {
	*configv1alpha1.ProxyConfiguration
}

func defaultProxy() configv1alpha1.ProxyConfiguration {
	return configv1alpha1.ProxyConfiguration{
		AuditRequests:            true,
		MaxRequestsPerMember:     clustergateway.DefaultMaxInFlight,
		MaxRequestsPerUser:       clustergateway.DefaultMaxInFlightPerUser,
		MaxLongRequestsPerMember: clustergateway.DefaultMaxLong,
		MaxLongRequestsPerUser:   clustergateway.DefaultMaxLongPerUser,
	}
}

// Validate returns every error at once.
func (o *Proxy) Validate() field.ErrorList {
	at := field.NewPath("proxy")
	limits := map[string]int{
		"maxRequestsPerMember": o.MaxRequestsPerMember, "maxRequestsPerUser": o.MaxRequestsPerUser,
		"maxLongRequestsPerMember": o.MaxLongRequestsPerMember, "maxLongRequestsPerUser": o.MaxLongRequestsPerUser,
	}
	var all field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		if limits[name] < 1 {
			all = append(all, field.Invalid(at.Child(name), limits[name], "must be above zero"))
		}
	}
	for _, group := range slices.Sorted(maps.Keys(o.MemberGroups)) {
		if reason := clustergateway.RefuseMemberGroup(o.MemberGroups[group]); reason != "" {
			all = append(all, field.Invalid(at.Child("memberGroups").Key(group), o.MemberGroups[group], reason))
		}
	}
	return append(all, configfile.Together(at.Child("auditPolicyFile"), "set both or neither of auditPolicyFile and auditLogPath", o.AuditPolicyFile != "", o.AuditLogPath != "")...)
}
