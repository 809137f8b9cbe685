// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"sync"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/kube/hash"
	"fleetgate.io/fleetgate/pkg/work/engine/availability"
	"fleetgate.io/fleetgate/pkg/work/engine/memberwatch"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// Item is one manifest of a work.
type Item struct {
	Ref manifest.Ref
	// Mode is how it is applied. Plan does not set it.
	Mode Mode
	// Refused is set if the manifest is refused without reading the object.
	Refused *refusal.Refusal
	// NamespaceDropped is set if the manifest has a namespace and its kind is cluster-scoped.
	NamespaceDropped bool
	// UnknownKind is set if the member does not serve the kind.
	UnknownKind bool
	// raw is the manifest as the work contains it.
	raw []byte
	// object is the decoded manifest and text its JSON. Both are nil if decoding failed, and in a
	// cached plan until decoded is called.
	object *unstructured.Unstructured
	text   []byte
	// hash is the hash of text.
	hash string
	// takenOver is set if the object existed before, or has the mark already; the write sets the
	// mark.
	takenOver bool
	// left are the fields that the member decides; object has the member's values in them. leaves
	// are the pointers of those that the manifest sets.
	left   []fieldPath
	leaves []string
	// unmerged is set if the agent could not merge the manifest.
	unmerged bool
	// pinned is set if a server-side apply must not overwrite a later version of the object.
	pinned bool
	// run is the hash of the spec, if the object runs to completion.
	run string
	// expires is set if the cluster deletes the object after completion.
	expires bool
	// resource is the resource of the kind on the member.
	resource   schema.GroupVersionResource
	namespaced bool
}

// isReadable reports whether the manifest was decoded.
func (i Item) isReadable() bool { return i.Ref.Kind != "" && i.Ref.Name != "" }

// dropNamespace removes the namespace of a manifest whose kind is cluster-scoped, if the family
// ignores it.
func (e *Engine) dropNamespace(it *Item) {
	if namespace := it.object.GetNamespace(); e.DropsNamespace && manifest.WrittenNamespace(namespace, it.namespaced) != namespace {
		it.object.SetNamespace("")
		it.Ref.Namespace = ""
		it.NamespaceDropped = true
	}
}

func (i Item) key() manifest.Key { return manifest.KeyOf(i.Ref) }

// target is the object on the member.
func (i Item) target() memberwatch.Object { return objectOf(i.resource, i.Ref) }

func objectOf(resource schema.GroupVersionResource, ref manifest.Ref) memberwatch.Object {
	return memberwatch.Object{Resource: resource, Namespace: ref.Namespace, Name: ref.Name}
}

// Plan returns one item per manifest of a work. It uses the cached plan if the manifests did not
// change. The error means that discovery on the member failed; a problem of a manifest is in its
// item.
func (e *Engine) Plan(work string, manifests [][]byte) ([]Item, error) {
	plans, sum := &e.caches.of(work).plans, sumOf(e.caches.seed, manifests)
	if items, ok := plans.of(sum, manifests); ok {
		return items, nil
	}
	items, err := e.plan(manifests)
	if err != nil {
		return nil, err
	}
	plans.keep(sum, items)
	return items, nil
}

// ForgetPlan discards the cached plan of a work.
func (e *Engine) ForgetPlan(work string) { e.caches.of(work).plans.keep(0, nil) }

func (e *Engine) plan(manifests [][]byte) ([]Item, error) {
	items := make([]Item, 0, len(manifests))
	seen := map[manifest.Key]int{}
	for ordinal, raw := range manifests {
		it, err := e.planOne(ordinal, raw)
		if err != nil {
			return nil, err
		}
		if first, twice := seen[it.key()]; twice && it.isReadable() && it.Refused == nil {
			it.Refused = &refusal.Refusal{Reason: Duplicated,
				Message: fmt.Sprintf("The manifest at place %d is for the same object: keep one of them", first)}
		}
		if it.isReadable() && it.Refused == nil {
			seen[it.key()] = ordinal
		}
		items = append(items, it)
	}
	return items, nil
}

func (e *Engine) planOne(ordinal int, raw []byte) (Item, error) {
	object, text, err := e.decode(raw)
	if err != nil {
		it := Item{Ref: manifest.Identify(ordinal, nil, ""), raw: raw, Refused: undecodable(err)}
		if errors.Is(err, manifest.ErrGenerateName) {
			it.Ref = manifest.IdentifyUnnamed(ordinal, raw)
		}
		return it, nil
	}
	it := Item{Ref: manifest.Identify(ordinal, object, ""), raw: raw, object: object, text: text, hash: hash.Of(text)}
	kind := object.GroupVersionKind()
	mapping, err := e.kinds.RESTMapping(kind.GroupKind(), kind.Version)
	if apimeta.IsNoMatchError(err) {
		it.UnknownKind = true
		it.Refused = cmp.Or(inAnotherVersion(e.kinds, kind), noKind(kind))
		return it, nil
	}
	if err != nil {
		return Item{}, fmt.Errorf("asking the member for kind %s: %w", kind, err)
	}
	it.resource = mapping.Resource
	it.Ref.Resource = mapping.Resource.Resource
	it.namespaced = mapping.Scope.Name() == apimeta.RESTScopeNameNamespace
	e.dropNamespace(&it)
	it.Refused = e.refuse(it)
	it.run, it.expires = runHash(object), availability.Expires(object)
	return it, nil
}

