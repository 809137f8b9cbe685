// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	"cmp"
	"strings"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// configOf merges the configs that match a manifest. For each of update strategy, feedback rules
// and condition rules, the first config that sets it wins.
func configOf(spec *workv1.ManifestWorkSpec, ref manifest.Ref) workv1.ManifestConfigOption {
	merged := workv1.ManifestConfigOption{}
	if ref.Resource == "" {
		return merged
	}
	for _, config := range spec.ManifestConfigs {
		if !isFor(config.ResourceIdentifier, ref) {
			continue
		}
		if merged.UpdateStrategy == nil {
			merged.UpdateStrategy = config.UpdateStrategy
		}
		if len(merged.FeedbackRules) == 0 {
			merged.FeedbackRules = config.FeedbackRules
		}
		if len(merged.ConditionRules) == 0 {
			merged.ConditionRules = config.ConditionRules
		}
	}
	return merged
}

func isFor(id workv1.ResourceIdentifier, ref manifest.Ref) bool {
	return id.Group == ref.Group && id.Resource == ref.Resource && matches(id.Namespace, ref.Namespace) && matches(id.Name, ref.Name)
}

// matches reports whether text matches a pattern, in which an asterisk stands for any text.
func matches(pattern, text string) bool {
	first, rest, more := strings.Cut(pattern, "*")
	if !more {
		return pattern == text
	}
	text, begins := strings.CutPrefix(text, first)
	if !begins {
		return false
	}
	for {
		part, next, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(text, part)
		}
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text, rest = text[at+len(part):], next
	}
}

// strategyOf returns the update strategy of a config, with defaults.
func strategyOf(config workv1.ManifestConfigOption) workv1.UpdateStrategy {
	strategy := workv1.UpdateStrategy{Type: workv1.UpdateStrategyUpdate}
	if config.UpdateStrategy != nil {
		strategy = *config.UpdateStrategy
	}
	if strategy.ServerSideApply == nil {
		strategy.ServerSideApply = &workv1.ServerSideApplyConfig{}
	}
	return strategy
}

// modeOf converts an update strategy to a Mode; false if this agent does not know the strategy.
func modeOf(strategy workv1.UpdateStrategy) (engine.Mode, bool) {
	switch strategy.Type {
	case workv1.UpdateStrategyUpdate, "":
		return engine.Mode{Method: engine.Replace}, true
	case workv1.UpdateStrategyCreateOnly:
		return engine.Mode{Method: engine.CreateOnly}, true
	case workv1.UpdateStrategyReadOnly:
		return engine.Mode{Method: engine.ReadOnly}, true
	case workv1.UpdateStrategyServerSideApply:
		return engine.Mode{
			Method:      engine.ServerSide,
			Force:       strategy.ServerSideApply.Force,
			Manager:     cmp.Or(strategy.ServerSideApply.FieldManager, workv1.DefaultFieldManager),
			OwnTogether: true,
		}, true
	}
	return engine.Mode{Method: engine.ReadOnly}, false
}

// stays reports whether an object stays on the cluster when it leaves the ManifestWork.
func stays(option *workv1.DeleteOption, ref manifest.Ref) bool {
	if option == nil {
		return false
	}
	switch option.PropagationPolicy {
	case workv1.DeletePropagationOrphan:
		return true
	case workv1.DeletePropagationSelectivelyOrphan:
		if option.SelectivelyOrphan == nil {
			return false
		}
		for _, rule := range option.SelectivelyOrphan.OrphaningRules {
			if rule.Group == ref.Group && rule.Resource == ref.Resource && rule.Namespace == ref.Namespace && rule.Name == ref.Name {
				return true
			}
		}
	}
	return false
}
