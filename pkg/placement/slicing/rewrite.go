// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package slicing

import (
	"errors"

	"k8s.io/apimachinery/pkg/util/sets"
)

// Slice is the content of one object of a decision.
type Slice struct {
	Name     string
	Clusters []string
}

// Writer has the writes that Rewrite needs.
type Writer struct {
	Put func(Slice) error
	// Park creates an additional temporary object, and returns its name.
	Park   func(clusters []string) (name string, err error)
	Remove func(name string) error
}

// Rewrite writes the current slices of a decision, and removes the previous ones. A reader between two
// writes finds every cluster that the decision keeps, because consumers delete their objects for a
// cluster that is in no slice. So a cluster joins its new slice before it leaves the old one, and
// slices are removed last. After a failed write no cluster leaves a slice on which it may depend.
func Rewrite(before, after []Slice, w Writer) error {
	r := newRewrite(before, after, w)
	for pending := after; len(pending) > 0; {
		rest := r.putAll(pending)
		if len(rest) < len(pending) {
			pending = rest
			continue
		}
		// Every slice waits for another one. If a write failed, they wait for the next attempt.
		// Otherwise clusters change places in a circle.
		if len(r.errs) > 0 || !r.park(rest[0]) {
			break
		}
	}
	r.removeAll(before, after)
	return errors.Join(r.errs...)
}

// rewrite tracks the content of slices during the writes.
type rewrite struct {
	Writer
	// kept are the clusters that the decision has before and afterwards.
	kept sets.Set[string]
	// clustersOf are the clusters of each object; counts is the number of objects that certainly have a
	// cluster.
	clustersOf map[string][]string
	counts     map[string]int
	parked     []string
	errs       []error
}

func newRewrite(before, after []Slice, w Writer) *rewrite {
	r := &rewrite{Writer: w, kept: sets.New[string](), clustersOf: make(map[string][]string, len(before)), counts: map[string]int{}}
	wanted := sets.New[string]()
	for _, s := range after {
		wanted.Insert(s.Clusters...)
	}
	for _, s := range before {
		r.hold(s)
		for _, cluster := range s.Clusters {
			if wanted.Has(cluster) {
				r.kept.Insert(cluster)
			}
		}
	}
	return r
}

// putAll writes the slices of which no cluster depends on another write, and returns the others.
func (r *rewrite) putAll(pending []Slice) (rest []Slice) {
	for _, s := range pending {
		if len(r.stranded(s)) > 0 {
			rest = append(rest, s)
			continue
		}
		if err := r.Put(s); err != nil {
			r.doubt(s, err)
		} else {
			r.hold(s)
		}
	}
	return rest
}

// stranded are the clusters that the decision keeps but that no object would have after this write.
func (r *rewrite) stranded(s Slice) []string {
	var left []string
	var stay sets.Set[string]
	for _, cluster := range r.clustersOf[s.Name] {
		if r.counts[cluster] > 1 || !r.kept.Has(cluster) {
			continue
		}
		if stay == nil {
			stay = sets.New(s.Clusters...)
		}
		if !stay.Has(cluster) {
			left = append(left, cluster)
		}
	}
	return left
}

// hold records the clusters of an object.
func (r *rewrite) hold(s Slice) {
	r.release(r.clustersOf[s.Name])
	r.clustersOf[s.Name] = s.Clusters
	for _, cluster := range s.Clusters {
		r.counts[cluster]++
	}
}

func (r *rewrite) release(clusters []string) {
	for _, cluster := range clusters {
		r.counts[cluster]--
	}
}

// doubt records a failed write. It may have been carried out, so only the clusters that the object has
// either way are certain.
func (r *rewrite) doubt(s Slice, err error) {
	r.errs = append(r.errs, err)
	after := sets.New(s.Clusters...)
	var certain []string
	for _, cluster := range r.clustersOf[s.Name] {
		if after.Has(cluster) {
			certain = append(certain, cluster)
		}
	}
	r.hold(Slice{Name: s.Name, Clusters: certain})
}

// park puts the clusters that a slice loses into an additional object, until their new slices have
// them.
func (r *rewrite) park(s Slice) bool {
	clusters := r.stranded(s)
	name, err := r.Park(clusters)
	if err != nil {
		r.errs = append(r.errs, err)
		return false
	}
	r.parked = append(r.parked, name)
	r.hold(Slice{Name: name, Clusters: clusters})
	return true
}

// removeAll removes the objects without a slice, unless a cluster depends on one.
func (r *rewrite) removeAll(before, after []Slice) {
	wanted := sets.New[string]()
	for _, s := range after {
		wanted.Insert(s.Name)
	}
	names := make([]string, 0, len(before))
	for _, s := range before {
		names = append(names, s.Name)
	}
	for _, name := range append(names, r.parked...) {
		gone := Slice{Name: name}
		if wanted.Has(name) || len(r.stranded(gone)) > 0 {
			continue
		}
		if err := r.Remove(name); err != nil {
			r.errs = append(r.errs, err)
		}
		r.hold(gone)
	}
}