// refuse returns the refusal of a manifest for its content, before any request to the member.
func (e *Engine) refuse(it Item) *refusal.Refusal {
	if reason := e.family.Reserved(it.object); reason != "" {
		return &refusal.Refusal{Reason: Kept, Message: "The object " + reason}
	}
	if refused := wrongNamespace(it); refused != nil {
		return refused
	}
	return e.refuseLeave(it)
}

// decode decodes a manifest and encodes it in the form that is compared and cached.
func (e *Engine) decode(raw []byte) (*unstructured.Unstructured, []byte, error) {
	object, err := manifest.Decode(raw)
	if err != nil {
		return nil, nil, err
	}
	e.dropOwnAnnotations(object)
	text, err := manifest.Encode(object)
	return object, text, err
}

func undecodable(err error) *refusal.Refusal {
	reason := Undecodable
	if errors.Is(err, manifest.ErrGenerateName) {
		reason = GeneratedName
	}
	return &refusal.Refusal{Reason: reason, Message: "The manifest cannot be used: " + err.Error()}
}

func wrongNamespace(it Item) *refusal.Refusal {
	namespace := it.object.GetNamespace()
	switch {
	case it.namespaced && namespace == "":
		return &refusal.Refusal{Reason: NotAcceptable,
			Message: fmt.Sprintf("%s lives in a namespace: give the manifest a metadata.namespace", it.Ref.Kind)}
	case !it.namespaced && namespace != "":
		return &refusal.Refusal{Reason: NotAcceptable,
			Message: fmt.Sprintf("%s lives in no namespace: remove metadata.namespace from the manifest", it.Ref.Kind)}
	}
	return nil
}

// dropOwnAnnotations removes annotations that only the engine writes. A manifest has them if its
// object was itself placed by another hub.
func (e *Engine) dropOwnAnnotations(object *unstructured.Unstructured) {
	annotations := object.GetAnnotations()
	if len(annotations) == 0 {
		return
	}
	delete(annotations, e.HashAnnotation)
	delete(annotations, e.AppliedAnnotation)
	delete(annotations, e.TakenOverAnnotation)
	delete(annotations, e.RetainedAnnotation)
	delete(annotations, e.RetainedFromAnnotation)
	object.SetAnnotations(annotations)
}

// plans caches the last plan of a work. Decoding is the most expensive part of a reconcile without
// changes, and only changed objects need it. Decoded objects are not cached, since they take too
// much memory.
type plans struct {
	mu    sync.Mutex // guards what follows: the watch discards plans
	sum   uint64     // of the raw manifests
	items []Item     // without raw and decoded manifests; nil if there is no plan
}

// keep caches a plan, unless it can change without a change of the manifests.
func (p *plans) keep(sum uint64, items []Item) {
	kept := slices.Clone(items)
	for place := range kept {
		if kept[place].UnknownKind {
			kept = nil
			break
		}
		kept[place].raw, kept[place].object, kept[place].text = nil, nil, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sum, p.items = sum, kept
}

// of returns the cached plan if it was made from these manifests.
func (p *plans) of(sum uint64, manifests [][]byte) ([]Item, bool) {
	p.mu.Lock()
	kept, is := p.items, p.sum == sum
	p.mu.Unlock()
	if kept == nil || !is {
		return nil, false
	}
	items := slices.Clone(kept)
	for place := range items {
		items[place].raw = manifests[place]
	}
	return items, true
}

// sumOf hashes a list of manifests.
func sumOf(seed maphash.Seed, manifests [][]byte) uint64 {
	var sum maphash.Hash
	sum.SetSeed(seed)
	for _, raw := range manifests {
		maphash.WriteComparable(&sum, len(raw))
		_, _ = sum.Write(raw) // it never fails
	}
	return sum.Sum64()
}

// refuseLeave returns the refusal of a manifest whose annotation is invalid.
func (e *Engine) refuseLeave(it Item) *refusal.Refusal {
	text := it.object.GetAnnotations()[e.LeaveAnnotation]
	if e.LeaveAnnotation == "" || text == "" || text == leaveNothing {
		return nil
	}
	if _, err := parsePointers(text); err != nil {
		return &refusal.Refusal{Reason: NotAcceptable, Message: Shorten(fmt.Sprintf("Annotation %s: %s", e.LeaveAnnotation, err))}
	}
	return nil
}

// runHash identifies a run; empty for objects that do not run to completion. It ignores fields that
// do not change what runs: metadata and the TTL.
func runHash(object *unstructured.Unstructured) string {
	if !availability.RunsToCompletion(object) {
		return ""
	}
	spec, _, _ := unstructured.NestedMap(object.Object, "spec")
	spec = maps.Clone(spec)
	delete(spec, "ttlSecondsAfterFinished")
	text, err := manifest.Encode(&unstructured.Unstructured{Object: map[string]any{"kind": object.GetKind(), "spec": spec}})
	if err != nil {
		return "" // cannot fail: it was encoded before
	}
	return hash.Of(text)
}
