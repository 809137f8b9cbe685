// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"golang.org/x/sync/errgroup"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/byname"
	"fleetgate.io/fleetgate/pkg/refusal"
)

const (
	// MaxObjects is how many objects one placement may select.
	MaxObjects = 5000

	// readers is how many objects of one placement are read at a time.
	readers = 16

	// listTimeout is how long the first list of a type may take.
	listTimeout = 20 * time.Second
)

// invalid refuses selectors that only their author can put right. Its text is for the
// placement's condition.
func invalid(format string, args ...any) error {
	return refusal.New(placementv1beta1.ReasonInvalidResourceSelectors, format, args...)
}

// Selector finds what placements select.
type Selector struct {
	kinds   *Kinds
	watcher *Watcher
	client  dynamic.Interface
}

// NewSelector returns a Selector that finds candidates through the watcher and
// reads them through the client.
func NewSelector(kinds *Kinds, watcher *Watcher, client dynamic.Interface) *Selector {
	return &Selector{kinds: kinds, watcher: watcher, client: client}
}

// Selected is what a placement selects.
type Selected struct {
	// Objects are stripped and sorted.
	Objects []*unstructured.Unstructured
	// Withheld names the resources, each with its namespace, of which something would be
	// selected if the bound covered it. It is not nil.
	Withheld []string
	// Unreadable are the kinds that are selected, or would be with a namespace, and that
	// the gateway may not read, sorted. Nothing of them is in Objects.
	Unreadable []Kind
}

// Select returns what the selectors of a placement select now, as far as the bound
// covers it, and from then on the watcher queues the placement when that changes.
// Selectors of a namespaced placement select in its namespace. A named object
// that does not exist selects nothing. The error is a refusal if the
// selectors are at fault.
func (s *Selector) Select(ctx context.Context, placement types.NamespacedName, terms []placementv1beta1.ResourceSelectorTerm, bound *Bound) (Selected, error) {
	wants, kinds, err := s.resolve(placement.Namespace, terms)
	if err != nil {
		// Without wants the placement is still told of types that come and go.
		if watchErr := s.watcher.watch(ctx, placement, nil, nil); watchErr != nil {
			return Selected{}, watchErr
		}
		return Selected{}, err
	}
	listing, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	if err := s.watcher.watch(listing, placement, wants, kinds); err != nil {
		return Selected{}, err
	}
	candidates, withheld, err := s.candidates(wants, bound)
	if err != nil {
		return Selected{}, err
	}
	unreadable := s.watcher.unreadable(kinds)
	objects, err := s.read(ctx, candidates)
	return Selected{Objects: objects, Withheld: withheld, Unreadable: unreadable}, err
}

// Forget says that the placement is gone.
func (s *Selector) Forget(placement types.NamespacedName) { s.watcher.Forget(placement) }

// resolve finds the kind of every selector, and all kinds that have to be
// watched for them.
func (s *Selector) resolve(namespace string, terms []placementv1beta1.ResourceSelectorTerm) ([]want, []Kind, error) {
	if namespace != "" && !NamespacePropagates(namespace) {
		return nil, nil, invalid("nothing of namespace %q is placed on members, as it belongs to Kubernetes or the fleet; make the placement in another namespace", namespace)
	}
	inside := Inside(namespace, terms)
	var kinds []Kind
	wants := make([]want, 0, len(terms))
	for _, term := range terms {
		w, err := s.resolveTerm(term, inside)
		if err != nil {
			return nil, nil, err
		}
		wants, kinds = append(wants, w), append(kinds, w.kind)
		if w.contents {
			contents, err := s.kinds.Contents()
			if err != nil {
				return nil, nil, err
			}
			kinds = append(kinds, contents...)
		}
	}
	return wants, kinds, nil
}

// Inside is the namespace to which selectors of namespaced kinds are confined: that of
// the placement, or, if it has none, the one of which a selector wants single resources.
// It is empty if there may be none.
func Inside(namespace string, terms []placementv1beta1.ResourceSelectorTerm) string {
	if namespace != "" {
		return namespace
	}
	for _, term := range terms {
		if term.SelectionScope == placementv1beta1.NamespaceWithResourceSelectors && isNamespaceTerm(term) {
			namespace = term.Name
		}
	}
	return namespace
}

// CarriesContents reports whether a selector, of Namespaces, carries what is in them.
func CarriesContents(term placementv1beta1.ResourceSelectorTerm) bool {
	return term.Group == namespaceKind.Group && term.Kind == namespaceKind.Kind &&
		(term.SelectionScope == "" || term.SelectionScope == placementv1beta1.NamespaceWithResources)
}

func isNamespaceTerm(term placementv1beta1.ResourceSelectorTerm) bool {
	return term.Group == "" && term.Version == "v1" && term.Kind == "Namespace"
}

// resolveTerm resolves one selector; inside is the namespace to which selectors
// of namespaced kinds are confined, or "" if there may be none.
func (s *Selector) resolveTerm(term placementv1beta1.ResourceSelectorTerm, inside string) (want, error) {
	gvk := schema.GroupVersionKind{Group: term.Group, Version: term.Version, Kind: term.Kind}
	if !KindPropagates(gvk.GroupKind()) {
		return want{}, invalid("resource selector for %s: objects of this kind are never placed on members; remove the selector", describe(gvk))
	}
	kind, ok, err := s.kinds.Find(gvk)
	switch {
	case err != nil:
		return want{}, err
	case !ok:
		return want{}, invalid("resource selector for %s: the hub does not serve this kind; check group, version and kind, or install its CustomResourceDefinition", describe(gvk))
	case kind.Namespaced && inside == "":
		return want{}, invalid("resource selector for %s: the kind is namespaced; select its Namespace instead, or use selectionScope NamespaceWithResourceSelectors or a ResourcePlacement", describe(gvk))
	}
	w := want{kind: kind, name: term.Name}
	if kind.Namespaced {
		w.namespace = inside
	}
	if w.labels, err = selectorOf(term.LabelSelector); err != nil {
		return want{}, invalid("resource selector for %s: labelSelector: %v", describe(gvk), err)
	}
	w.contents = CarriesContents(term)
	return w, nil
}

