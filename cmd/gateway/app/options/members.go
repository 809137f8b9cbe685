// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	configv1alpha1 "fleetgate.io/fleetgate/pkg/apis/config/v1alpha1"
	multiclusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/multicluster/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/membership"
	"fleetgate.io/fleetgate/pkg/kube/configfile"
)

const (
	minTokenLifetime = 10 * time.Minute
	maxTokenLifetime = 365 * 24 * time.Hour
)

// Members configures the tokens of agents, heartbeats, and the publication of members.
type Members struct {
	*configv1alpha1.MembersConfiguration
}

func defaultMembers() configv1alpha1.MembersConfiguration {
	return configv1alpha1.MembersConfiguration{
		AgentTokenLifetime:    metav1.Duration{Duration: 7 * 24 * time.Hour},
		UnhealthyThreshold:    metav1.Duration{Duration: membership.DefaultSilence},
		ForceDeleteWaitTime:   metav1.Duration{Duration: membership.DefaultForceDeleteWait},
		ArgoCDNamespace:       "argocd",
		ClusterProfileManager: multiclusterv1alpha1.ClusterManager,
	}
}

// Validate returns every error at once.
func (o *Members) Validate() field.ErrorList {
	at := field.NewPath("members")
	all := configfile.Invalid(at.Child("argoCDNamespace"), o.ArgoCDNamespace, validation.IsDNS1123Label(o.ArgoCDNamespace)...)
	if lifetime := o.AgentTokenLifetime.Duration; lifetime < minTokenLifetime || lifetime > maxTokenLifetime {
		all = append(all, field.Invalid(at.Child("agentTokenLifetime"), lifetime.String(), fmt.Sprintf("must be between %s and %s", minTokenLifetime, maxTokenLifetime)))
	}
	for name, given := range map[string]metav1.Duration{"unhealthyThreshold": o.UnhealthyThreshold, "forceDeleteWaitTime": o.ForceDeleteWaitTime} {
		if given.Duration <= 0 {
			all = append(all, field.Invalid(at.Child(name), given.Duration.String(), "must be above zero"))
		}
	}
	return all
}
