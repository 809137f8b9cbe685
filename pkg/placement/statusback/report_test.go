// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package statusback

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/snapshot"
)

func TestWanted(t *testing.T) {
	mirror := &placementv1beta1.ReportBackStrategy{Type: placementv1beta1.ReportBackMirror, Destination: placementv1beta1.ReportBackToOriginalResource}
	one := &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickN, NumberOfClusters: new(int32(1))}
	cases := map[string]struct {
		policy   *placementv1beta1.PlacementPolicy
		strategy *placementv1beta1.ReportBackStrategy
		want     bool
	}{
		"one member of several": {one, mirror, true},
		"one named member":      {&placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixed, ClusterNames: []string{"a"}}, mirror, true},
		"two named members":     {&placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixed, ClusterNames: []string{"a", "b"}}, mirror, false},
		"two members":           {&placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickN, NumberOfClusters: new(int32(2))}, mirror, false},
		"all members":           {nil, mirror, false},
		"no reportBackStrategy": {one, nil, false},
		"disabled":              {one, &placementv1beta1.ReportBackStrategy{Type: placementv1beta1.ReportBackDisabled}, false},
		"to the Work only": {one, &placementv1beta1.ReportBackStrategy{
			Type: placementv1beta1.ReportBackMirror, Destination: placementv1beta1.ReportBackToWork}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			spec := &placementv1beta1.PlacementSpec{Policy: c.policy}
			spec.Strategy.ReportBackStrategy = c.strategy
			if got := Wanted(spec); got != c.want {
				t.Errorf("Wanted() = %t, want %t", got, c.want)
			}
		})
	}
}

// manifestCondition is the manifest condition of a Deployment.
func manifestCondition(name, raw string, applied metav1.ConditionStatus) placementv1beta1.ManifestCondition {
	return placementv1beta1.ManifestCondition{
		Identifier: placementv1beta1.WorkResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "secrets", Namespace: "shop", Name: name},
		Conditions: []metav1.Condition{{Type: placementv1beta1.ConditionApplied, Status: applied}},
		BackReportedStatus: &placementv1beta1.BackReportedStatus{
			ObservedStatus: placementv1beta1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(raw)}}},
	}
}

func TestReports_OnlyPlacedResources(t *testing.T) {
	deployment := func(name string) placementv1beta1.ResourceIdentifier {
		return placementv1beta1.ResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: name}
	}
	group := &snapshot.Group{Parts: []snapshot.Part{
		{Resources: []placementv1beta1.ResourceIdentifier{deployment("web"), deployment("idle"), deployment("broken")}},
		{Envelope: &placementv1beta1.EnvelopeIdentifier{Name: "e"}, Resources: []placementv1beta1.ResourceIdentifier{deployment("wrapped")}},
	}}
	work := &placementv1beta1.Work{}
	work.Status.ManifestConditions = []placementv1beta1.ManifestCondition{
		manifestCondition("web", `{"status":{"replicas":2}}`, metav1.ConditionTrue),
		manifestCondition("web", `{"status":{"replicas":3}}`, metav1.ConditionTrue),
		manifestCondition("idle", `{"metadata":{"name":"idle"}}`, metav1.ConditionTrue),
		manifestCondition("broken", `{"status":{"replicas":1}}`, metav1.ConditionFalse),
		manifestCondition("wrapped", `{"status":{"replicas":1}}`, metav1.ConditionTrue),
		manifestCondition("of-somebody-else", `{"status":{"replicas":1}}`, metav1.ConditionTrue),
	}
	found, err := reports(group, []*placementv1beta1.Work{work})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range found {
		got = append(got, fmt.Sprint(r.Resource.Name, " ", r.Status))
	}
	if diff := cmp.Diff([]string{"web map[replicas:2]"}, got); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
}

func TestReports_RejectsStatusThatIsNoObject(t *testing.T) {
	group := &snapshot.Group{Parts: []snapshot.Part{{Resources: []placementv1beta1.ResourceIdentifier{
		{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "web"}}}}}
	work := &placementv1beta1.Work{}
	work.Status.ManifestConditions = []placementv1beta1.ManifestCondition{manifestCondition("web", `{"status":"fine"}`, metav1.ConditionTrue)}
	if found, err := reports(group, []*placementv1beta1.Work{work}); err == nil || len(found) > 0 {
		t.Errorf("reports() = %v, %v", found, err)
	}
}

func TestSame_IgnoresNumberTypes(t *testing.T) {
	if !same(map[string]any{"replicas": int64(2)}, map[string]any{"replicas": float64(2)}) {
		t.Error("2 is not 2")
	}
	if same(map[string]any{"replicas": int64(2)}, map[string]any{"replicas": int64(3)}) {
		t.Error("2 is 3")
	}
	if !same(nil, nil) || same(nil, map[string]any{"replicas": 1}) {
		t.Error("no status equals some status")
	}
}
