// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"slices"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/naming"
)

// tally counts which clusters PlacementDecisions have, all of the hub, and knows what
// Placements are about to write: that counts at once, and is no news when it is an event.
type tally struct {
	mu      sync.Mutex // guards what follows
	records map[types.NamespacedName]*record
	// counts are by cluster.
	counts map[string]int
	// objects are the names of a Placement's decisions.
	objects map[types.NamespacedName]sets.Set[string]
}

// record is one PlacementDecision.
type record struct {
	content
	// expected is what is about to be written; nil is nothing.
	expected *expectation
	// unsure is that a write failed, which may have been carried out all the same: whatever is
	// told of the object then is news.
	unsure bool
}

// content is what Placements want to be a certain way of a PlacementDecision.
type content struct {
	placement, group, index string
	owner                   types.UID
	decisions               []ocmclusterv1beta1.ClusterDecision
}

func contentOf(decision *ocmclusterv1beta1.PlacementDecision) content {
	c := content{
		placement: naming.Labelled(decision, ocmclusterv1beta1.PlacementLabel), group: decision.Labels[ocmclusterv1beta1.DecisionGroupNameLabel],
		index: decision.Labels[ocmclusterv1beta1.DecisionGroupIndexLabel], decisions: decision.Status.Decisions,
	}
	if owner := metav1.GetControllerOf(decision); owner != nil {
		c.owner = owner.UID
	}
	return c
}

func (c *content) equals(other *content) bool {
	return c.placement == other.placement && c.group == other.group && c.index == other.index && c.owner == other.owner &&
		(c.decisions == nil) == (other.decisions == nil) && slices.EqualFunc(c.decisions, other.decisions, sameDecision)
}

// expectation is a write of ours whose event has not come.
type expectation struct {
	gone bool
	// version is the object's after it was written; 0 is that it was not yet.
	version uint64
}

func newTally() *tally {
	return &tally{records: map[types.NamespacedName]*record{}, counts: map[string]int{}, objects: map[types.NamespacedName]sets.Set[string]{}}
}

func clustersOf(decision *ocmclusterv1beta1.PlacementDecision) []string {
	clusters := make([]string, 0, len(decision.Status.Decisions))
	for _, d := range decision.Status.Decisions {
		clusters = append(clusters, d.ClusterName)
	}
	return clusters
}

// versionOf is a number that grows with every write of an object.
func versionOf(decision *ocmclusterv1beta1.PlacementDecision) uint64 {
	version, _ := strconv.ParseUint(decision.ResourceVersion, 10, 64)
	return version
}

// see takes up an event of a PlacementDecision, and returns the Placements that have to
// look at it: none, if it is what one of them has written.
func (t *tally) see(decision *ocmclusterv1beta1.PlacementDecision, gone bool) []types.NamespacedName {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := types.NamespacedName{Namespace: decision.Namespace, Name: decision.Name}
	is := contentOf(decision)
	was := t.records[key]
	if was != nil && was.expected != nil {
		e := was.expected
		switch {
		case e.gone == gone && (gone || was.equals(&is)):
			was.expected = nil
			if gone {
				t.set(key, nil)
			}
			return nil
		case !gone && (e.version == 0 || versionOf(decision) < e.version):
			return nil // It is on its way.
		}
	} else if was != nil && !gone && !was.unsure && was.equals(&is) {
		return nil
	}
	var concerned []types.NamespacedName
	if was != nil && was.placement != "" && was.placement != is.placement {
		concerned = append(concerned, types.NamespacedName{Namespace: key.Namespace, Name: was.placement})
	}
	if is.placement != "" {
		concerned = append(concerned, types.NamespacedName{Namespace: key.Namespace, Name: is.placement})
	}
	if gone {
		t.set(key, nil)
	} else {
		t.set(key, &record{content: is})
	}
	return concerned
}

// expect counts what a Placement is about to write to an object, which is nothing if it is
// about to be deleted.
func (t *tally) expect(key types.NamespacedName, is content, gone bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.set(key, &record{content: is, expected: &expectation{gone: gone}})
}

// wrote notes what became of it: the object, or nil if that is not known.
func (t *tally) wrote(key types.NamespacedName, decision *ocmclusterv1beta1.PlacementDecision) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.records[key]
	if known == nil || known.expected == nil {
		return
	}
	if decision == nil {
		known.expected, known.unsure = nil, true
		return
	}
	known.expected.version = versionOf(decision)
}

// lost forgets an object that was not there any more when it was to be removed.
func (t *tally) lost(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.set(key, nil)
}

// set replaces a record; nil is none.
func (t *tally) set(key types.NamespacedName, is *record) {
	if was := t.records[key]; was != nil {
		for _, d := range was.decisions {
			if t.counts[d.ClusterName]--; t.counts[d.ClusterName] == 0 {
				delete(t.counts, d.ClusterName)
			}
		}
		of := types.NamespacedName{Namespace: key.Namespace, Name: was.placement}
		if t.objects[of].Delete(key.Name); t.objects[of].Len() == 0 {
			delete(t.objects, of)
		}
		delete(t.records, key)
	}
	if is == nil {
		return
	}
	t.records[key] = is
	for _, d := range is.decisions {
		t.counts[d.ClusterName]++
	}
	of := types.NamespacedName{Namespace: key.Namespace, Name: is.placement}
	if t.objects[of] == nil {
		t.objects[of] = sets.New[string]()
	}
	t.objects[of].Insert(key.Name)
}

// objectsOf are the names of a Placement's decisions, in the order of their numbers.
func (t *tally) objectsOf(placement types.NamespacedName) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	names := t.objects[placement].UnsortedList()
	slices.SortFunc(names, byNumber)
	return names
}

// others says how many decisions have each cluster, but a Placement's own, and the largest
// of these numbers.
func (t *tally) others(placement types.NamespacedName) (counts func(cluster string) int, most int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := map[string]int{}
	for name := range t.objects[placement] {
		for _, d := range t.records[types.NamespacedName{Namespace: placement.Namespace, Name: name}].decisions {
			own[d.ClusterName]++
		}
	}
	all := make(map[string]int, len(t.counts))
	for cluster, count := range t.counts {
		if rest := count - own[cluster]; rest > 0 {
			all[cluster] = rest
			most = max(most, rest)
		}
	}
	return func(cluster string) int { return all[cluster] }, most
}
