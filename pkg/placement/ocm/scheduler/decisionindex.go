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

// decisionIndex counts the decisions of all Placements by cluster. It includes pending writes: they count
// at once, and their later events trigger nothing.
type decisionIndex struct {
	mu      sync.Mutex // guards the following fields
	records map[types.NamespacedName]*record
	// counts are by cluster.
	counts map[string]int
	// objects are the names of a Placement's decisions.
	objects map[types.NamespacedName]sets.Set[string]
}

// record is one PlacementDecision.
type record struct {
	content
	// expected is the pending write; nil is none.
	expected *expectation
	// unsure is true if a write failed, which may have been carried out anyway: any event of the
	// object then counts as a change.
	unsure bool
}

// content is the part of a PlacementDecision that Placements determine.
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

// expectation is an own write whose event has not arrived.
type expectation struct {
	gone bool
	// version is the object's version after the write; 0 before it is known.
	version uint64
}

func newDecisionIndex() *decisionIndex {
	return &decisionIndex{records: map[types.NamespacedName]*record{}, counts: map[string]int{}, objects: map[types.NamespacedName]sets.Set[string]{}}
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

// see handles an event of a PlacementDecision, and returns the Placements to reconcile: none, if
// one of them wrote it.
func (t *decisionIndex) see(decision *ocmclusterv1beta1.PlacementDecision, gone bool) []types.NamespacedName {
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
			return nil // Its event is still to come.
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

// expect counts what a Placement is about to write to an object, which is nothing if it is about to
// be deleted.
func (t *decisionIndex) expect(key types.NamespacedName, is content, gone bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.set(key, &record{content: is, expected: &expectation{gone: gone}})
}

// wrote records the result of the write: the object, or nil if that is unknown.
func (t *decisionIndex) wrote(key types.NamespacedName, decision *ocmclusterv1beta1.PlacementDecision) {
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

// lost removes an object that no longer existed when it was to be deleted.
func (t *decisionIndex) lost(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.set(key, nil)
}

// set replaces a record; nil is none.
func (t *decisionIndex) set(key types.NamespacedName, is *record) {
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

// objectsOf are the names of a Placement's decisions, sorted by number.
func (t *decisionIndex) objectsOf(placement types.NamespacedName) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	names := t.objects[placement].UnsortedList()
	slices.SortFunc(names, byNumber)
	return names
}

// others returns how many decisions of other Placements have each cluster, and the largest of these
// numbers.
func (t *decisionIndex) others(placement types.NamespacedName) (counts func(cluster string) int, most int) {
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
