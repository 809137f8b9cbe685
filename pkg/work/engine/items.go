// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"fleetgate.io/fleetgate/pkg/work/engine/memberwatch"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// applyItems watches the objects of items and entries, and runs the items.
func (e *Engine) applyItems(ctx context.Context, w Work, entries []Entry, items []Item) []ManifestResult {
	missingNamespaces := &e.caches.of(w.Name).missingNamespaces
	follow := func() {
		e.watch.Follow(w.Name, append(followed(items, entries), missingNamespaces.namespaces()...), groupsOf(items))
	}
	follow()
	cache := &e.caches.of(w.Name).objects
	cache.begin(items, w.Under, e.clock.Now(), e.tuning.Resync)
	with := *e
	if w.As != nil {
		with.member = w.As
	}
	results := with.run(ctx, task{
		Work: w, cache: cache, entries: entries, runs: runsIn(entries, items),
		observed:  func(it Item) memberwatch.Observation { return e.watch.Observed(it.target()) },
		lastState: e.watch.LastState,
	}, items)
	if missingNamespaces.note(results) {
		follow()
	}
	if slices.ContainsFunc(results, func(out ManifestResult) bool { return out.unserved }) {
		e.kinds.renew()
		e.ForgetPlan(w.Name)
	}
	return results
}

// followed lists the objects whose changes trigger a reconcile of the work: those to apply and
// those to remove.
func followed(items []Item, entries []Entry) []memberwatch.Object {
	seen := sets.Set[memberwatch.Object]{}
	var objects []memberwatch.Object
	add := func(resource schema.GroupVersionResource, ref manifest.Ref) {
		object := objectOf(resource, ref)
		if resource.Resource != "" && !seen.Has(object) {
			seen.Insert(object)
			objects = append(objects, object)
		}
	}
	for _, it := range items {
		add(it.resource, it.Ref)
	}
	for _, entry := range entries {
		add(entry.GroupVersionResource(), entry.Ref)
	}
	return objects
}

// groupsOf lists the API groups of the items. A new kind in one of them may be the kind that an
// item lacks.
func groupsOf(items []Item) []string {
	groups := sets.New[string]()
	for _, it := range items {
		if it.Ref.Group != "" {
			groups.Insert(it.Ref.Group)
		}
	}
	return sets.List(groups)
}

// inWaves returns the indexes of applicable items, wave by wave.
func (e *Engine) inWaves(items []Item) [][]int {
	byWave := make([][]int, len(e.Waves)+1)
	for place, it := range items {
		if it.Refused != nil {
			continue
		}
		wave := e.Waves.Of(it.resource.GroupResource())
		byWave[wave] = append(byWave[wave], place)
	}
	return slices.DeleteFunc(byWave, func(places []int) bool { return len(places) == 0 })
}

// runsIn returns the ledger entries of items that run to completion.
func runsIn(entries []Entry, items []Item) map[manifest.Key]Entry {
	wanted := map[manifest.Key]bool{}
	for _, it := range items {
		if it.run != "" {
			wanted[it.key()] = true
		}
	}
	runs := map[manifest.Key]Entry{}
	if len(wanted) == 0 {
		return runs
	}
	for _, entry := range entries {
		if key := manifest.KeyOf(entry.Ref); wanted[key] {
			runs[key] = entry
		}
	}
	return runs
}

// task is a work whose manifests are being applied.
type task struct {
	Work
	cache *objects
	// entries is the ledger, and runs the part with objects that run to completion.
	entries []Entry
	runs    map[manifest.Key]Entry
	// observed returns what the watch knows of an object.
	observed func(Item) memberwatch.Observation
	// lastState returns the last seen state of an expiring object; nil if unknown.
	lastState func(types.UID) *unstructured.Unstructured
}

// had reports whether the ledger contains an object with this UID.
func (t task) had(uid types.UID) bool {
	return slices.ContainsFunc(t.entries, func(entry Entry) bool { return entry.UID == uid })
}

// run applies the items wave by wave. Manifests are in the order of the items.
func (e *Engine) run(ctx context.Context, t task, items []Item) []ManifestResult {
	results := RefuseAll(items, nil).Manifests
	for _, wave := range e.inWaves(items) {
		var group errgroup.Group
		group.SetLimit(e.tuning.Manifests)
		for _, place := range wave {
			group.Go(func() error {
				results[place] = e.process(ctx, t, items[place])
				return nil
			})
		}
		_ = group.Wait() // results carry the errors
	}
	return results
}

// process applies one manifest, unless the object is unchanged according to the watch.
func (e *Engine) process(ctx context.Context, t task, it Item) ManifestResult {
	out := e.applyOne(ctx, t, it)
	out.Contest, out.ContestEndsIn = t.cache.contest(it, e.clock.Now())
	return out
}

// missingNamespaces holds the namespaces that objects of one work need and that do not exist on the member.
// The engine watches them: their creation triggers a reconcile before the next retry.
type missingNamespaces struct {
	mu    sync.Mutex // guards names
	names []string
}

// namespaces returns the objects to watch.
func (l *missingNamespaces) namespaces() []memberwatch.Object {
	l.mu.Lock()
	defer l.mu.Unlock()
	objects := make([]memberwatch.Object, 0, len(l.names))
	for _, name := range l.names {
		objects = append(objects, memberwatch.Object{Resource: corev1.SchemeGroupVersion.WithResource("namespaces"), Name: name})
	}
	return objects
}

// note stores the namespaces that results lack, and reports whether they changed.
func (l *missingNamespaces) note(results []ManifestResult) bool {
	var names []string
	for _, out := range results {
		if out.namespaceMissing {
			names = append(names, out.Ref.Namespace)
		}
	}
	slices.SortFunc(names, strings.Compare)
	names = slices.Compact(names)
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Equal(l.names, names) {
		return false
	}
	l.names = names
	return true
}
