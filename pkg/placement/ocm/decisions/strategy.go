// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package decisions

import (
	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
	"fleetgate.io/fleetgate/pkg/placement/ocm/rolloutstrategy"
)

// Strategy translates a rollout strategy. The error says what is invalid.
func Strategy(rollout clusterv1alpha1.RolloutStrategy) (rolloutstrategy.Strategy, error) {
	how := rolloutstrategy.Strategy{Type: rolloutstrategy.Type(rollout.Type)}
	var config clusterv1alpha1.RolloutConfig
	var mandatory []clusterv1alpha1.MandatoryDecisionGroup
	switch {
	case rollout.Type == clusterv1alpha1.RolloutProgressive && rollout.Progressive != nil:
		config, mandatory = rollout.Progressive.RolloutConfig, rollout.Progressive.MandatoryDecisionGroups.MandatoryDecisionGroups
		how.MaxConcurrency = rollout.Progressive.MaxConcurrency
	case rollout.Type == clusterv1alpha1.RolloutProgressivePerGroup && rollout.ProgressivePerGroup != nil:
		config, mandatory = rollout.ProgressivePerGroup.RolloutConfig, rollout.ProgressivePerGroup.MandatoryDecisionGroups.MandatoryDecisionGroups
	case (rollout.Type == clusterv1alpha1.RolloutAll || rollout.Type == "") && rollout.All != nil:
		config = rollout.All.RolloutConfig
	}
	deadline, err := rolloutstrategy.ParseDeadline(config.ProgressDeadline)
	if err != nil {
		return rolloutstrategy.Strategy{}, err
	}
	how.Deadline, how.MaxFailures, how.MinSuccessTime = deadline, config.MaxFailures, config.MinSuccessTime.Duration
	for _, group := range mandatory {
		how.Mandatory = append(how.Mandatory, rolloutstrategy.GroupName{Name: group.GroupName, Index: int(group.GroupIndex)})
	}
	return how, nil
}
