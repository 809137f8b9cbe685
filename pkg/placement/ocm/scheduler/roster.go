// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	"fleetgate.io/fleetgate/pkg/placement/framework"
	"fleetgate.io/fleetgate/pkg/placement/ocm/scheduler/clustercel"
)

// roster maintains, from events, the clusters, who may choose from which, and what each Placement
// reads. From these it follows which Placements a change concerns.
type roster struct {
	mu sync.RWMutex // guards the following fields
	// entries are by name. They are replaced, never changed.
	entries map[string]*entry
	// order is the entries by name; nil after any was added or removed.
	order []*entry
	// sets are the label selectors of sets.
	sets map[string]labels.Selector
	// bound are the names of bindings, by namespace.
	bound map[string]sets.Set[string]
	// sheets are scores by cluster and name.
	sheets map[string]map[string]framework.ScoreSheet
	// wishes are those of all decided Placements, by namespace and name.
	wishes map[string]map[string]*wish
}

func newRoster() *roster {
	return &roster{entries: map[string]*entry{}, sets: map[string]labels.Selector{}, bound: map[string]sets.Set[string]{},
		sheets: map[string]map[string]framework.ScoreSheet{}, wishes: map[string]map[string]*wish{}}
}

// entry is a cluster.
type entry struct {
	cluster framework.Cluster
	source  *source
}

// source is a cluster's object, as expressions read it.
type source struct {
	object *clusterv1.ManagedCluster
	sheets map[string]framework.ScoreSheet

	once   sync.Once
	fields map[string]any
	seen   *clustercel.Cluster
}

func newEntry(object *clusterv1.ManagedCluster, sheets map[string]framework.ScoreSheet) *entry {
	from := &source{object: object, sheets: sheets}
	cluster := framework.Cluster{
		Name: object.Name, Labels: object.Labels, Properties: make(map[string]string, len(object.Status.ClusterClaims)),
		Leaving: object.DeletionTimestamp != nil, Scores: sheets, Source: from,
		Capacity: quantities(object.Status.Capacity), Allocatable: quantities(object.Status.Allocatable),
	}
	for _, claim := range object.Status.ClusterClaims {
		cluster.Properties[claim.Name] = claim.Value
	}
	for _, t := range object.Spec.Taints {
		cluster.Taints = append(cluster.Taints, framework.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect), Added: t.TimeAdded.Time})
	}
	return &entry{cluster: cluster, source: from}
}

// quantities are the resources that scores use.
func quantities(list clusterv1.ResourceList) map[string]resource.Quantity {
	known := map[string]resource.Quantity{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if quantity, ok := list[name]; ok {
			known[string(name)] = quantity
		}
	}
	return known
}

func (s *source) read() {
	s.once.Do(func() {
		// It cannot fail for a typed object.
		s.fields, _ = runtime.DefaultUnstructuredConverter.ToUnstructured(s.object)
		s.seen = clustercel.NewCluster(s.fields, s.scores)
	})
}

// expressed is the cluster for expressions.
func (s *source) expressed() *clustercel.Cluster {
	s.read()
	return s.seen
}

func (s *source) scores(sheet string) ([]clustercel.Score, bool) {
	values, ok := s.sheets[sheet]
	var scores []clustercel.Score
	for name, value := range values.Values {
		scores = append(scores, clustercel.Score{Name: name, Value: value})
	}
	slices.SortFunc(scores, func(a, b clustercel.Score) int { return strings.Compare(a.Name, b.Name) })
	return scores, ok
}

// setCluster adds or updates a cluster.
func (r *roster) setCluster(object *clusterv1.ManagedCluster) (was, is *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was = r.entries[object.Name]
	is = newEntry(object, r.sheets[object.Name])
	r.replace(was, is)
	return was, is
}

func (r *roster) replace(was, is *entry) {
	name := is.cluster.Name
	r.entries[name] = is
	if was == nil {
		r.order = nil
		return
	}
	if at, ok := slices.BinarySearchFunc(r.order, name, compareName); ok {
		r.order[at] = is
	}
}

func compareName(e *entry, name string) int { return strings.Compare(e.cluster.Name, name) }

// removeCluster removes a cluster.
func (r *roster) removeCluster(name string) (was *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was = r.entries[name]
	delete(r.entries, name)
	r.order = nil
	return was
}

