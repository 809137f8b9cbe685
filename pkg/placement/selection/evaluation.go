// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"golang.org/x/sync/errgroup"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/listget"
)

// evaluation evaluates a placement's selectors.
type evaluation struct {
	*Selector

	mu sync.Mutex // Guards missed.
	// missed are kinds whose objects are incomplete in the result.
	missed []Unreadable
	// makers are the makers that members have too, by namespace.
	makers map[made]bool
}

func (e *evaluation) miss(u Unreadable) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.missed = append(e.missed, u)
}

// list returns the objects of a kind. It records a kind that is not listed.
func (e *evaluation) list(kind Kind, namespace string) ([]*metav1.PartialObjectMetadata, error) {
	objects, err := e.watcher.list(kind, namespace)
	if !errors.Is(err, errUnlisted) {
		return objects, err
	}
	if u := e.watcher.unreadableKind(kind); u != nil {
		e.miss(*u)
	} else {
		e.miss(Unreadable{Kind: kind, Fault: err.Error()})
	}
	return nil, nil
}

// candidate is an object that is probably selected.
type candidate struct {
	kind            Kind
	namespace, name string
	// version is the object's version in the watch.
	version string
	// maker is the object whose controller writes it without being its owner; the zero value if there is none.
	maker maker
	// absent is set if it stays on the hub. It can be the maker of others.
	absent bool
	// uid is the object's UID. owners are the UIDs of its owners, separated by commas, if a controller created
	// it for them or it is absent.
	uid, owners string
}

func candidateOf(kind Kind, object *metav1.PartialObjectMetadata) candidate {
	c := candidate{kind: kind, namespace: object.Namespace, name: object.Name, version: object.ResourceVersion}
	c.uid = string(object.UID)
	if object.Annotations[placementv1beta1.PlaceAnnotation] == placementv1beta1.PlaceAlways {
		return c
	}
	if kind.GroupKind() == (schema.GroupKind{Kind: "Secret"}) {
		c.maker = makerOf(object)
	}
	if _, created := object.Annotations[createdForOwner]; created {
		c.owners = ownersOf(object)
	}
	return c
}

func ownersOf(object *metav1.PartialObjectMetadata) string {
	var owners []string
	for _, owner := range object.OwnerReferences {
		owners = append(owners, string(owner.UID))
	}
	return strings.Join(owners, ",")
}

// withoutDependents drops the objects that a controller created for a selected owner: its controller on a
// member creates others, and both would overwrite them in turn.
func withoutDependents(candidates []candidate) []candidate {
	selected := map[string]bool{}
	for _, c := range candidates {
		selected[c.uid] = c.uid != ""
	}
	return slices.DeleteFunc(candidates, func(c candidate) bool {
		return slices.ContainsFunc(strings.Split(c.owners, ","), func(owner string) bool { return selected[owner] })
	})
}

// withoutAliases drops all but one of the candidates that are the same object, served by several API groups: the
// Roles of RBAC and of OpenShift, or the Ingresses of an old API server. Two manifests of one object would overwrite
// each other on members. Groups of Kubernetes come first, because all members serve them.
func withoutAliases(candidates []candidate) []candidate {
	rank := func(c candidate) string {
		if group := c.kind.Group; group != "extensions" && (!strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")) {
			return group
		}
		return "~" + c.kind.Group
	}
	first := map[string]candidate{}
	for _, c := range candidates {
		if other, twice := first[c.uid]; !twice || rank(c) < rank(other) {
			first[c.uid] = c
		}
	}
	return slices.DeleteFunc(candidates, func(c candidate) bool {
		return c.uid != "" && c.kind.GroupKind() != first[c.uid].kind.GroupKind()
	})
}

// withheld names a candidate that the bound does not cover.
func (c candidate) withheld() string {
	resource := c.kind.GVR().GroupResource().String()
	if c.namespace == "" {
		return resource
	}
	return fmt.Sprintf("%s in namespace %q", resource, c.namespace)
}

