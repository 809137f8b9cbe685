// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author

import (
	"context"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

func bindingManifest(kind, namespace string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"roleRef": map[string]any{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": "cluster-admin"},
	}}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: rbacv1.GroupName, Version: "v1", Kind: kind})
	object.SetNamespace(namespace)
	object.SetName("mine")
	return object
}

// The owner of namespace a wrote a ClusterRoleBinding with metadata.namespace a, and members got it
// for the whole cluster.
func TestScope_NamespaceInClusterScopedManifestIsIgnored(t *testing.T) {
	owner := rbac{{namespace: "a", verbs: []string{anything}, groups: []string{anything}, resources: []string{anything}}}
	clusterScoped, namespaced := &Resource{Name: "clusterrolebindings"}, &Resource{Name: "rolebindings", Namespaced: true}
	list := bindingManifest("List", "a")
	list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "List"})
	older := bindingManifest("ClusterRoleBinding", "a")
	older.SetAPIVersion(rbacv1.GroupName + "/v1beta1")
	for name, tc := range map[string]struct {
		object   *unstructured.Unstructured
		resource *Resource
		refused  bool
	}{
		"a cluster-scoped kind":                      {bindingManifest("ClusterRoleBinding", "a"), clusterScoped, true},
		"a cluster-scoped kind in another version":   {older, clusterScoped, true},
		"a cluster-scoped kind without a namespace":  {bindingManifest("ClusterRoleBinding", ""), clusterScoped, true},
		"a kind that the hub does not serve":         {bindingManifest("GlobalBinding", "a"), nil, true},
		"a List":                                     {list, nil, true},
		"a namespaced kind in the owner's namespace": {bindingManifest("RoleBinding", "a"), namespaced, false},
		"a namespaced kind in another namespace":     {bindingManifest("RoleBinding", "b"), namespaced, true},
		"a namespaced kind without a namespace":      {bindingManifest("RoleBinding", ""), namespaced, true},
	} {
		refused, err := checkerOf(owner).Refused(context.Background(), "a set", OfEnveloped(field.NewPath("data"), tc.object, tc.resource))
		if err != nil || len(refused) > 0 != tc.refused {
			t.Errorf("%s: refused %v, %v", name, refused, err)
		}
	}
}

// A member that is itself a hub checks the author of a placement, a set or an envelope: there it is the
// agent, which may do everything.
func TestChecksWriter_TakesAnAdministrator(t *testing.T) {
	owner := rbac{{namespace: "a", verbs: []string{anything}, groups: []string{anything}, resources: []string{anything}}}
	operator := rbac{{verbs: []string{anything}, groups: []string{placementv1beta1.GroupName}, resources: []string{anything}}}
	administrator := rbac{{verbs: []string{anything}, groups: []string{anything}, resources: []string{anything}}}
	for name, tc := range map[string]struct {
		rights  rbac
		kind    schema.GroupVersionKind
		refused bool
	}{
		"the owner of a namespace with a set":            {owner, schema.GroupVersionKind{Group: "work.open-cluster-management.io", Version: "v1alpha1", Kind: "ManifestWorkReplicaSet"}, true},
		"the owner of a namespace with an envelope":      {owner, placementv1beta1.GroupVersion.WithKind("ResourceEnvelope"), true},
		"the owner of a namespace with another kind":     {owner, schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}, false},
		"an operator of placements with a placement":     {operator, placementv1beta1.GroupVersion.WithKind("ClusterResourcePlacement"), true},
		"an administrator with a placement":              {administrator, placementv1beta1.GroupVersion.WithKind("ClusterResourcePlacement"), false},
		"the owner of a namespace with OpenShift's RBAC": {owner, schema.GroupVersionKind{Group: "authorization.openshift.io", Version: "v1", Kind: "RoleBinding"}, true},
	} {
		object := &unstructured.Unstructured{Object: map[string]any{}}
		object.SetGroupVersionKind(tc.kind)
		object.SetNamespace("a")
		object.SetName("x")
		served := func(schema.GroupVersionKind) (Resource, bool, error) {
			return Resource{Name: "things", Namespaced: true}, true, nil
		}
		override, err := OfOverride("a", &placementv1beta1.ResourceOverrideSpec{ResourceSelectors: []placementv1beta1.ResourceSelector{
			{Group: tc.kind.Group, Version: tc.kind.Version, Kind: tc.kind.Kind, Name: "x"}}}, served)
		if err != nil {
			t.Fatal(err)
		}
		for entrance, questions := range map[string][]Question{"a set": OfEnveloped(field.NewPath("data"), object, &Resource{Name: "things", Namespaced: true}), "an override": override} {
			refused, err := checkerOf(tc.rights).Refused(context.Background(), entrance, questions)
			if err != nil || len(refused) > 0 != tc.refused {
				t.Errorf("%s in %s: refused %v, %v", name, entrance, refused, err)
			}
		}
	}
}

