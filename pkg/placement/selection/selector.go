// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

const (
	// MaxObjects is the number of objects that one placement can select.
	MaxObjects = 5000

	// readers is the number of objects that are read at a time for one placement.
	readers = 16

	// listTimeout limits the first list of a type.
	listTimeout = 20 * time.Second
)

// invalid is an error in selectors that only their author can fix. Its text appears in the placement's
// condition.
func invalid(format string, args ...any) error {
	return refusal.New(placementv1beta1.ReasonInvalidResourceSelectors, format, args...)
}

// Selector finds the objects that placements select.
type Selector struct {
	kinds   *Kinds
	watcher *Watcher
	client  dynamic.Interface
}

// NewSelector returns a Selector that finds candidates with the watcher and reads them with the client.
func NewSelector(kinds *Kinds, watcher *Watcher, client dynamic.Interface) *Selector {
	return &Selector{kinds: kinds, watcher: watcher, client: client}
}

// Selected is the result of a placement's selectors.
type Selected struct {
	// Objects are stripped and sorted.
	Objects []*unstructured.Unstructured
	// Withheld names the resources, with their namespaces, that the selectors match but the bound does
	// not cover. It is not nil.
	Withheld []string
	// Unreadable are the unreadable kinds that are selected, directly or with a namespace, sorted.
	// Objects of these kinds are missing or incomplete in Objects.
	Unreadable []Unreadable
}

// Select returns what the selectors of a placement select now, as far as the bound covers it. From then
// on the watcher queues the placement when that changes. Selectors of a namespaced placement select in
// its namespace. A named object that does not exist selects nothing. The error is a refusal if the
// selectors are invalid.
func (s *Selector) Select(ctx context.Context, placement types.NamespacedName, terms []placementv1beta1.ResourceSelectorTerm, bound *Bound) (Selected, error) {
	wants, kinds, undiscovered, err := s.resolve(placement.Namespace, terms)
	if err != nil {
		// Without wants, the placement is still queued when types are added and removed.
		if watchErr := s.watcher.watch(ctx, placement, nil, nil); watchErr != nil {
			return Selected{}, watchErr
		}
		return Selected{}, err
	}
	if err := s.watcher.watch(ctx, placement, wants, kinds); err != nil {
		return Selected{}, err
	}
	before := s.watcher.unreadable(kinds)
	e := &evaluation{Selector: s}
	candidates, withheld, err := e.candidates(wants, bound)
	if err != nil {
		return Selected{}, err
	}
	objects, err := e.read(ctx, candidates)
	if err != nil {
		return Selected{}, err
	}
	return Selected{Objects: objects, Withheld: withheld, Unreadable: merge(undiscovered, before, e.missed, s.watcher.unreadable(kinds))}, nil
}

// Forget stops watching for a deleted placement.
func (s *Selector) Forget(placement types.NamespacedName) { s.watcher.Forget(placement) }

// resolve finds the kind of every selector, all kinds that must be watched for them, and possibly
// selected kinds of which discovery does not know whether the hub serves them.
func (s *Selector) resolve(namespace string, terms []placementv1beta1.ResourceSelectorTerm) ([]want, []Kind, []Unreadable, error) {
	if namespace != "" && !NamespacePropagates(namespace) {
		return nil, nil, nil, invalid("nothing of namespace %q is placed on members, because it belongs to Kubernetes or the fleet; create the placement in another namespace", namespace)
	}
	if s.kinds.filter.namespaces[namespace] {
		return nil, nil, nil, invalid("the gateway leaves namespace %q out (placement.skippedNamespaces); make the placement in another namespace", namespace)
	}
	undiscovered, err := s.kinds.Undiscovered(s.watcher.apiServed())
	if err != nil {
		return nil, nil, nil, err
	}
	inside := Inside(namespace, terms)
	var kinds []Kind
	var missed []Unreadable
	wants := make([]want, 0, len(terms))
	for _, term := range terms {
		w, missing, err := s.resolveTerm(term, inside, undiscovered)
		if err != nil {
			return nil, nil, nil, err
		}
		if missing != nil {
			missed = append(missed, *missing)
			continue
		}
		wants, kinds = append(wants, w), append(kinds, w.kind)
		if w.contents {
			contents, err := s.kinds.Contents()
			if err != nil {
				return nil, nil, nil, err
			}
			kinds, missed = append(kinds, contents...), append(missed, undiscovered...)
		}
	}
	if slices.ContainsFunc(kinds, func(k Kind) bool { return k.GroupKind() == claimKind }) {
		if sets, ok, err := s.kinds.Find(statefulSets); err != nil {
			return nil, nil, nil, err
		} else if ok {
			kinds = append(kinds, sets) // They show which claims are theirs.
		}
	}
	return wants, kinds, missed, nil
}

