// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"

	"k8s.io/apimachinery/pkg/runtime/schema"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/apply/memberwatch"
)

// withDefaults is a strategy without gaps. The defaults are those of the API;
// a Work that was written without them, by hand, gets the same.
func withDefaults(strategy *placementv1beta1.ApplyStrategy) placementv1beta1.ApplyStrategy {
	var s placementv1beta1.ApplyStrategy
	if strategy != nil {
		s = *strategy
	}
	if s.Type == "" {
		s.Type = placementv1beta1.ClientSideApply
	}
	if s.ComparisonOption == "" {
		s.ComparisonOption = placementv1beta1.PartialComparison
	}
	if s.WhenToApply == "" {
		s.WhenToApply = placementv1beta1.ApplyAlways
	}
	if s.WhenToTakeOver == "" {
		s.WhenToTakeOver = placementv1beta1.TakeOverAlways
	}
	return s
}

// deniedRecord is the refusal of all manifests of a Work that the agent may not keep
// a record of: without one nothing would be removed again.
func deniedRecord(err error) *refusal {
	kind := placementv1beta1.GroupVersion.WithKind(appliedWorkKind).GroupKind()
	return &refusal{placementv1beta1.ReasonManifestApplyFailed, explain(err, kind)}
}

// refuseAll refuses the items that are not refused already. None is touched.
func refuseAll(items []item, why *refusal) brought {
	outcomes := make([]outcome, len(items))
	for place, it := range items {
		outcomes[place] = outcome{id: it.id, refused: cmp.Or(it.refused, why)}
	}
	return brought{outcomes: outcomes}
}

// followed lists the objects whose changes matter to a Work: what it applies
// and what it has still to remove.
func followed(items []item, ledger []entry) []memberwatch.Object {
	seen := map[memberwatch.Object]bool{}
	var objects []memberwatch.Object
	add := func(resource schema.GroupVersionResource, id placementv1beta1.WorkResourceIdentifier) {
		object := objectOf(resource, id)
		if resource.Resource != "" && !seen[object] {
			seen[object] = true
			objects = append(objects, object)
		}
	}
	for _, it := range items {
		add(it.resource, it.id)
	}
	for _, e := range ledger {
		add(resourceOf(e), e.WorkResourceIdentifier)
	}
	return objects
}

func objectOf(resource schema.GroupVersionResource, id placementv1beta1.WorkResourceIdentifier) memberwatch.Object {
	return memberwatch.Object{Resource: resource, Namespace: id.Namespace, Name: id.Name}
}
