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

// clusterCache holds the clusters, the sets that are bound to each namespace, and what each Placement
// reads. Events update it. From these it derives which Placements a change concerns.
type clusterCache struct {
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
	// placements are all decided Placements, by namespace and name.
	placements map[string]map[string]*parsedPlacement
}

func newClusterCache() *clusterCache {
	return &clusterCache{entries: map[string]*entry{}, sets: map[string]labels.Selector{}, bound: map[string]sets.Set[string]{},
		sheets: map[string]map[string]framework.ScoreSheet{}, placements: map[string]map[string]*parsedPlacement{}}
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
func (c *clusterCache) setCluster(object *clusterv1.ManagedCluster) (was, is *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	was = c.entries[object.Name]
	is = newEntry(object, c.sheets[object.Name])
	c.replace(was, is)
	return was, is
}

func (c *clusterCache) replace(was, is *entry) {
	name := is.cluster.Name
	c.entries[name] = is
	if was == nil {
		c.order = nil
		return
	}
	if at, ok := slices.BinarySearchFunc(c.order, name, compareName); ok {
		c.order[at] = is
	}
}

func compareName(e *entry, name string) int { return strings.Compare(e.cluster.Name, name) }

func (c *clusterCache) removeCluster(name string) (was *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	was = c.entries[name]
	delete(c.entries, name)
	c.order = nil
	return was
}

// setSheet adds or updates a cluster's scores; nil removes them.
func (c *clusterCache) setSheet(cluster, name string, object *clusterv1alpha1.AddOnPlacementScore) (was, is framework.ScoreSheet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	was = c.sheets[cluster][name]
	sheets := make(map[string]framework.ScoreSheet, len(c.sheets[cluster])+1)
	for other, sheet := range c.sheets[cluster] {
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
	c.sheets[cluster] = sheets
	if len(sheets) == 0 {
		delete(c.sheets, cluster)
	}
	if known := c.entries[cluster]; known != nil {
		c.replace(known, newEntry(known.source.object, sheets))
	}
	return was, is
}

// setSet adds or updates a set; nil removes it. It reports whether anything changed.
func (c *clusterCache) setSet(name string, object *clusterv1beta2.ManagedClusterSet) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.sets[name]
	if object == nil {
		delete(c.sets, name)
		return was != nil
	}
	is := selectorOf(object)
	c.sets[name] = is
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
func (c *clusterCache) setBinding(namespace, set string, there bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bound[namespace].Has(set) == there {
		return false
	}
	if !there {
		c.bound[namespace].Delete(set)
		return true
	}
	if c.bound[namespace] == nil {
		c.bound[namespace] = sets.New[string]()
	}
	c.bound[namespace].Insert(set)
	return true
}

// parsedOf returns a parsed Placement, or nil. The caller compares its UID and generation.
func (c *clusterCache) parsedOf(key types.NamespacedName) *parsedPlacement {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.placements[key.Namespace][key.Name]
}

// setParsed stores a parsed Placement; nil removes it.
func (c *clusterCache) setParsed(key types.NamespacedName, p *parsedPlacement) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p == nil {
		delete(c.placements[key.Namespace], key.Name)
		return
	}
	if c.placements[key.Namespace] == nil {
		c.placements[key.Namespace] = map[string]*parsedPlacement{}
	}
	c.placements[key.Namespace][key.Name] = p
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
func (c *clusterCache) availableTo(namespace string, p *parsedPlacement) available {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.order == nil {
		c.order = make([]*entry, 0, len(c.entries))
		for _, e := range c.entries {
			c.order = append(c.order, e)
		}
		slices.SortFunc(c.order, func(a, b *entry) int { return compareName(a, b.cluster.Name) })
	}
	var a available
	var selectors []labels.Selector
	a.bound, a.eligible, selectors = c.eligible(namespace, p)
	if len(selectors) > 0 {
		a.clusters = make([]framework.Cluster, 0, len(c.order))
	}
	for _, e := range c.order {
		if !e.cluster.Leaving && isIn(e, selectors) {
			a.clusters = append(a.clusters, e.cluster)
		}
	}
	return a
}

// eligible are the sets that a Placement chooses from, in order.
func (c *clusterCache) eligible(namespace string, p *parsedPlacement) (bound int, names []string, selectors []labels.Selector) {
	for _, set := range sets.List(c.bound[namespace]) {
		selector, there := c.sets[set]
		if !there {
			continue
		}
		bound++
		if p.names(set) {
			names, selectors = append(names, set), append(selectors, selector)
		}
	}
	return bound, names, selectors
}

// hasEligible is true if there is a set that a Placement chooses from.
func (c *clusterCache) hasEligible(namespace string, p *parsedPlacement) bool {
	_, names, _ := c.eligible(namespace, p)
	return len(names) > 0
}

func isIn(e *entry, selectors []labels.Selector) bool {
	return e != nil && slices.ContainsFunc(selectors, func(s labels.Selector) bool { return s.Matches(labels.Set(e.cluster.Labels)) })
}
