// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/apply/memberwatch"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// item is one manifest of a Work on its way to the member.
type item struct {
	id placementv1beta1.WorkResourceIdentifier
	// raw is the manifest as it stands in the Work.
	raw []byte
	// object is what it decodes to, and text that as JSON. Both are nil if it cannot be
	// decoded, and while nobody needs them (decoded).
	object *unstructured.Unstructured
	text   []byte
	// hash is that of text.
	hash string
	// resource is where objects of the kind are found on the member.
	resource   schema.GroupVersionResource
	namespaced bool
	// unknownKind is set when the member has no such kind.
	unknownKind bool
	// refused is set when it is clear without asking for the object that the
	// manifest is not applied.
	refused *refusal
}

// refusal is why a manifest is not applied: a reason for programs, a message
// for its author.
type refusal struct {
	reason  string
	message string
}

// isReadable reports whether the manifest can be decoded.
func (i item) isReadable() bool { return i.id.Kind != "" }

// decoded is the item with its object. Of a plan that was kept there is only the raw
// manifest, which was decoded before.
func (i item) decoded() (item, error) {
	if i.object != nil {
		return i, nil
	}
	var err error
	i.object, i.text, err = decode(i.raw)
	return i, err
}

func (i item) key() manifest.Key { return manifest.KeyOf(i.id) }

// target is the object on the member.
func (i item) target() memberwatch.Object { return objectOf(i.resource, i.id) }

// kindFinder tells where objects of a kind are found; apimeta.RESTMapper is one.
type kindFinder interface {
	RESTMapping(schema.GroupKind, ...string) (*apimeta.RESTMapping, error)
}

// plan makes an item of every manifest. What is in the namespaces of the house, or is
// reserved otherwise, is refused. The error is a member that could not be
// asked; what is wrong with a manifest is in its item.
func plan(manifests []placementv1beta1.Manifest, kinds kindFinder, house ...string) ([]item, error) {
	items := make([]item, 0, len(manifests))
	seen := map[manifest.Key]int{}
	for ordinal, m := range manifests {
		it, err := planOne(ordinal, m.Raw, kinds, house)
		if err != nil {
			return nil, err
		}
		if first, twice := seen[it.key()]; twice && it.isReadable() && it.refused == nil {
			it.refused = &refusal{placementv1beta1.ReasonDuplicated,
				fmt.Sprintf("The manifest at place %d is for the same object: keep one of them", first)}
		}
		if it.isReadable() && it.refused == nil {
			seen[it.key()] = ordinal
		}
		items = append(items, it)
	}
	return items, nil
}

func planOne(ordinal int, raw []byte, kinds kindFinder, house []string) (item, error) {
	object, text, err := decode(raw)
	if err != nil {
		return item{id: manifest.Identify(ordinal, nil, ""), raw: raw, refused: undecodable(err)}, nil
	}
	it := item{id: manifest.Identify(ordinal, object, ""), raw: raw, object: object, text: text, hash: manifest.Hash(text)}
	kind := object.GroupVersionKind()
	mapping, err := kinds.RESTMapping(kind.GroupKind(), kind.Version)
	if apimeta.IsNoMatchError(err) {
		it.unknownKind = true
		it.refused = &refusal{placementv1beta1.ReasonManifestApplyFailed, fmt.Sprintf(
			"The member has no kind %s in %s: install its CustomResourceDefinition, the manifest is applied as soon as it is there",
			kind.Kind, kind.GroupVersion())}
		return it, nil
	}
	if err != nil {
		return item{}, fmt.Errorf("asking the member for kind %s: %w", kind, err)
	}
	it.resource = mapping.Resource
	it.id.Resource = mapping.Resource.Resource
	it.namespaced = mapping.Scope.Name() == apimeta.RESTScopeNameNamespace
	it.refused = cmp.Or(reserved(it, house), wrongNamespace(it))
	return it, nil
}