// candidates selects by metadata alone, and returns what the bound withholds. Two selectors must not
// select the same object.
func (e *evaluation) candidates(wants []want, bound *Bound) (found []candidate, withheld []string, err error) {
	seen := map[candidate]bool{}
	withheld = []string{}
	for _, w := range wants {
		selected, err := e.selectedBy(w)
		if err != nil {
			return nil, nil, err
		}
		for _, c := range selected {
			if c.absent {
				found = append(found, c)
				continue
			}
			if !bound.Covers(c.kind.GVR().GroupResource(), c.namespace, c.name) {
				withheld = append(withheld, c.withheld())
				continue
			}
			// Two versions of an object are the same object.
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
	e.makers = makersOf(found)
	return withoutAliases(withoutDependents(withoutMade(found, e.makers))), slices.Compact(withheld), nil
}

func (e *evaluation) selectedBy(w want) ([]candidate, error) {
	objects, err := e.list(w.kind, w.namespace)
	if err != nil {
		return nil, err
	}
	var found []candidate
	for _, object := range objects {
		if !w.picks(object) {
			continue
		}
		if !w.isNamespace() {
			if metadataPropagates(w.kind.GroupKind(), object) {
				found = append(found, candidateOf(w.kind, object))
			}
			continue
		}
		if !metadataPropagates(namespaceKind, object) {
			continue
		}
		inside, err := e.namespace(w, object)
		if err != nil {
			return nil, err
		}
		found = append(found, inside...)
	}
	return found, nil
}

// namespace returns the namespace and, if the selector asks for it, its contents.
func (e *evaluation) namespace(w want, namespace *metav1.PartialObjectMetadata) ([]candidate, error) {
	name := namespace.Name
	if !NamespacePropagates(name) {
		return nil, invalid("namespace %q must not be placed on members: it belongs to the cluster itself; select others", name)
	}
	if e.kinds.filter.namespaces[name] {
		return nil, invalid("the gateway leaves namespace %q out (placement.skippedNamespaces); select others", name)
	}
	found := []candidate{candidateOf(w.kind, namespace)}
	if !w.contents {
		return found, nil
	}
	kinds, err := e.kinds.Contents()
	if err != nil {
		return nil, err
	}
	for _, kind := range kinds {
		objects, err := e.list(kind, name)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			if metadataPropagates(kind.GroupKind(), object) {
				found = append(found, candidateOf(kind, object))
			} else if makers[kind.GroupKind()] && object.Annotations[placementv1beta1.PlaceAnnotation] != placementv1beta1.PlaceSkip {
				c := candidateOf(kind, object)
				c.absent, c.owners = true, ownersOf(object)
				found = append(found, c)
			}
		}
	}
	return found, nil
}

// Propagates reports whether an object would be placed with its namespace, as far as its metadata shows
// it. For Endpoints the metadata is not enough.
func Propagates(kind schema.GroupKind, object *metav1.PartialObjectMetadata) bool {
	kept := *object
	_, _ = trim(&kept) // It never fails.
	return object.DeletionTimestamp == nil && metadataPropagates(kind, &kept)
}

// ofService reports whether Endpoints without managed fields have a Service, whose controller most
// probably wrote them. It records them if the Services are unknown too.
func (e *evaluation) ofService(endpoints *unstructured.Unstructured) bool {
	if endpoints.GroupVersionKind().GroupKind() != (schema.GroupKind{Kind: "Endpoints"}) || len(endpoints.GetManagedFields()) > 0 {
		return false
	}
	kind := Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Service"}, Resource: "services", Namespaced: true}
	services, err := e.watcher.list(kind, endpoints.GetNamespace())
	if errors.Is(err, errUnlisted) {
		e.miss(Unreadable{Kind: Kind{GroupVersionKind: endpoints.GroupVersionKind(), Resource: "endpoints", Namespaced: true}, Fault: "the Services that they may be of cannot be listed"})
		return true
	}
	if err != nil {
		return false // Services are not watched if only certain kinds are selected.
	}
	return slices.ContainsFunc(services, func(s *metav1.PartialObjectMetadata) bool { return s.Name == endpoints.GetName() })
}

// read gets the full objects. It skips objects that were deleted meanwhile or are being deleted. It
// also skips objects of an unreadable kind, and records the kind.
func (e *evaluation) read(ctx context.Context, candidates []candidate) ([]*unstructured.Unstructured, error) {
	objects := make([]*unstructured.Unstructured, len(candidates))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i, c := range candidates {
		group.Go(func() error {
			object, err := e.get(ctx, c)
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

func (e *evaluation) get(ctx context.Context, c candidate) (*unstructured.Unstructured, error) {
	key := types.NamespacedName{Namespace: c.namespace, Name: c.name}
	object, err := listget.Get(ctx, e.client.Resource(c.kind.GVR()).Namespace(c.namespace), c.kind.GVR(), key, c.version)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case apierrors.IsForbidden(err):
		e.watcher.refused(ctx, c.kind.GVR(), err)
		e.miss(Unreadable{Kind: c.kind})
		return nil, nil
	case err != nil && OfTheKind(err):
		e.watcher.suspect(c.kind.GVR(), fault{text: err.Error(), object: key, reported: true})
		e.miss(Unreadable{Kind: c.kind, Fault: err.Error()})
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading what is selected: %w", err)
	}
	if object.GetDeletionTimestamp() != nil || !contentPropagates(object) || e.ofService(object) {
		return nil, nil
	}
	if ofSet, err := e.ofStatefulSet(ctx, object); err != nil || ofSet {
		return nil, err
	}
	cutMerged(object, e.makers)
	Strip(object)
	return object, nil
}
