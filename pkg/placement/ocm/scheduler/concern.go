// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"fleetgate.io/fleetgate/pkg/placement/framework"
)

// change is the difference between two states of a cluster.
type change struct {
	was, is *entry
	// all is true if it was added, removed, or is being deleted.
	all            bool
	labels, claims []string
	taints         bool
	resources      bool
}

func changeOf(was, is *entry) change {
	c := change{was: was, is: is, all: was == nil || is == nil}
	if c.all {
		return c
	}
	a, b := &was.cluster, &is.cluster
	c.all = a.Leaving != b.Leaving
	c.labels, c.claims = differing(a.Labels, b.Labels), differing(a.Properties, b.Properties)
	c.taints = !slices.EqualFunc(a.Taints, b.Taints, func(a, b framework.Taint) bool {
		same := a.Added.Equal(b.Added)
		a.Added, b.Added = time.Time{}, time.Time{}
		return same && a == b
	})
	c.resources = !equality.Semantic.DeepEqual(a.Capacity, b.Capacity) || !equality.Semantic.DeepEqual(a.Allocatable, b.Allocatable)
	return c
}

func differing(a, b map[string]string) []string {
	if maps.Equal(a, b) {
		return nil
	}
	var keys []string
	for key, value := range a {
		if other, ok := b[key]; !ok || other != value {
			keys = append(keys, key)
		}
	}
	for key := range b {
		if _, ok := a[key]; !ok {
			keys = append(keys, key)
		}
	}
	return keys
}

// concerns is true if a Placement reads anything of the change.
func (c *change) concerns(p *parsedPlacement) bool {
	if c.all || c.taints {
		return true
	}
	if c.resources && p.reads.resources || p.reads.labels.HasAny(c.labels...) || p.reads.claims.HasAny(c.claims...) {
		return true
	}
	if p.reads.cel.IsEmpty() {
		return false
	}
	c.was.source.read()
	c.is.source.read()
	return p.reads.cel.Differ(c.was.source.fields, c.is.source.fields)
}

// concernedBy are the Placements to decide again because of a cluster.
func (r *clusterCache) concernedBy(was, is *entry) []types.NamespacedName {
	c := changeOf(was, is)
	// Only labels decide which sets a cluster is in.
	moves := c.all || len(c.labels) > 0
	return r.whose(func(p *parsedPlacement) bool { return moves || c.concerns(p) }, func(p *parsedPlacement, selectors []labels.Selector) bool {
		before, after := isIn(was, selectors), isIn(is, selectors)
		return before != after || before && c.concerns(p)
	})
}

// concernedBySheet are those to decide again because of scores of a cluster. An extended validity
// concerns none.
func (r *clusterCache) concernedBySheet(cluster, name string, was, is framework.ScoreSheet, now time.Time) []types.NamespacedName {
	ends := was.Valid(now) != is.Valid(now) || !is.Until.IsZero() && is.Until.After(now) && (was.Until.IsZero() || is.Until.Before(was.Until))
	// For an expression, an empty sheet differs from no sheet.
	comes := (was.Values == nil) != (is.Values == nil)
	differs := func(p *parsedPlacement) bool {
		names := sets.List(p.reads.scores[name])
		return len(names) > 0 && ends || slices.ContainsFunc(names, func(score string) bool { return was.Values[score] != is.Values[score] }) ||
			p.reads.cel.ReadsScores(name) && (!maps.Equal(was.Values, is.Values) || comes)
	}
	return r.whose(differs, func(_ *parsedPlacement, selectors []labels.Selector) bool { return isIn(r.entries[cluster], selectors) })
}

// concernedBySet are the Placements that choose from a set. It includes those that can choose from
// none, because they report whether that is because none is bound. If namespace is not empty, only
// its Placements count.
func (r *clusterCache) concernedBySet(set, namespace string) []types.NamespacedName {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var keys []types.NamespacedName
	for in, placements := range r.placements {
		if namespace != "" && in != namespace || namespace == "" && !r.bound[in].Has(set) {
			continue
		}
		for name, p := range placements {
			if p.names(set) || !r.hasEligible(in, p) {
				keys = append(keys, types.NamespacedName{Namespace: in, Name: name})
			}
		}
	}
	return keys
}

// whose are the Placements that may be concerned, and are, given the clusters that they choose
// from.
func (r *clusterCache) whose(may func(p *parsedPlacement) bool, are func(p *parsedPlacement, selectors []labels.Selector) bool) []types.NamespacedName {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var keys []types.NamespacedName
	for namespace, placements := range r.placements {
		if r.bound[namespace].Len() == 0 {
			continue
		}
		for name, p := range placements {
			if !may(p) {
				continue
			}
			if _, _, selectors := r.eligible(namespace, p); are(p, selectors) {
				keys = append(keys, types.NamespacedName{Namespace: namespace, Name: name})
			}
		}
	}
	return keys
}
