// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package memberwatch

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Object identifies an object on the member. Namespace is empty for a cluster-scoped one.
type Object struct {
	Resource  schema.GroupVersionResource
	Namespace string
	Name      string
}

// interest maps works to the objects that they follow. It is not safe for concurrent use.
type interest struct {
	objects map[string][]Object                 // by work
	works   map[Object]map[string]struct{}      // the inverse
	counted map[schema.GroupVersionResource]int // references in objects; its keys are the resources to watch
	kinds   map[string][]string                 // API groups of kinds that a work waits for
	waiting map[string]map[string]struct{}      // the inverse
}

func newInterest() *interest {
	return &interest{
		objects: map[string][]Object{},
		works:   map[Object]map[string]struct{}{},
		counted: map[schema.GroupVersionResource]int{},
		kinds:   map[string][]string{},
		waiting: map[string]map[string]struct{}{},
	}
}

// set replaces the interest of a work. Empty lists delete it.
func (i *interest) set(work string, objects []Object, groups []string) {
	i.count(i.objects[work], -1)
	i.count(objects, 1)
	replace(i.objects, i.works, work, objects)
	replace(i.kinds, i.waiting, work, groups)
}

func (i *interest) count(objects []Object, by int) {
	for _, object := range objects {
		i.counted[object.Resource] += by
		if i.counted[object.Resource] == 0 {
			delete(i.counted, object.Resource)
		}
	}
}

// replace sets the targets of a work in both directions.
func replace[K comparable](forward map[string][]K, inverse map[K]map[string]struct{}, work string, to []K) {
	for _, k := range forward[work] {
		delete(inverse[k], work)
		if len(inverse[k]) == 0 {
			delete(inverse, k)
		}
	}
	delete(forward, work)
	if len(to) == 0 {
		return
	}
	forward[work] = slices.Clone(to)
	for _, k := range to {
		if inverse[k] == nil {
			inverse[k] = map[string]struct{}{}
		}
		inverse[k][work] = struct{}{}
	}
}

// in lists the works that follow an object.
func (i *interest) in(object Object) []string {
	return slices.Sorted(maps.Keys(i.works[object]))
}

// inResource lists the works that follow any object of a resource.
func (i *interest) inResource(resource schema.GroupVersionResource) []string {
	found := map[string]struct{}{}
	for object, works := range i.works {
		if object.Resource == resource {
			maps.Copy(found, works)
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// resources is the set of resources of all followed objects.
func (i *interest) resources() map[schema.GroupVersionResource]struct{} {
	found := make(map[schema.GroupVersionResource]struct{}, len(i.counted))
	for resource := range i.counted {
		found[resource] = struct{}{}
	}
	return found
}
