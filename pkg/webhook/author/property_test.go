// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author

import (
	"context"
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/selection"
)

// seeds is the number of worlds for each property.
const seeds = 5_000

func checkerOf(r rbac) *Checker {
	return NewChecker(authenticationv1.UserInfo{Username: "alice"}, hub{rbac: r})
}

// mayHave is true if a user could have read this very object, or placed it: by itself, or with all
// others of its kind there.
func (r rbac) mayHave(t thing) bool {
	return r.may("get", t.resource(), t.namespace, t.name) || r.may("list", t.resource(), t.namespace, "") || r.may("place", t.resource(), t.namespace, t.name)
}

// Whatever is on the hub when the placement is written, and whatever is created later.
func TestProperty_NothingIsDeliveredWithoutPermission(t *testing.T) {
	admitted, delivered, withheld := 0, 0, 0
	for seed := range uint64(seeds) {
		d := newDice(seed)
		w, rights, namespace := world{}, d.rights(), pick(d, []string{"", "a"})
		d.fill(w, d.IntN(10))
		terms := d.terms(namespace)
		bound, refusals, err := w.hub().Placement(context.Background(), checkerOf(rights), namespace, selectingBy(terms))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		before := w.selected(namespace, terms)
		if len(refusals) > 0 {
			continue
		}
		admitted++
		// Objects that exist at admission are placed completely. Other rules refuse objects outside
		// the placement's own namespace.
		for _, object := range before {
			if (namespace == "" || namespace == object.namespace) && !bound.Covers(object.resource(), object.namespace, object.name) {
				t.Fatalf("seed %d: %+v was there, is selected by %+v, and would be withheld by %s", seed, object, terms, bound)
			}
		}
		d.fill(w, 10)
		stored := selection.ParseBound(bound.String())
		for _, object := range w.selected(namespace, terms) {
			if !stored.Covers(object.resource(), object.namespace, object.name) {
				withheld++
				continue
			}
			delivered++
			if !rights.mayHave(object) {
				t.Fatalf("seed %d: %+v is delivered by %s, with rights %+v", seed, object, stored, rights)
			}
		}
	}
	if admitted < seeds/50 || delivered == 0 || withheld == 0 {
		t.Errorf("of %d placements %d were admitted, delivered %d objects and withheld %d: this proves too little", seeds, admitted, delivered, withheld)
	}
}

// mayWrite is true if a user could have written any content into this object.
func (r rbac) mayWrite(verb string, t thing) bool {
	if !r.may(verb, t.resource(), t.namespace, t.name) {
		return false
	}
	switch t.kind.Kind {
	case "Role", "ClusterRole":
		return r.may("escalate", t.resource(), t.namespace, t.name)
	case "RoleBinding", "ClusterRoleBinding":
		for _, role := range names {
			if !r.may("bind", kinds[1].GVR().GroupResource(), t.namespace, role) {
				return false
			}
		}
	}
	return true
}

// Neither what an override selects, nor what is in a namespace that it selects, now and later.
func TestProperty_NothingIsOverriddenWithoutPermission(t *testing.T) {
	admitted, reached := 0, 0
	for seed := range uint64(seeds) {
		d := newDice(seed)
		rights, one := d.rights(), d.thing()
		var questions []Question
		var err error
		if one.kind.Namespaced {
			spec := &placementv1beta1.ResourceOverrideSpec{ResourceSelectors: []placementv1beta1.ResourceSelector{
				{Group: one.kind.Group, Version: "v1", Kind: one.kind.Kind, Name: one.name}}}
			questions, err = OfOverride(one.namespace, spec, world{}.Resources)
		} else {
			spec := &placementv1beta1.ClusterResourceOverrideSpec{ClusterResourceSelectors: []placementv1beta1.ResourceSelectorTerm{
				{Group: one.kind.Group, Version: "v1", Kind: one.kind.Kind, Name: one.name}}}
			questions, err = OfClusterOverride(spec, world{}.Resources)
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		refused, err := checkerOf(rights).Refused(context.Background(), "an override", questions)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if len(refused) > 0 {
			continue
		}
		admitted++
		w := world{one: true}
		d.fill(w, 20)
		for object := range w {
			if object != one && (one.kind.Kind != "Namespace" || object.namespace != one.name) {
				continue
			}
			reached++
			if !rights.mayWrite("update", object) {
				t.Fatalf("seed %d: an override of %+v changes %+v, with rights %+v", seed, one, object, rights)
			}
		}
	}
	if admitted < seeds/100 || reached <= admitted {
		t.Errorf("of %d overrides %d were admitted and reached %d objects: this proves too little", seeds, admitted, reached)
	}
}

// mayMake is true if a user could have created or overwritten this object, a binding with this ClusterRole.
func (r rbac) mayMake(t thing, role string) bool {
	if !r.may("create", t.resource(), t.namespace, t.name) || !r.may("update", t.resource(), t.namespace, t.name) {
		return false
	}
	switch t.kind.Kind {
	case "Role", "ClusterRole":
		return r.may("escalate", t.resource(), t.namespace, t.name)
	case "RoleBinding", "ClusterRoleBinding":
		return r.may("bind", kinds[1].GVR().GroupResource(), t.namespace, role)
	}
	return true
}

// The hub's own API server would let the author create each role and each binding.
func TestProperty_NothingIsEnvelopedWithoutPermission(t *testing.T) {
	admitted := 0
	for seed := range uint64(seeds) {
		d := newDice(seed)
		rights, one, role := d.rights(), d.thing(), pick(d, names)
		object := &unstructured.Unstructured{Object: map[string]any{}}
		object.SetGroupVersionKind(one.kind.GroupVersionKind)
		object.SetName(one.name)
		object.SetNamespace(one.namespace)
		if !one.kind.Namespaced && d.IntN(2) == 0 {
			object.SetNamespace(pick(d, namespaces)) // Agents ignore it.
		}
		if slices.Contains([]string{"RoleBinding", "ClusterRoleBinding"}, one.kind.Kind) {
			object.Object["roleRef"] = map[string]any{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": role}
		}
		questions := OfEnveloped(field.NewPath("data"), object, &Resource{Name: one.kind.Resource, Namespaced: one.kind.Namespaced})
		refused, err := checkerOf(rights).Refused(context.Background(), "an envelope", questions)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if len(refused) > 0 {
			continue
		}
		admitted++
		if !rights.mayMake(one, role) {
			t.Fatalf("seed %d: an envelope holds %+v, with rights %+v", seed, one, rights)
		}
	}
	if admitted < seeds/100 {
		t.Errorf("of %d envelopes %d were admitted: this proves too little", seeds, admitted)
	}
}
