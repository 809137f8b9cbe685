// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package override

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

var everywhere = &placementv1beta1.ClusterSelector{}

func where(key, value string) *placementv1beta1.ClusterSelector {
	return &placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{
		{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}},
	}}
}

func policy(rules ...placementv1beta1.OverrideRule) *placementv1beta1.OverridePolicy {
	return &placementv1beta1.OverridePolicy{OverrideRules: rules}
}

// ofCluster overrides a namespace, or with kind "" the ClusterRole reader.
func ofCluster(name, namespace string, rules ...placementv1beta1.OverrideRule) Override {
	s := &placementv1beta1.ClusterResourceOverrideSnapshot{ObjectMeta: metav1.ObjectMeta{Name: name}}
	s.Spec.OverrideSpec.Policy = policy(rules...)
	selector := placementv1beta1.ResourceSelectorTerm{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Name: "reader"}
	if namespace != "" {
		selector = placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Namespace", Name: namespace}
	}
	s.Spec.OverrideSpec.ClusterResourceSelectors = []placementv1beta1.ResourceSelectorTerm{selector}
	return OfCluster(s)
}

// ofWeb overrides the Deployment web in namespace shop.
func ofWeb(name string, rules ...placementv1beta1.OverrideRule) Override {
	s := &placementv1beta1.ResourceOverrideSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	s.Spec.OverrideSpec.Policy = policy(rules...)
	s.Spec.OverrideSpec.ResourceSelectors = []placementv1beta1.ResourceSelector{{Group: "apps", Version: "v1", Kind: "Deployment", Name: "web"}}
	return OfNamespace(s)
}

func names(s Set) []string {
	var all []string
	for _, o := range s {
		all = append(all, o.Snapshot.String())
	}
	return all
}

func TestSet_For(t *testing.T) {
	web := placementv1beta1.ResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	onlyCluster, onlyNamespaced := ofWeb("only-0"), ofWeb("own-0")
	onlyCluster.placement = &placementv1beta1.PlacementRef{Name: "p", Scope: "Cluster"}
	onlyNamespaced.placement = &placementv1beta1.PlacementRef{Name: "p", Scope: "Namespaced"}
	set := NewSet(onlyNamespaced, onlyCluster, ofWeb("any-0"), ofCluster("shop-0", "shop"), ofCluster("other-0", "other"), ofCluster("role-0", ""))

	cases := map[string]struct {
		placement types.NamespacedName
		resources []placementv1beta1.ResourceIdentifier
		want      []string
	}{
		"empty selection": {types.NamespacedName{Name: "p"}, nil, nil},
		"cluster-scoped placement: overrides for it, for all placements, and of the resource's namespace": {
			types.NamespacedName{Name: "p"}, []placementv1beta1.ResourceIdentifier{web}, []string{"/shop-0", "shop/any-0", "shop/only-0"},
		},
		"namespaced placement of that name": {
			types.NamespacedName{Namespace: "shop", Name: "p"}, []placementv1beta1.ResourceIdentifier{web}, []string{"/shop-0", "shop/any-0", "shop/own-0"},
		},
		"namespaced placement of that name in another namespace": {
			types.NamespacedName{Namespace: "else", Name: "p"}, []placementv1beta1.ResourceIdentifier{web}, []string{"/shop-0", "shop/any-0"},
		},
		"other version is another resource": {
			types.NamespacedName{Name: "p"},
			[]placementv1beta1.ResourceIdentifier{{Group: "apps", Version: "v1beta1", Kind: "Deployment", Namespace: "web", Name: "web"}}, nil,
		},
		"resource in an envelope": {
			types.NamespacedName{Name: "q"},
			[]placementv1beta1.ResourceIdentifier{{
				Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "web",
				Envelope: &placementv1beta1.EnvelopeIdentifier{Name: "e"},
			}},
			[]string{"/shop-0", "shop/any-0"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, names(set.For(tc.placement, tc.resources))); diff != "" {
				t.Errorf("overrides (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSet_On(t *testing.T) {
	rule := func(s *placementv1beta1.ClusterSelector) placementv1beta1.OverrideRule {
		return placementv1beta1.OverrideRule{ClusterSelector: s}
	}
	set := NewSet(
		ofWeb("all-0", rule(everywhere)), ofWeb("none-0", rule(nil)),
		ofWeb("eu-0", rule(where("region", "us")), rule(where("region", "eu"))), ofWeb("us-0", rule(where("region", "us"))),
		ofCluster("role-0", "", rule(everywhere)),
	)
	on := set.On(Member{Name: "m", Labels: map[string]string{"region": "eu"}})
	cluster, namespaced := on.Names()
	if diff := cmp.Diff([]string{"role-0"}, cluster); diff != "" {
		t.Errorf("cluster-scoped (-want +got):\n%s", diff)
	}
	want := []placementv1beta1.NamespacedName{{Namespace: "shop", Name: "all-0"}, {Namespace: "shop", Name: "eu-0"}}
	if diff := cmp.Diff(want, namespaced); diff != "" {
		t.Errorf("namespaced (-want +got):\n%s", diff)
	}
}

func TestSet_ApplyNamesSnapshotWithInvalidSelector(t *testing.T) {
	broken := &placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{
		{LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}},
	}}
	member := Member{Name: "m"}
	set := NewSet(ofWeb("w-0", placementv1beta1.OverrideRule{ClusterSelector: broken})).On(member)
	if len(set) != 1 {
		t.Fatal("the override is left out, so that nobody reports it")
	}
	manifest := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"}}`
	_, err := set.Apply([]placementv1beta1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(manifest)}}}, member)
	if err == nil {
		t.Fatal("accepted an invalid selector")
	}
	if diff := cmp.Diff(`Deployment.apps shop/web: override snapshot "shop/w-0", rule 0: reading clusterSelector: "Like" is not a valid label selector operator`, err.Error()); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

// Override snapshots store the hash. Another value would take a new snapshot of every override.
func TestHashOf_StaysTheSame(t *testing.T) {
	o := &placementv1beta1.ClusterResourceOverride{Spec: placementv1beta1.ClusterResourceOverrideSpec{Placement: &placementv1beta1.PlacementRef{Name: "p"}}}
	got, err := clusterScoped().hashOf(o)
	if want := "1d4e6fd9e6b9fd9361f34cc2d119eb1d6f07bb4c68f81e85b834a01fd9d32580"; err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}
