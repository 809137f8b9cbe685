// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// Readers of placements are not assumed to read Secrets, roles and custom resources.
func TestCompute_ShowsValuesOfKindsThatViewReads(t *testing.T) {
	fields := []placementv1beta1.PatchDetail{{Path: "/a", ValueInHub: "h", ValueInMember: "m"}, {Path: "/b", ValueInMember: "n"}}
	hidden := []placementv1beta1.PatchDetail{{Path: "/a", ValueInHub: redacted, ValueInMember: redacted}, {Path: "/b", ValueInMember: redacted}}
	for _, tc := range []struct {
		group, kind string
		want        []placementv1beta1.PatchDetail
	}{
		{"", "ConfigMap", fields}, {"", "Namespace", fields}, {"apps", "Deployment", fields},
		{"", "Secret", hidden}, {"example.org", "ConfigMap", hidden}, {"rbac.authorization.k8s.io", "Role", hidden}, {"example.org", "Vault", hidden},
	} {
		id := placementv1beta1.ResourceIdentifier{Group: tc.group, Version: "v1", Kind: tc.kind, Name: "x"}
		b := bound("a", append(append([]string(nil), allReady[:3]...), "Applied=False/x")...)
		b.Status.DriftedPlacements = []placementv1beta1.DriftedResourcePlacement{{ResourceIdentifier: id, ObservedDrifts: fields}}
		b.Status.DiffedPlacements = []placementv1beta1.DiffedResourcePlacement{{ResourceIdentifier: id, ObservedDiffs: fields}}
		got := Compute(&Observed{Placement: placementOf(nil), Policy: decided("a"), Snapshot: "p-2-snapshot", Bindings: []placementv1beta1.BindingObject{b}})
		m := got.PlacementStatuses[0]
		if diff := cmp.Diff(tc.want, m.DriftedPlacements[0].ObservedDrifts); diff != "" {
			t.Errorf("drifts of %s.%s (-want +got):\n%s", tc.kind, tc.group, diff)
		}
		if diff := cmp.Diff(tc.want, m.DiffedPlacements[0].ObservedDiffs); diff != "" {
			t.Errorf("differences of %s.%s (-want +got):\n%s", tc.kind, tc.group, diff)
		}
		compares := placementOf(func(p *placementv1beta1.ClusterResourcePlacement) {
			p.Spec.Strategy.ApplyStrategy = &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ReportDiff}
		})
		c := bound("a", append(append([]string(nil), allReady[:3]...), "DiffReported=True/x")...)
		c.Status.DiffedPlacements = b.Status.DiffedPlacements
		got = Compute(&Observed{Placement: compares, Policy: decided("a"), Snapshot: "p-2-snapshot", Bindings: []placementv1beta1.BindingObject{c}})
		if diff := cmp.Diff(tc.want, got.PlacementStatuses[0].DiffedPlacements[0].ObservedDiffs); diff != "" {
			t.Errorf("reported differences of %s.%s (-want +got):\n%s", tc.kind, tc.group, diff)
		}
		if fields[0].ValueInHub != "h" {
			t.Fatalf("%s.%s: the binding was changed", tc.kind, tc.group)
		}
	}
}
