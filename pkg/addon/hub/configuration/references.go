// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"cmp"
	"maps"
	"slices"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
)

type (
	kind     = addonv1alpha1.ConfigGroupResource
	referent = addonv1alpha1.ConfigReferent
	version  = addonv1alpha1.ConfigSpecHash
)

// references are configurations by kind, in order and each once.
type references map[kind][]version

// replace replaces the configurations of each kind that occurs.
func (r references) replace(configs []config) references {
	replaced := maps.Clone(r)
	if replaced == nil {
		replaced = references{}
	}
	for _, c := range configs {
		replaced[c.kind] = nil
	}
	for _, c := range configs {
		if !slices.ContainsFunc(replaced[c.kind], func(have version) bool { return have.ConfigReferent == c.ConfigReferent }) {
			replaced[c.kind] = append(replaced[c.kind], c.version)
		}
	}
	return replaced
}

// config is one configuration.
type config struct {
	kind
	version
}

func configsOf(configs []addonv1alpha1.AddOnConfig) []config {
	all := make([]config, 0, len(configs))
	for _, c := range configs {
		all = append(all, config{kind: c.ConfigGroupResource, version: version{ConfigReferent: c.ConfigReferent}})
	}
	return all
}

// sorted are all configurations in the order of their kinds.
func (r references) sorted() []config {
	var all []config
	for _, k := range slices.SortedFunc(maps.Keys(r), func(a, b kind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	}) {
		for _, v := range r[k] {
			all = append(all, config{kind: k, version: v})
		}
	}
	return all
}

// referencesOf are the configurations of an add-on of a cluster: its own ones with the hashes that
// its status has, or those of its Placement.
func referencesOf(addOn *addonv1alpha1.ManagedClusterAddOn, placed references) references {
	own := configsOf(addOn.Spec.Configs)
	for i := range own {
		for _, has := range addOn.Status.ConfigReferences {
			if has.ConfigGroupResource == own[i].kind && has.DesiredConfig != nil && has.DesiredConfig.ConfigReferent == own[i].ConfigReferent {
				own[i].SpecHash = has.DesiredConfig.SpecHash
			}
		}
	}
	return placed.replace(own)
}

// merged are the configReferences of an add-on with other configurations. What is known of one that
// it had before is kept.
func merged(before []addonv1alpha1.ConfigReference, desired references) []addonv1alpha1.ConfigReference {
	var after []addonv1alpha1.ConfigReference
	for _, c := range desired.sorted() {
		reference := addonv1alpha1.ConfigReference{ConfigGroupResource: c.kind, ConfigReferent: c.ConfigReferent}
		for _, had := range before {
			if had.ConfigGroupResource == c.kind && had.DesiredConfig != nil && had.DesiredConfig.ConfigReferent == c.ConfigReferent {
				reference = *had.DeepCopy()
			}
		}
		reference.DesiredConfig = &version{ConfigReferent: c.ConfigReferent, SpecHash: c.SpecHash}
		after = append(after, reference)
	}
	return after
}

// isGiven reports whether the add-on of a cluster has exactly these configurations.
func isGiven(has []addonv1alpha1.ConfigReference, desired references) bool {
	given := make([]config, 0, len(has))
	for _, reference := range has {
		if reference.DesiredConfig == nil {
			return false
		}
		given = append(given, config{kind: reference.ConfigGroupResource, version: *reference.DesiredConfig})
	}
	wanted := desired.sorted()
	return len(given) == len(wanted) && !slices.ContainsFunc(wanted, func(c config) bool { return !slices.Contains(given, c) })
}

// isApplied reports whether the cluster has all configurations that its add-on was given.
func isApplied(has []addonv1alpha1.ConfigReference) bool {
	return !slices.ContainsFunc(has, func(reference addonv1alpha1.ConfigReference) bool {
		return reference.DesiredConfig == nil || reference.LastAppliedConfig == nil || *reference.LastAppliedConfig != *reference.DesiredConfig
	})
}
