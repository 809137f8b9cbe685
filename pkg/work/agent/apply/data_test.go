// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/engine"
)

func TestRetainsData_UnlessAUserAskedForTheRemoval(t *testing.T) {
	const cause, policy = placementv1beta1.DeletionCauseAnnotation, placementv1beta1.DeletePolicyAnnotation
	cases := map[string]struct {
		annotations map[string]string
		want        bool
	}{
		"a gateway of a previous version":    {nil, true},
		"the placement changed":              {map[string]string{cause: placementv1beta1.DeletionPlacementChanged}, true},
		"a cause that is not known here":     {map[string]string{cause: "Other"}, true},
		"the placement is deleted":           {map[string]string{cause: placementv1beta1.DeletionPlacementDeleted}, false},
		"fewer Works":                        {map[string]string{cause: placementv1beta1.DeletionResourceRemoved}, false},
		"the delete strategy of a placement": {map[string]string{cause: placementv1beta1.DeletionPlacementChanged, policy: placementv1beta1.DeletePolicyDelete}, false},
	}
	for name, tc := range cases {
		if got := retainsData(&metav1.ObjectMeta{Annotations: tc.annotations}); got != tc.want {
			t.Errorf("%s: data is retained: %t", name, got)
		}
	}
}

func TestHasCause_UnlessOnlyTheGatewayMayDeleteTheWork(t *testing.T) {
	const cause, policy = placementv1beta1.DeletionCauseAnnotation, placementv1beta1.DeletePolicyAnnotation
	cases := map[string]struct {
		annotations map[string]string
		want        bool
	}{
		"a Work without a gateway":   {nil, true},
		"no cause":                   {map[string]string{cause: placementv1beta1.DeletionNone}, false},
		"no cause, and a policy":     {map[string]string{cause: placementv1beta1.DeletionNone, policy: placementv1beta1.DeletePolicyAbandon}, true},
		"a cause of a newer gateway": {map[string]string{cause: "Other"}, true},
	}
	for name, tc := range cases {
		if got := hasCause(&metav1.ObjectMeta{Annotations: tc.annotations}); got != tc.want {
			t.Errorf("%s: has a cause: %t", name, got)
		}
	}
}

func TestOriginOf_IsTheSameForAllWorksOfAPlacement(t *testing.T) {
	work := func(name, placement, namespace string) metav1.Object {
		return &metav1.ObjectMeta{UID: "1", Name: name, Labels: map[string]string{
			placementv1beta1.ParentPlacementLabel: placement, placementv1beta1.ParentPlacementNamespaceLabel: namespace}}
	}
	cases := map[string]struct {
		work metav1.Object
		hub  string
		want string
	}{
		"of a ClusterResourcePlacement": {work("p-1", "p", ""), "", "ClusterResourcePlacement p"},
		"of a ResourcePlacement":        {work("p-1", "p", "ns"), "", "ResourcePlacement ns/p"},
		"of another hub":                {work("p-1", "p", ""), "b", "ClusterResourcePlacement p of hub b"},
		"of no placement":               {work("w", "", ""), "", "Work w"},
		"gone from the hub":             {&metav1.ObjectMeta{Name: "w"}, "", ""},
	}
	for name, tc := range cases {
		if got := (Options{HubName: tc.hub}).originOf(tc.work); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// What the Work of a placement left on the member is not taken over when the placement returns.
func TestMayOwn_AllowsReturningObjectsWhateverWhenToTakeOverIs(t *testing.T) {
	never := placementv1beta1.ApplyStrategy{WhenToTakeOver: placementv1beta1.TakeOverNever}
	if refused := mayOwn(engine.Ownership{Returns: true}, never, false, nil); refused != nil {
		t.Error(refused.Message)
	}
	if mayOwn(engine.Ownership{}, never, false, nil) == nil {
		t.Error("any other object is taken over")
	}
}
