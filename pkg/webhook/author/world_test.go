// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author

import (
	"context"
	"math/rand/v2"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/selection"
)

// grant is a rule of RBAC that the user has in a namespace, "" for everywhere.
type grant struct {
	namespace                       string
	verbs, groups, resources, names []string
}

func (g grant) allows(access Access) bool {
	matches := func(list []string, one string) bool {
		return slices.Contains(list, anything) || slices.Contains(list, one)
	}
	resource := access.Resource
	if access.Subresource != "" {
		resource += "/" + access.Subresource
	}
	return (g.namespace == "" || g.namespace == access.Namespace) && matches(g.verbs, access.Verb) && matches(g.groups, access.Group) &&
		matches(g.resources, resource) && (len(g.names) == 0 || slices.Contains(g.names, access.Name))
}

// rbac is all grants of the user. It answers SubjectAccessReviews as a hub does.
type rbac []grant

func (r rbac) may(verb string, resource schema.GroupResource, namespace, name string) bool {
	return r.allows(Access{Verb: verb, Group: resource.Group, Resource: resource.Resource, Namespace: namespace, Name: name})
}

func (r rbac) allows(access Access) bool {
	return slices.ContainsFunc(r, func(g grant) bool { return g.allows(access) })
}

// hub is an API server that answers and counts reviews.
type hub struct {
	client.Writer
	rbac
	asked chan struct{}
}

func (h hub) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	review := object.(*authorizationv1.SubjectAccessReview)
	of := review.Spec.ResourceAttributes
	review.Status.Allowed = h.allows(Access{
		Verb: of.Verb, Group: of.Group, Resource: of.Resource, Subresource: of.Subresource, Namespace: of.Namespace, Name: of.Name,
	})
	if h.asked != nil {
		h.asked <- struct{}{}
	}
	return nil
}

// kinds of the world.
var kinds = []selection.Kind{
	kind("", "Namespace", "namespaces", false), kind(rbacv1.GroupName, "ClusterRole", "clusterroles", false),
	kind(rbacv1.GroupName, "ClusterRoleBinding", "clusterrolebindings", false),
	kind("", "ConfigMap", "configmaps", true), kind("", "Secret", "secrets", true), kind("apps", "Deployment", "deployments", true),
	kind(rbacv1.GroupName, "Role", "roles", true), kind(rbacv1.GroupName, "RoleBinding", "rolebindings", true),
	kind("example.org", "Widget", "widgets", true),
	kind(placementv1beta1.GroupName, "ResourceEnvelope", "resourceenvelopes", true),
	kind(placementv1beta1.GroupName, "ClusterResourceEnvelope", "clusterresourceenvelopes", false),
}

func kind(group, name, resource string, namespaced bool) selection.Kind {
	return selection.Kind{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: name}, Resource: resource, Namespaced: namespaced}
}

var (
	namespaces = []string{"a", "b"}
	names      = []string{"x", "y", "z"}
)

// thing is an object of the hub.
type thing struct {
	kind            selection.Kind
	namespace, name string
}

func (t thing) resource() schema.GroupResource { return t.kind.GVR().GroupResource() }

// world is the content of a hub.
type world map[thing]bool

func (w world) Kinds() ([]selection.Kind, error) {
	return slices.DeleteFunc(slices.Clone(kinds), func(k selection.Kind) bool { return !k.Namespaced }), nil
}

func (w world) Holds(_ context.Context, namespace string, kind selection.Kind) (bool, error) {
	for t := range w {
		if t.namespace == namespace && t.kind == kind {
			return true, nil
		}
	}
	return false, nil
}

func (w world) Resources(of schema.GroupVersionKind) (Resource, bool, error) {
	for _, k := range kinds {
		if k.GroupKind() == of.GroupKind() {
			return Resource{Name: k.Resource, Namespaced: k.Namespaced}, true, nil
		}
	}
	return Resource{}, false, nil
}

// hub returns the world as a Hub.
func (w world) hub() Hub { return Hub{Resources: w.Resources, Contents: w} }

// selected is what a placement selects in the world, before any bound.
func (w world) selected(namespace string, terms []placementv1beta1.ResourceSelectorTerm) []thing {
	inside := selection.Inside(namespace, terms)
	var all []thing
	for t := range w {
		for _, term := range terms {
			named := func(name string) bool { return term.Name == "" || term.Name == name }
			is := t.kind.Group == term.Group && t.kind.Kind == term.Kind && named(t.name)
			if is && (!t.kind.Namespaced || t.namespace == inside) || selection.CarriesContents(term) && t.namespace != "" && named(t.namespace) {
				all = append(all, t)
			}
		}
	}
	return all
}

// dice create random worlds.
type dice struct{ *rand.Rand }

func newDice(seed uint64) dice { return dice{rand.New(rand.NewPCG(seed, 15))} }

func pick[T any](d dice, from []T) T { return from[d.IntN(len(from))] }

func some[T any](d dice, from []T) []T {
	return slices.DeleteFunc(slices.Clone(from), func(T) bool { return d.IntN(3) > 0 })
}

func (d dice) thing() thing {
	t := thing{kind: pick(d, kinds), name: pick(d, names)}
	switch {
	case t.kind.Namespaced:
		t.namespace = pick(d, namespaces)
	case t.kind.Kind == "Namespace":
		t.name = pick(d, namespaces)
	}
	return t
}

func (d dice) fill(w world, n int) {
	for range n {
		w[d.thing()] = true
	}
}

// rights of a user, from none to all.
func (d dice) rights() rbac {
	var r rbac
	for range d.IntN(8) {
		g := grant{
			verbs:     some(d, []string{"get", "list", "place", "update", "create", "bind", "escalate", "render", anything}),
			groups:    some(d, []string{"", "apps", rbacv1.GroupName, "example.org", placementv1beta1.GroupName, anything}),
			resources: []string{pick(d, kinds).Resource, pick(d, kinds).Resource},
		}
		if d.IntN(3) == 0 {
			g.resources = append(g.resources, anything)
		}
		if d.IntN(2) == 0 {
			g.namespace = pick(d, namespaces)
		}
		if d.IntN(3) == 0 {
			g.names = some(d, append(slices.Clone(names), namespaces...))
		}
		r = append(r, g)
	}
	return r
}

// terms of a placement of a namespace, or of none.
func (d dice) terms(namespace string) []placementv1beta1.ResourceSelectorTerm {
	var terms []placementv1beta1.ResourceSelectorTerm
	for range 1 + d.IntN(3) {
		t := d.thing()
		if t.kind.Namespaced == (namespace == "") && d.IntN(4) > 0 {
			t.kind = kinds[0]
			t.name = pick(d, namespaces)
		}
		term := placementv1beta1.ResourceSelectorTerm{Group: t.kind.Group, Version: "v1", Kind: t.kind.Kind, Name: t.name}
		if d.IntN(4) == 0 {
			term.Name = ""
		}
		term.SelectionScope = pick(d, []placementv1beta1.SelectionScope{
			"", placementv1beta1.NamespaceOnly, placementv1beta1.NamespaceWithResources, placementv1beta1.NamespaceWithResourceSelectors,
		})
		terms = append(terms, term)
	}
	return terms
}

// selectingBy is a placement with these selectors and defaults.
func selectingBy(terms []placementv1beta1.ResourceSelectorTerm) *placementv1beta1.PlacementSpec {
	return &placementv1beta1.PlacementSpec{ResourceSelectors: terms}
}
