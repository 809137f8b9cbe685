// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

func condition(kind string, status metav1.ConditionStatus, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Message: message}
}

func binding(member string, conditions ...metav1.Condition) *placementv1beta1.ClusterResourceBinding {
	b := &placementv1beta1.ClusterResourceBinding{}
	b.Spec.TargetCluster, b.Spec.ResourceSnapshotName, b.Status.Conditions = member, "shop-3-snapshot", conditions
	return b
}

func placement() *placementv1beta1.ClusterResourcePlacement {
	p := &placementv1beta1.ClusterResourcePlacement{}
	p.Status.Conditions = []metav1.Condition{condition("ClusterResourcePlacementScheduled", metav1.ConditionTrue, "")}
	p.Status.SelectedResources = make([]placementv1beta1.ResourceIdentifier, 2)
	return p
}

func drawn(t *testing.T, n Node) string {
	t.Helper()
	var b strings.Builder
	if err := n.Draw(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestOf_StateOfEachNode(t *testing.T) {
	available := condition(placementv1beta1.ConditionAvailable, metav1.ConditionTrue, "")
	refused := condition(placementv1beta1.ConditionApplied, metav1.ConditionFalse, "exceeded quota\nx")
	work := placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Name: "shop-work"}}
	work.Status.Conditions = []metav1.Condition{refused}
	work.Status.ManifestConditions = []placementv1beta1.ManifestCondition{
		{Identifier: placementv1beta1.WorkResourceIdentifier{Kind: "Namespace", Name: "shop"}, Conditions: []metav1.Condition{available}},
		{Identifier: placementv1beta1.WorkResourceIdentifier{Kind: "ConfigMap", Namespace: "shop", Name: "settings"}, Conditions: []metav1.Condition{refused}},
	}
	drifted := binding("c", available)
	drifted.Status.DriftedPlacements = make([]placementv1beta1.DriftedResourcePlacement, 1)
	root := Of("shop", placement(), []placementv1beta1.BindingObject{binding("b", refused), drifted, binding("a", available)}, map[string][]placementv1beta1.Work{"b": {work}})
	want := `placement shop: 1 of 3 members ready
├─ member a: available (snapshot shop-3-snapshot)
│  └─ 2 resources: available
├─ member b: not applied (snapshot shop-3-snapshot)
│  └─ work shop-work: not applied
│     ├─ Namespace shop: available
│     └─ ConfigMap shop/settings: not applied (exceeded quota x)
└─ member c: drifted (snapshot shop-3-snapshot)
   └─ 2 resources: drifted
`
	if diff := cmp.Diff(want, drawn(t, root)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want = `placement shop: 1 of 3 members ready
├─ member b: not applied (snapshot shop-3-snapshot)
│  └─ work shop-work: not applied
│     └─ ConfigMap shop/settings: not applied (exceeded quota x)
└─ member c: drifted (snapshot shop-3-snapshot)
   └─ 2 resources: drifted
`
	if diff := cmp.Diff(want, drawn(t, root.NotReady())); diff != "" {
		t.Errorf("not ready (-want +got):\n%s", diff)
	}
}

func TestNode_JSON(t *testing.T) {
	refused := condition(placementv1beta1.ConditionApplied, metav1.ConditionFalse, "exceeded quota")
	work := placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Name: "shop-work"}}
	work.Status.Conditions = []metav1.Condition{refused}
	work.Status.ManifestConditions = []placementv1beta1.ManifestCondition{{Identifier: placementv1beta1.WorkResourceIdentifier{Kind: "ConfigMap", Namespace: "shop", Name: "settings"}, Conditions: []metav1.Condition{refused}}}
	text, err := json.Marshal(Of("shop", placement(), []placementv1beta1.BindingObject{binding("b", refused)}, map[string][]placementv1beta1.Work{"b": {work}}))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"kind":"placement","name":"shop","state":"0 of 1 members ready","ready":false,"children":[` +
		`{"kind":"member","name":"b","state":"not applied","ready":false,"hint":"snapshot shop-3-snapshot","children":[` +
		`{"kind":"work","name":"shop-work","state":"not applied","ready":false,"children":[` +
		`{"kind":"ConfigMap","name":"shop/settings","state":"not applied","ready":false,"hint":"exceeded quota"}]}]}]}`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func BenchmarkOf_ThousandMembers(b *testing.B) {
	var bindings []placementv1beta1.BindingObject
	for i := range 1000 {
		bindings = append(bindings, binding(fmt.Sprintf("member-%d", i), condition(placementv1beta1.ConditionAvailable, metav1.ConditionTrue, "")))
	}
	p := placement()
	for b.Loop() {
		if Of("shop", p, bindings, nil).Ready != true {
			b.Fatal("not ready")
		}
	}
}
