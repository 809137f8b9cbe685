// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// selectResources chooses the selectors of the placement, and returns what its author needs for them.
func (a *attempt) selectResources() []access {
	switch a.entrance {
	case viaEnvelope, viaClusterEnvelope:
		return []access{a.selectByName(a.bundle)}
	case viaChart:
		if a.IntN(3) > 0 {
			return []access{a.selectByName(a.bundle)}
		}
		return a.selectNamespace()
	case viaResourcePlacement:
		var wanted []access
		for _, o := range a.onHub {
			if o.namespace == a.name("x") && a.IntN(2) == 0 && !a.selected(o) {
				wanted = append(wanted, a.selectObject(o))
			}
		}
		if len(wanted) == 0 {
			wanted = append(wanted, a.selectByName(a.onHub[0]))
		}
		return wanted
	case viaClusterPlacement, viaUpdateRun:
		var wanted []access
		for _, o := range a.onHub {
			if o.namespace == "" && a.IntN(2) == 0 && !a.selected(o) {
				wanted = append(wanted, a.selectObject(o))
			}
		}
		if len(wanted) == 0 || a.IntN(2) == 0 {
			wanted = append(wanted, a.selectNamespace()...)
		}
		return wanted
	}
	return nil
}

// selected is true if a selector selects the kind already: two must not select the same object.
func (a *attempt) selected(o object) bool {
	for _, term := range a.terms {
		if term.Kind == o.kind.Kind {
			return true
		}
	}
	return false
}

func (a *attempt) selectObject(o object) access {
	if a.IntN(3) > 0 {
		return a.selectByName(o)
	}
	term := placementv1beta1.ResourceSelectorTerm{Group: o.kind.Group, Version: o.kind.Version, Kind: o.kind.Kind}
	term.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{attemptLabel: a.prefix}}
	a.terms = append(a.terms, term)
	return access{pick(a.Rand, "list", placementv1beta1.PlaceVerb), o.kind.Group, o.kind.resource, o.namespace, ""}
}

func (a *attempt) selectByName(o object) access {
	a.terms = append(a.terms, placementv1beta1.ResourceSelectorTerm{Group: o.kind.Group, Version: o.kind.Version, Kind: o.kind.Kind, Name: o.name})
	return access{pick(a.Rand, "get", placementv1beta1.PlaceVerb), o.kind.Group, o.kind.resource, o.namespace, o.name}
}

// selectNamespace selects a namespace with its contents. Its author needs the kinds that are in it, or
// all kinds; without the latter, an object of another kind that is created later is withheld.
func (a *attempt) selectNamespace() []access {
	namespace := a.name("x")
	term := placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Namespace", Name: namespace}
	if a.IntN(4) == 0 {
		term.SelectionScope = placementv1beta1.NamespaceOnly
	}
	a.terms = append(a.terms, term)
	wanted := []access{{"get", "", "namespaces", "", namespace}}
	if term.SelectionScope != "" {
		return wanted
	}
	if a.IntN(2) == 0 {
		return append(wanted, access{pick(a.Rand, "get", placementv1beta1.PlaceVerb), "*", "*", namespace, ""})
	}
	// The suite creates roles and bindings in each namespace.
	kinds := map[string]bool{"Role": true, "RoleBinding": true}
	wanted = append(wanted, access{"get", "rbac.authorization.k8s.io", "roles", namespace, ""}, access{"get", "rbac.authorization.k8s.io", "rolebindings", namespace, ""})
	for _, o := range a.onHub {
		if o.namespace == namespace && !kinds[o.kind.Kind] {
			kinds[o.kind.Kind] = true
			wanted = append(wanted, access{pick(a.Rand, "get", placementv1beta1.PlaceVerb), o.kind.Group, o.kind.resource, namespace, ""})
		}
	}
	return wanted
}