// Inside is the namespace of selectors for namespaced kinds: the placement's namespace, or, for a
// cluster-scoped placement, the one whose single resources a selector wants. It is empty if such
// selectors are not allowed.
func Inside(namespace string, terms []placementv1beta1.ResourceSelectorTerm) string {
	if namespace != "" {
		return namespace
	}
	for _, term := range terms {
		if term.SelectionScope == placementv1beta1.NamespaceWithResourceSelectors && term.Group == "" && term.Version == "v1" && term.Kind == "Namespace" {
			namespace = term.Name
		}
	}
	return namespace
}

// LacksNamespace reports whether a selector wants single resources of a namespace that is not among
// the selected objects.
func LacksNamespace(terms []placementv1beta1.ResourceSelectorTerm, selected []*unstructured.Unstructured) bool {
	name := Inside("", terms)
	return name != "" && !slices.ContainsFunc(selected, func(object *unstructured.Unstructured) bool {
		return object.GroupVersionKind().GroupKind() == namespaceKind && object.GetName() == name
	})
}

// CarriesContents reports whether a selector of Namespaces also selects their contents.
func CarriesContents(term placementv1beta1.ResourceSelectorTerm) bool {
	return term.Group == namespaceKind.Group && term.Kind == namespaceKind.Kind &&
		(term.SelectionScope == "" || term.SelectionScope == placementv1beta1.NamespaceWithResources)
}

// resolveTerm resolves one selector. inside is the namespace for selectors of namespaced kinds, or ""
// if they are not allowed. There is no want if discovery has no result for the kind's version.
func (s *Selector) resolveTerm(term placementv1beta1.ResourceSelectorTerm, inside string, undiscovered []Unreadable) (want, *Unreadable, error) {
	gvk := schema.GroupVersionKind{Group: term.Group, Version: term.Version, Kind: term.Kind}
	if !KindPropagates(gvk.GroupKind()) {
		return want{}, nil, invalid("resource selector for %s: objects of this kind are never placed on members; remove the selector", describe(gvk))
	}
	if s.kinds.filter.leavesOut(gvk) {
		return want{}, nil, invalid("resource selector for %s: the gateway leaves this kind out (placement.skippedAPIs, placement.allowedAPIs); remove the selector", describe(gvk))
	}
	kind, ok, err := s.kinds.Find(gvk)
	if err != nil {
		return want{}, nil, err
	}
	at := slices.IndexFunc(undiscovered, func(u Unreadable) bool { return u.GroupVersion() == gvk.GroupVersion() })
	switch {
	case !ok && at >= 0:
		return want{}, &Unreadable{Kind: Kind{GroupVersionKind: gvk}, Fault: undiscovered[at].Fault}, nil
	case !ok:
		return want{}, nil, invalid("resource selector for %s: the hub does not serve this kind; check group, version and kind, or install its CustomResourceDefinition", describe(gvk))
	case kind.Namespaced && inside == "":
		return want{}, nil, invalid("resource selector for %s: the kind is namespaced; select its Namespace instead, or use selectionScope NamespaceWithResourceSelectors or a ResourcePlacement", describe(gvk))
	}
	w := want{kind: kind, name: term.Name}
	if kind.Namespaced {
		w.namespace = inside
	}
	if w.labels, err = selectorOf(term.LabelSelector); err != nil {
		return want{}, nil, invalid("resource selector for %s: labelSelector: %v", describe(gvk), err)
	}
	w.contents = CarriesContents(term)
	return w, nil, nil
}

func describe(gvk schema.GroupVersionKind) string {
	return fmt.Sprintf("%s (%s)", gvk.Kind, gvk.GroupVersion())
}