func describe(gvk schema.GroupVersionKind) string {
	return fmt.Sprintf("%s (%s)", gvk.Kind, gvk.GroupVersion())
}

// candidate is an object that is probably selected.
type candidate struct {
	kind            Kind
	namespace, name string
	// version is the object's, as the watch has seen it.
	version string
}

// withheld is what a candidate is called that the bound does not cover.
func (c candidate) withheld() string {
	resource := c.kind.GVR().GroupResource().String()
	if c.namespace == "" {
		return resource
	}
	return fmt.Sprintf("%s in namespace %q", resource, c.namespace)
}

// candidates goes by metadata alone, and tells what the bound withholds. Two selectors
// must not select the same object.
func (s *Selector) candidates(wants []want, bound *Bound) (found []candidate, withheld []string, err error) {
	seen := map[candidate]bool{}
	withheld = []string{}
	for _, w := range wants {
		selected, err := s.selectedBy(w)
		if err != nil {
			return nil, nil, err
		}
		for _, c := range selected {
			if !bound.Covers(c.kind.GVR().GroupResource(), c.namespace, c.name) {
				withheld = append(withheld, c.withheld())
				continue
			}
			// The same object in two versions is the same object.
			id := candidate{kind: Kind{GroupVersionKind: c.kind.GroupKind().WithVersion("")}, namespace: c.namespace, name: c.name}
			if seen[id] {
				return nil, nil, invalid("%s %q is selected by more than one resource selector; make the selectors exclude each other", describe(c.kind.GroupVersionKind), c.name)
			}
			seen[id] = true
			found = append(found, c)
		}
		if len(found) > MaxObjects {
			return nil, nil, invalid("the resource selectors select more than %d objects; split the placement", MaxObjects)
		}
	}
	slices.Sort(withheld)
	return found, slices.Compact(withheld), nil
}

func (s *Selector) selectedBy(w want) ([]candidate, error) {
	objects, err := s.watcher.list(w.kind, w.namespace)
	if err != nil {
		return nil, err
	}
	var found []candidate
	for _, object := range objects {
		if !w.picks(object) {
			continue
		}
		if !w.isNamespace() {
			if metadataPropagates(w.kind.GroupKind(), object, s.hasService(object.Namespace)) {
				found = append(found, candidate{w.kind, object.Namespace, object.Name, object.ResourceVersion})
			}
			continue
		}
		inside, err := s.namespace(w, object)
		if err != nil {
			return nil, err
		}
		found = append(found, inside...)
	}
	return found, nil
}

// namespace returns the namespace and, if the selector wants it, what is in it.
func (s *Selector) namespace(w want, namespace *metav1.PartialObjectMetadata) ([]candidate, error) {
	name := namespace.Name
	if !NamespacePropagates(name) {
		return nil, invalid("namespace %q must not be placed on members: it belongs to the cluster itself; select others", name)
	}
	found := []candidate{{kind: w.kind, name: name, version: namespace.ResourceVersion}}
	if !w.contents {
		return found, nil
	}
	kinds, err := s.kinds.Contents()
	if err != nil {
		return nil, err
	}
	for _, kind := range kinds {
		objects, err := s.watcher.list(kind, name)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			if metadataPropagates(kind.GroupKind(), object, s.hasService(name)) {
				found = append(found, candidate{kind, name, object.Name, object.ResourceVersion})
			}
		}
	}
	return found, nil
}

// Propagates reports whether an object in a namespace would be placed with it, as far as
// its metadata alone tells: of Endpoints, it does not tell.
func Propagates(kind schema.GroupKind, object *metav1.PartialObjectMetadata) bool {
	return object.DeletionTimestamp == nil && metadataPropagates(kind, object, func(string) bool { return true })
}

func (s *Selector) hasService(namespace string) func(name string) bool {
	return func(name string) bool {
		services, err := s.watcher.list(Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Service"}, Resource: "services"}, namespace)
		if err != nil {
			return false // Services are not watched when only certain kinds are selected.
		}
		for _, service := range services {
			if service.Name == name {
				return true
			}
		}
		return false
	}
}

// read gets the full objects. One that has gone, or is going, meanwhile is left
// out.
func (s *Selector) read(ctx context.Context, candidates []candidate) ([]*unstructured.Unstructured, error) {
	objects := make([]*unstructured.Unstructured, len(candidates))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i, c := range candidates {
		group.Go(func() error {
			object, err := s.get(ctx, c)
			objects[i] = object
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	selected := make([]*unstructured.Unstructured, 0, len(objects))
	for _, object := range objects {
		if object != nil {
			selected = append(selected, object)
		}
	}
	Sort(selected)
	return selected, nil
}

func (s *Selector) get(ctx context.Context, c candidate) (*unstructured.Unstructured, error) {
	key := types.NamespacedName{Namespace: c.namespace, Name: c.name}
	object, err := byname.Get(ctx, s.client.Resource(c.kind.GVR()).Namespace(c.namespace), c.kind.GVR(), key, c.version)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if apierrors.IsForbidden(err) {
		s.watcher.refused(ctx, c.kind.GVR(), err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading what is selected: %w", err)
	}
	if object.GetDeletionTimestamp() != nil || !contentPropagates(object) {
		return nil, nil
	}
	Strip(object)
	return object, nil
}