// It covers every path by which manifests and their changes reach members, with any kind, scope on
// the hub and namespace in the manifest. A kind that the hub does not serve may have either scope
// on a member.
func TestScope_CheckIsNeverNarrowerThanTheWrite(t *testing.T) {
	checked := 0
	for seed := range uint64(seeds) {
		d := newDice(seed)
		one, served, namespace := d.thing(), d.IntN(4) > 0, pick(d, append([]string{""}, namespaces...))
		resources := func(kind schema.GroupVersionKind) (Resource, bool, error) {
			if !served {
				return Resource{}, false, nil
			}
			return world{}.Resources(kind)
		}
		kind := one.kind.GroupVersionKind
		var known *Resource
		if resource, ok, _ := resources(kind); ok {
			known = &resource
		}
		object := &unstructured.Unstructured{Object: map[string]any{}}
		object.SetGroupVersionKind(kind)
		object.SetName(one.name)
		object.SetNamespace(namespace)
		asked := map[string][]Question{"a manifest of an envelope or a set": OfEnveloped(field.NewPath("data"), object, known)}
		var err error
		if namespace != "" {
			spec := &placementv1beta1.ResourceOverrideSpec{ResourceSelectors: []placementv1beta1.ResourceSelector{{Group: kind.Group, Version: "v1", Kind: kind.Kind, Name: one.name}}}
			asked["an override of a namespace"], err = OfOverride(namespace, spec, resources)
		} else {
			spec := &placementv1beta1.ClusterResourceOverrideSpec{ClusterResourceSelectors: []placementv1beta1.ResourceSelectorTerm{{Group: kind.Group, Version: "v1", Kind: kind.Kind, Name: one.name}}}
			asked["an override"], err = OfClusterOverride(spec, resources)
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		written := ""
		if served {
			written = manifest.WrittenNamespace(namespace, one.kind.Namespaced)
		}
		for entrance, questions := range asked {
			if len(questions) == 0 {
				t.Fatalf("seed %d: nothing is asked about %s of %s", seed, entrance, kind)
			}
			// The first is for the object itself.
			for _, access := range questions[0].Any {
				checked++
				if access.Namespace != "" && access.Namespace != written {
					t.Fatalf("seed %d: %s of %s in namespace %q is written in %q and asked in %q", seed, entrance, kind, namespace, written, access.Namespace)
				}
			}
		}
	}
	if checked < seeds {
		t.Errorf("%d accesses were checked: this proves too little", checked)
	}
}

// The administrator of one namespace had charts rendered, and objects placed that nobody may read.
func TestAsker_WildcardInNamespaceGrantsNoOwnVerb(t *testing.T) {
	rule := func(namespace string, verbs ...string) rbac {
		return rbac{{namespace: namespace, verbs: verbs, groups: []string{anything}, resources: []string{anything}}}
	}
	for name, tc := range map[string]struct {
		rights rbac
		want   bool
	}{
		"by * in the namespace":                     {rule("a", anything), false},
		"by its name in the namespace":              {rule("a", "place", "render", ExecuteVerb), true},
		"by * in all namespaces":                    {rule("", anything), true},
		"by * in the namespace, by its name in all": {append(rule("a", anything), rule("", "place", "render", ExecuteVerb)...), true},
		"by * in another namespace":                 {rule("b", anything), false},
		"not by other verbs, whichever they are":    {rule("a", "get", "create", "update"), false},
	} {
		for _, verb := range []string{placementv1beta1.PlaceVerb, placementv1beta1.RenderVerb, ExecuteVerb} {
			may, err := checkerOf(tc.rights).May(context.Background(), Question{Any: []Access{{Verb: verb, Resource: "secrets", Namespace: "a"}}})
			if err != nil || may[0] != tc.want {
				t.Errorf("%s %s: %v, %v", verb, name, may, err)
			}
		}
	}
	if may, err := checkerOf(rule("a", anything)).May(context.Background(), Question{Any: []Access{{Verb: "create", Resource: "secrets", Namespace: "a"}}}); err != nil || !may[0] {
		t.Errorf("create by * in the namespace: %v, %v", may, err)
	}
}