// decode reads a manifest, and writes it again as it is compared and remembered.
func decode(raw []byte) (*unstructured.Unstructured, []byte, error) {
	object, err := manifest.Decode(raw)
	if err != nil {
		return nil, nil, err
	}
	dropOwnAnnotations(object)
	text, err := manifest.Encode(object)
	return object, text, err
}

func undecodable(err error) *refusal {
	reason := placementv1beta1.ReasonDecodingErred
	if errors.Is(err, manifest.ErrGenerateName) {
		reason = placementv1beta1.ReasonFoundGenerateName
	}
	return &refusal{reason, "The manifest cannot be used: " + err.Error()}
}

func reserved(it item, house []string) *refusal {
	if reason := manifest.Reserved(it.object, house...); reason != "" {
		return &refusal{placementv1beta1.ReasonReserved, reason}
	}
	return nil
}

func wrongNamespace(it item) *refusal {
	namespace := it.object.GetNamespace()
	switch {
	case it.namespaced && namespace == "":
		return &refusal{placementv1beta1.ReasonManifestApplyFailed,
			fmt.Sprintf("%s lives in a namespace: give the manifest a metadata.namespace", it.id.Kind)}
	case !it.namespaced && namespace != "":
		return &refusal{placementv1beta1.ReasonManifestApplyFailed,
			fmt.Sprintf("%s lives in no namespace: remove metadata.namespace from the manifest", it.id.Kind)}
	}
	return nil
}

// dropOwnAnnotations removes the annotations that this package writes: in a
// manifest they come from an object that another hub placed.
func dropOwnAnnotations(object *unstructured.Unstructured) {
	annotations := object.GetAnnotations()
	if len(annotations) == 0 {
		return
	}
	delete(annotations, placementv1beta1.ManifestHashAnnotation)
	delete(annotations, placementv1beta1.LastAppliedConfigAnnotation)
	object.SetAnnotations(annotations)
}

// keptPlan is what is remembered of a plan: reading manifests costs more than all else
// in a look at a Work of which nothing has changed, and is needed only for those whose
// objects have. The objects themselves would take too much memory.
type keptPlan struct {
	sum   uint64 // of the raw manifests
	items []item // without them, and without what they decode to
}

// keep is a plan to remember; empty if it may become another without the manifests
// changing.
func keep(sum uint64, items []item) keptPlan {
	kept := keptPlan{sum: sum, items: slices.Clone(items)}
	for place := range kept.items {
		it := &kept.items[place]
		if it.unknownKind {
			return keptPlan{}
		}
		it.raw, it.object, it.text = nil, nil, nil
	}
	return kept
}

// of is the plan for the manifests if it is the one that was kept.
func (k keptPlan) of(sum uint64, manifests []placementv1beta1.Manifest) ([]item, bool) {
	if k.items == nil || k.sum != sum {
		return nil, false
	}
	items := slices.Clone(k.items)
	for place := range items {
		items[place].raw = manifests[place].Raw
	}
	return items, true
}

// sumOf tells lists of manifests apart.
func sumOf(seed maphash.Seed, manifests []placementv1beta1.Manifest) uint64 {
	var sum maphash.Hash
	sum.SetSeed(seed)
	for _, m := range manifests {
		maphash.WriteComparable(&sum, len(m.Raw))
		_, _ = sum.Write(m.Raw) // it never fails
	}
	return sum.Sum64()
}

// inWaves lists the places of the items that can be applied, wave by wave.
func inWaves(items []item) [][]int {
	byWave := make([][]int, manifest.LastWave+1)
	for place, it := range items {
		if it.refused != nil {
			continue
		}
		wave := manifest.Wave(it.resource.GroupResource())
		byWave[wave] = append(byWave[wave], place)
	}
	return slices.DeleteFunc(byWave, func(places []int) bool { return len(places) == 0 })
}

// groupsOf lists the API groups of the items: when a kind of one of them is
// installed on the member, it may be the one that an item lacks.
func groupsOf(items []item) []string {
	groups := sets.New[string]()
	for _, it := range items {
		if it.id.Group != "" {
			groups.Insert(it.id.Group)
		}
	}
	return sets.List(groups)
}