// setSheet adds or updates a cluster's scores; nil removes them.
func (r *roster) setSheet(cluster, name string, object *clusterv1alpha1.AddOnPlacementScore) (was, is framework.ScoreSheet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was = r.sheets[cluster][name]
	sheets := make(map[string]framework.ScoreSheet, len(r.sheets[cluster])+1)
	for other, sheet := range r.sheets[cluster] {
		sheets[other] = sheet
	}
	delete(sheets, name)
	if object != nil {
		is.Values = make(map[string]int64, len(object.Status.Scores))
		for _, score := range object.Status.Scores {
			is.Values[score.Name] = int64(score.Value)
		}
		if object.Status.ValidUntil != nil {
			is.Until = object.Status.ValidUntil.Time
		}
		sheets[name] = is
	}
	r.sheets[cluster] = sheets
	if len(sheets) == 0 {
		delete(r.sheets, cluster)
	}
	if known := r.entries[cluster]; known != nil {
		r.replace(known, newEntry(known.source.object, sheets))
	}
	return was, is
}

// setSet adds or updates a set; nil removes it. It reports whether anything changed.
func (r *roster) setSet(name string, object *clusterv1beta2.ManagedClusterSet) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.sets[name]
	if object == nil {
		delete(r.sets, name)
		return was != nil
	}
	is := selectorOf(object)
	r.sets[name] = is
	// Selectors of nothing and of everything have the same string.
	return was == nil || was.String() != is.String() || was.Empty() != is.Empty()
}

// selectorOf is the label selector of a set. An invalid one matches nothing.
func selectorOf(set *clusterv1beta2.ManagedClusterSet) labels.Selector {
	selector := &set.Spec.ClusterSelector
	if selector.SelectorType == clusterv1beta2.LabelSelector {
		if selector.LabelSelector == nil {
			return labels.Nothing()
		}
		if selected, err := metav1.LabelSelectorAsSelector(selector.LabelSelector); err == nil {
			return selected
		}
		return labels.Nothing()
	}
	return labels.SelectorFromSet(labels.Set{clusterv1.ClusterSetLabel: set.Name})
}

// setBinding records whether a set is bound to a namespace. It reports whether that has changed.
func (r *roster) setBinding(namespace, set string, there bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bound[namespace].Has(set) == there {
		return false
	}
	if !there {
		r.bound[namespace].Delete(set)
		return true
	}
	if r.bound[namespace] == nil {
		r.bound[namespace] = sets.New[string]()
	}
	r.bound[namespace].Insert(set)
	return true
}

// wishOf is a Placement's wish, if it was read from that generation.
func (r *roster) wishOf(key types.NamespacedName) *wish {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.wishes[key.Namespace][key.Name]
}

// setWish registers what a Placement reads; nil removes it.
func (r *roster) setWish(key types.NamespacedName, w *wish) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w == nil {
		delete(r.wishes[key.Namespace], key.Name)
		return
	}
	if r.wishes[key.Namespace] == nil {
		r.wishes[key.Namespace] = map[string]*wish{}
	}
	r.wishes[key.Namespace][key.Name] = w
}

// available is what a Placement can choose from.
type available struct {
	// bound counts the existing sets that are bound to the namespace, eligible are those of them
	// that it chooses from.
	bound    int
	eligible []string
	clusters []framework.Cluster
}

// availableTo finds what a Placement can choose from, sorted by the clusters' names.
func (r *roster) availableTo(namespace string, w *wish) available {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.order == nil {
		r.order = make([]*entry, 0, len(r.entries))
		for _, e := range r.entries {
			r.order = append(r.order, e)
		}
		slices.SortFunc(r.order, func(a, b *entry) int { return compareName(a, b.cluster.Name) })
	}
	var a available
	var selectors []labels.Selector
	a.bound, a.eligible, selectors = r.eligible(namespace, w)
	if len(selectors) > 0 {
		a.clusters = make([]framework.Cluster, 0, len(r.order))
	}
	for _, e := range r.order {
		if !e.cluster.Leaving && isIn(e, selectors) {
			a.clusters = append(a.clusters, e.cluster)
		}
	}
	return a
}

// eligible are the sets that a Placement chooses from, in order.
func (r *roster) eligible(namespace string, w *wish) (bound int, names []string, selectors []labels.Selector) {
	for _, set := range sets.List(r.bound[namespace]) {
		selector, there := r.sets[set]
		if !there {
			continue
		}
		bound++
		if w.names(set) {
			names, selectors = append(names, set), append(selectors, selector)
		}
	}
	return bound, names, selectors
}

// hasEligible is true if there is a set that a Placement chooses from.
func (r *roster) hasEligible(namespace string, w *wish) bool {
	_, names, _ := r.eligible(namespace, w)
	return len(names) > 0
}

func isIn(e *entry, selectors []labels.Selector) bool {
	return e != nil && slices.ContainsFunc(selectors, func(s labels.Selector) bool { return s.Matches(labels.Set(e.cluster.Labels)) })
}
