// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// items returns the items of the Work's manifests.
func (r *Reconciler) items(work *placementv1beta1.Work, mode engine.Mode) ([]engine.Item, error) {
	raw := make([][]byte, 0, len(work.Spec.Workload.Manifests))
	for _, m := range work.Spec.Workload.Manifests {
		raw = append(raw, m.Raw)
	}
	items, err := r.engine.Plan(work.Name, raw)
	items = engine.WithMode(items, mode)
	if work.Spec.ApplyStrategy != nil {
		for place := range items {
			items[place].Mode.Ignore = ignored(work.Spec.ApplyStrategy.IgnoreFields, items[place].Ref)
		}
	}
	return items, err
}

// ignored are the fields of a manifest that a strategy leaves to the member.
func ignored(rules []placementv1beta1.IgnoreFieldsRule, ref manifest.Ref) []engine.IgnoredFields {
	var fields []engine.IgnoredFields
	for place := range rules {
		if rule := &rules[place]; rule.Matches(ref.Group, ref.Kind, ref.Namespace, ref.Name) {
			fields = append(fields, engine.IgnoredFields{
				Pointers: rule.JSONPointers, UntilChanged: rule.Condition == placementv1beta1.IgnoreOnSpokeChange,
			})
		}
	}
	return fields
}

// modeOf converts a strategy with defaults to a Mode.
func modeOf(strategy placementv1beta1.ApplyStrategy, back *placementv1beta1.ReportBackStrategy) engine.Mode {
	method := map[placementv1beta1.ApplyStrategyType]engine.Method{
		placementv1beta1.ClientSideApply: engine.Merge,
		placementv1beta1.ServerSideApply: engine.ServerSide,
		placementv1beta1.ReportDiff:      engine.Compare,
	}
	return engine.Mode{
		Method:        method[strategy.Type],
		Force:         strategy.ServerSideApplyConfig != nil && strategy.ServerSideApplyConfig.ForceConflicts,
		Whole:         strategy.ComparisonOption == placementv1beta1.FullComparison,
		KeepDrifts:    strategy.WhenToApply == placementv1beta1.ApplyIfNotDrifted,
		TakeOverEqual: strategy.WhenToTakeOver == placementv1beta1.TakeOverIfNoDiff,
		OwnTogether:   strategy.AllowCoOwnership,
		Mirror:        mirrors(back),
	}
}

func mirrors(back *placementv1beta1.ReportBackStrategy) bool {
	return back != nil && back.Type == placementv1beta1.ReportBackMirror
}
