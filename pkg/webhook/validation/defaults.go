// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

const (
	defaultLimit                = "25%"
	defaultUnavailablePeriod    = 60
	defaultRevisionHistoryLimit = 10
	defaultMaxSkew              = 1
)

// DefaultPlacement sets the defaults of unset fields that users know: PickAll, a rolling update by
// a quarter with 60 seconds for resources that cannot be watched, client-side apply that always
// applies and takes over, ten revisions.
func DefaultPlacement(spec *placementv1beta1.PlacementSpec) {
	if spec.Policy == nil {
		spec.Policy = &placementv1beta1.PlacementPolicy{}
	}
	defaultPolicy(spec.Policy)
	defaultStrategy(&spec.Strategy)
	orDefault(&spec.RevisionHistoryLimit, defaultRevisionHistoryLimit)
}

func defaultPolicy(policy *placementv1beta1.PlacementPolicy) {
	if policy.PlacementType == "" {
		policy.PlacementType = placementv1beta1.PickAll
	}
	for i := range policy.TopologySpreadConstraints {
		constraint := &policy.TopologySpreadConstraints[i]
		orDefault(&constraint.MaxSkew, defaultMaxSkew)
		if constraint.WhenUnsatisfiable == "" {
			constraint.WhenUnsatisfiable = placementv1beta1.DoNotSchedule
		}
	}
	for i := range policy.Tolerations {
		if policy.Tolerations[i].Operator == "" {
			policy.Tolerations[i].Operator = corev1.TolerationOpEqual
		}
	}
}

func defaultStrategy(strategy *placementv1beta1.RolloutStrategy) {
	if strategy.Type == "" {
		strategy.Type = placementv1beta1.RollingUpdateStrategy
	}
	if strategy.Type == placementv1beta1.RollingUpdateStrategy {
		if strategy.RollingUpdate == nil {
			strategy.RollingUpdate = &placementv1beta1.RollingUpdateConfig{}
		}
		orDefault(&strategy.RollingUpdate.MaxUnavailable, intstr.FromString(defaultLimit))
		orDefault(&strategy.RollingUpdate.MaxSurge, intstr.FromString(defaultLimit))
		orDefault(&strategy.RollingUpdate.UnavailablePeriodSeconds, defaultUnavailablePeriod)
	}
	strategy.ApplyStrategy = ptr.To(strategy.ApplyStrategy.WithDefaults())
}

func orDefault[T any](field **T, value T) {
	if *field == nil {
		*field = ptr.To(value)
	}
}
