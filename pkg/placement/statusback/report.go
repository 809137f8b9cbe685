// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package statusback

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/objects"
	"fleetgate.io/fleetgate/pkg/placement/snapshot"
)

// Report is the status of a hub's resource on its member.
type Report struct {
	Resource placementv1beta1.ResourceIdentifier
	Status   map[string]any
}

// Wanted reports whether statuses are copied to the placement's resources: it requests them, and
// selects one member.
func Wanted(spec *placementv1beta1.PlacementSpec) bool {
	strategy := spec.Strategy.ReportBackStrategy
	if strategy == nil || strategy.Type != placementv1beta1.ReportBackMirror || strategy.Destination != placementv1beta1.ReportBackToOriginalResource {
		return false
	}
	members, known := objects.Wanted(spec.Policy)
	return known && members == 1
}

// the is the binding of a placement on one member, or nil while there is another one or it is not
// bound.
func the(bindings []placementv1beta1.BindingObject) placementv1beta1.BindingObject {
	if len(bindings) != 1 || bindings[0].GetDeletionTimestamp() != nil || bindings[0].GetSpec().State != placementv1beta1.BindingBound {
		return nil
	}
	return bindings[0]
}

// reports are the statuses in a binding's Works for the resources of its snapshot, and no others. The
// error names the first unreadable status.
func reports(group *snapshot.Group, works []*placementv1beta1.Work) ([]Report, error) {
	placed := map[placementv1beta1.ResourceIdentifier]bool{}
	for _, part := range group.Parts {
		if part.Envelope != nil {
			continue
		}
		for _, resource := range part.Resources {
			placed[resource] = true
		}
	}
	var all []Report
	for _, w := range works {
		for i := range w.Status.ManifestConditions {
			m := &w.Status.ManifestConditions[i]
			id := placementv1beta1.ResourceIdentifier{
				Group: m.Identifier.Group, Version: m.Identifier.Version, Kind: m.Identifier.Kind, Name: m.Identifier.Name, Namespace: m.Identifier.Namespace,
			}
			if m.BackReportedStatus == nil || !placed[id] || !meta.IsStatusConditionPresentAndEqual(m.Conditions, placementv1beta1.ConditionApplied, metav1.ConditionTrue) {
				continue
			}
			var object struct {
				Status map[string]any `json:"status"`
			}
			if err := json.Unmarshal(m.BackReportedStatus.ObservedStatus.Raw, &object); err != nil {
				return all, fmt.Errorf("the status of %s %q: %w", id.Kind, id.Name, err)
			}
			if object.Status != nil {
				delete(placed, id) // One report for each resource.
				all = append(all, Report{Resource: id, Status: object.Status})
			}
		}
	}
	return all, nil
}
