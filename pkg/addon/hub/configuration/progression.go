// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"slices"

	"fleetgate.io/fleetgate/pkg/addon/hub/objects"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
)

// desiredReferences sets the configurations in the status of a ClusterManagementAddOn. Hashes, and
// what is known of a rollout, are kept while the configurations of a Placement stay the same.
func desiredReferences(status *addonv1alpha1.ClusterManagementAddOnStatus, addOn *addonv1alpha1.ClusterManagementAddOn) {
	defaults := defaultsOf(addOn.Spec.SupportedConfigs)
	status.DefaultConfigReferences = defaultReferences(defaults, status.DefaultConfigReferences)
	switch {
	case !objects.FollowsPlacements(addOn):
		status.InstallProgressions = nil
	case objects.ManagedByHub(addOn):
		before := status.InstallProgressions
		status.InstallProgressions = nil
		for _, placement := range addOn.Spec.InstallStrategy.Placements {
			status.InstallProgressions = append(status.InstallProgressions, progressionOf(placement, defaults, before))
		}
	}
}

func defaultsOf(supported []addonv1alpha1.ConfigMeta) references {
	defaults := references{}
	for _, supports := range supported {
		if supports.DefaultConfig != nil {
			defaults[supports.ConfigGroupResource] = []version{{ConfigReferent: *supports.DefaultConfig}}
		}
	}
	return defaults
}

// defaultReferences are the defaults with the hashes that they had.
func defaultReferences(defaults references, before []addonv1alpha1.DefaultConfigReference) []addonv1alpha1.DefaultConfigReference {
	var after []addonv1alpha1.DefaultConfigReference
	for _, c := range defaults.sorted() {
		reference := addonv1alpha1.DefaultConfigReference{ConfigGroupResource: c.kind, DesiredConfig: &version{ConfigReferent: c.ConfigReferent}}
		for _, had := range before {
			if had.ConfigGroupResource == c.kind && had.DesiredConfig != nil && had.DesiredConfig.ConfigReferent == c.ConfigReferent {
				reference.DesiredConfig.SpecHash = had.DesiredConfig.SpecHash
			}
		}
		after = append(after, reference)
	}
	return after
}

// progressionOf is the progression of a Placement, with its previous state if it had the same
// configurations.
func progressionOf(placement addonv1alpha1.PlacementStrategy, defaults references, before []addonv1alpha1.InstallProgression) addonv1alpha1.InstallProgression {
	progression := addonv1alpha1.InstallProgression{PlacementRef: placement.PlacementRef}
	for _, c := range defaults.replace(configsOf(placement.Configs)).sorted() {
		progression.ConfigReferences = append(progression.ConfigReferences, addonv1alpha1.InstallConfigReference{
			ConfigGroupResource: c.kind, DesiredConfig: &version{ConfigReferent: c.ConfigReferent},
		})
	}
	i := slices.IndexFunc(before, func(had addonv1alpha1.InstallProgression) bool { return had.PlacementRef == placement.PlacementRef })
	if i < 0 {
		return progression
	}
	same := true
	for n := range progression.ConfigReferences {
		reference := &progression.ConfigReferences[n]
		had := slices.IndexFunc(before[i].ConfigReferences, func(had addonv1alpha1.InstallConfigReference) bool {
			return had.ConfigGroupResource == reference.ConfigGroupResource && had.DesiredConfig != nil &&
				had.DesiredConfig.ConfigReferent == reference.DesiredConfig.ConfigReferent
		})
		if had < 0 {
			same = false
			continue
		}
		*reference = *before[i].ConfigReferences[had].DeepCopy()
	}
	if same {
		progression.Conditions = slices.Clone(before[i].Conditions)
	}
	return progression
}

// placedReferences are the configurations of the clusters of a Placement.
func placedReferences(defaults references, progression addonv1alpha1.InstallProgression) references {
	var configs []config
	for _, reference := range progression.ConfigReferences {
		if reference.DesiredConfig != nil {
			configs = append(configs, config{kind: reference.ConfigGroupResource, version: *reference.DesiredConfig})
		}
	}
	return defaults.replace(configs)
}

// hashedDefaults are the default configurations with their hashes.
func hashedDefaults(status []addonv1alpha1.DefaultConfigReference) references {
	defaults := references{}
	for _, reference := range status {
		if reference.DesiredConfig != nil {
			defaults[reference.ConfigGroupResource] = append(defaults[reference.ConfigGroupResource], *reference.DesiredConfig)
		}
	}
	return defaults
}
