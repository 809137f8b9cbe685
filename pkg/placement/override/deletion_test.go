// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package override

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// deletesIn is a rule that deletes in a region; "" means on every member.
func deletesIn(region string) placementv1beta1.OverrideRule {
	rule := placementv1beta1.OverrideRule{OverrideType: placementv1beta1.DeleteOverrideType, ClusterSelector: &placementv1beta1.ClusterSelector{}}
	if region != "" {
		rule.ClusterSelector.ClusterSelectorTerms = []placementv1beta1.ClusterSelectorTerm{
			{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": region}}},
		}
	}
	return rule
}

func TestDeletedByLabels(t *testing.T) {
	quota := placementv1beta1.ResourceIdentifier{Version: "v1", Kind: "ResourceQuota", Name: "q", Namespace: "shop"}
	role := placementv1beta1.ResourceIdentifier{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Name: "r"}
	of := func(name, deletesOn string, rules ...placementv1beta1.OverrideRule) Override {
		s := &placementv1beta1.ClusterResourceOverrideSnapshot{ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{placementv1beta1.DeletesOnAnnotation: deletesOn}}}
		s.Spec.OverrideSpec.ClusterResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: "shop"}}
		s.Spec.OverrideSpec.Policy = &placementv1beta1.OverridePolicy{OverrideRules: rules}
		return OfCluster(s)
	}
	all := []placementv1beta1.ResourceIdentifier{quota, role}
	for name, tc := range map[string]struct {
		set  Set
		want []placementv1beta1.ResourceIdentifier
	}{
		"rule selects another region":               {set: NewSet(of("a", "", deletesIn("us")))},
		"label changed after the override":          {set: NewSet(of("a", "other", deletesIn("eu"))), want: all[:1]},
		"no record, as of a previous version":       {set: NewSet(of("a", "", deletesIn("eu"))), want: all[:1]},
		"selected when the override was written":    {set: NewSet(of("a", "m,other", deletesIn("eu")))},
		"rule does not depend on labels":            {set: NewSet(of("a", "", deletesIn("")))},
		"another rule does not depend on labels":    {set: NewSet(of("a", "", deletesIn("eu"), deletesIn("")))},
		"another override deletes it without label": {set: NewSet(of("a", "", deletesIn("eu")), of("b", "", deletesIn("")))},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.set.DeletedByLabels(Member{Name: "m", Labels: map[string]string{"region": "eu"}}, all)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("DeletedByLabels() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReconcile_RecordsMembersThatAnOverrideDeletesOn(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{placementv1beta1.AddToScheme, clusterv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	member := func(name, region string) *clusterv1beta1.MemberCluster {
		return &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"region": region}}}
	}
	o := &placementv1beta1.ClusterResourceOverride{ObjectMeta: metav1.ObjectMeta{Name: "o"}}
	o.Spec.Policy = &placementv1beta1.OverridePolicy{OverrideRules: []placementv1beta1.OverrideRule{deletesIn("eu")}}
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(o, member("b", "eu"), member("a", "eu"), member("c", "us")).Build()
	r := NewReconcilers(hub, runs{})[0]
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)}); err != nil {
		t.Fatal(err)
	}
	s := &placementv1beta1.ClusterResourceOverrideSnapshot{}
	recorded := func() string {
		t.Helper()
		if err := hub.Get(t.Context(), client.ObjectKey{Name: "o-0"}, s); err != nil {
			t.Fatal(err)
		}
		return s.Annotations[placementv1beta1.DeletesOnAnnotation]
	}
	if got := recorded(); got != "a,b" {
		t.Errorf("recorded members = %q", got)
	}

	relabelled := Member{Name: "c", Labels: map[string]string{"region": "eu"}}
	if err := NewSet(OfCluster(s)).Confirm(t.Context(), hub, []Member{relabelled}); err != nil {
		t.Fatal(err)
	}
	if got := recorded(); got != "a,b,c" {
		t.Errorf("recorded members after the confirmation = %q", got)
	}
}

func TestNoteDeletion_CountsUntilConfirmedOrTenMinutesOld(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := placementv1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	s := &placementv1beta1.ClusterResourceOverrideSnapshot{ObjectMeta: metav1.ObjectMeta{Name: "o-0"}}
	s.Spec.OverrideSpec.Policy = &placementv1beta1.OverridePolicy{OverrideRules: []placementv1beta1.OverrideRule{deletesIn("eu")}}
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(s).Build()
	set := func() Set {
		t.Helper()
		if err := hub.Get(t.Context(), client.ObjectKeyFromObject(s), s); err != nil {
			t.Fatal(err)
		}
		return NewSet(OfCluster(s))
	}
	now := time.Now()
	member := func(name, region string) Member {
		return Member{Name: name, Labels: map[string]string{"region": region}}
	}
	for i, m := range []Member{member("a", "eu"), member("b", "us"), member("c", "eu")} {
		if err := set().NoteDeletion(t.Context(), hub, m, now.Add(time.Duration(i)*4*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	all := []string{"a", "b", "c"}
	for _, tc := range []struct {
		after time.Duration
		want  []string
	}{{9 * time.Minute, []string{"a", "c"}}, {12 * time.Minute, []string{"c"}}, {time.Hour, []string{}}} {
		if diff := cmp.Diff(tc.want, sets.List(set().DeletedRecently(all, now.Add(tc.after)))); diff != "" {
			t.Errorf("deleted recently after %s (-want +got):\n%s", tc.after, diff)
		}
	}
	if err := set().Confirm(t.Context(), hub, []Member{member("d", "eu")}); err != nil {
		t.Fatal(err)
	}
	if got := set().DeletedRecently(all, now.Add(9*time.Minute)); got.Len() > 0 {
		t.Errorf("deleted recently after a confirmation: %v", got)
	}
}
