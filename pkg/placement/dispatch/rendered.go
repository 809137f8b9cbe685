// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/placement/objects"
	"fleetgate.io/fleetgate/pkg/placement/snapshot"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// A member whose labels, annotations or properties change can get fewer objects of a chart, also by an override of
// its values that selects the member since then. If many objects would be deleted, the members keep them until a user
// confirms it. What a member would lose is known only after rendering for it, so the bindings of a placement collect
// it.

// loss is what a member would lose.
type loss struct {
	objects []string
	// all is the number of objects that the member has.
	all int
}

// losses are those of one placement. A gateway that starts collects them again, and forgets the recent ones.
type losses struct {
	pending map[string]loss
	// confirmed are the tokens of pending losses that a user confirmed.
	confirmed map[string]string
	// recent are the objects that members lost without a confirmation.
	recent map[string]placementv1beta1.RecentRemovals
	// since is when another member was affected, or when the placement was examined first.
	since time.Time
	// members are those of the placement, as listed at a time.
	members sets.Set[string]
	listed  time.Time
}

// rendered has the losses by placement.
type rendered struct {
	mu    sync.Mutex // Guards known.
	known map[types.NamespacedName]*losses
}

// mayRender rejects a change of a member's Works by which charts delete objects only since the member changed, if the
// removal is large and not confirmed.
func (r *Reconciler) mayRender(ctx context.Context, in input, desired []desiredWork) error {
	if in.placement == nil {
		return nil // Its objects are removed.
	}
	lost, err := lostByRendering(in.works, desired)
	if err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(in.placement)
	reported := objects.Suspended(in.placement, placementv1beta1.ReasonChartConfirmationRequired)
	if len(lost.objects) == 0 && !reported && !r.rendered.isPending(key, in.binding.GetSpec().TargetCluster) {
		return nil
	}
	now := r.Clock.Now()
	if err := r.rendered.list(key, now, func() (sets.Set[string], error) { return r.boundMembers(ctx, key) }); err != nil {
		return err
	}
	v := r.rendered.decide(in, lost, now)
	if v.settling {
		return v.err
	}
	return cmp.Or(r.reportSuspension(ctx, in.placement, placementv1beta1.ReasonChartConfirmationRequired, v.condition), v.err)
}

func (r *Reconciler) boundMembers(ctx context.Context, placement types.NamespacedName) (sets.Set[string], error) {
	bindings, err := objects.Bindings(ctx, r.Client, placement)
	if err != nil {
		return nil, err
	}
	members := sets.New[string]()
	for _, b := range bindings {
		if keepsMember(b) {
			members.Insert(b.GetSpec().TargetCluster)
		}
	}
	return members, nil
}

// keepsMember reports whether the placement still has the member of a binding.
func keepsMember(b placementv1beta1.BindingObject) bool {
	return b.GetDeletionTimestamp() == nil && b.GetSpec().State != placementv1beta1.BindingUnscheduled
}

// isPending reports whether a member would lose something when it was decided about it last.
func (r *rendered) isPending(placement types.NamespacedName, member string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[placement] == nil {
		return false
	}
	_, pending := r.known[placement].pending[member]
	return pending
}

// verdict is what is decided about one member, and reported about all.
type verdict struct {
	// settling is true while other members may be affected too. Then nothing is reported.
	settling  bool
	condition *metav1.Condition
	// err is why the member keeps what it has, or nil.
	err error
}

// list brings the members of a placement up to date, which are at most a second old.
func (r *rendered) list(placement types.NamespacedName, now time.Time, list func() (sets.Set[string], error)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.known[placement]
	if l != nil && now.Sub(l.listed) < examineEvery {
		return nil
	}
	members, err := list()
	if err != nil {
		return err
	}
	if l == nil {
		l = &losses{pending: map[string]loss{}, confirmed: map[string]string{}, recent: map[string]placementv1beta1.RecentRemovals{}, since: now}
		if r.known == nil {
			r.known = map[types.NamespacedName]*losses{}
		}
		r.known[placement] = l
	}
	l.members, l.listed = members, now
	return nil
}

// decide records what a member would lose, and decides whether it keeps it.
func (r *rendered) decide(in input, lost loss, now time.Time) verdict {
	r.mu.Lock()
	defer r.mu.Unlock()
	key, member := client.ObjectKeyFromObject(in.placement), in.binding.GetSpec().TargetCluster
	l := r.known[key]
	if l == nil {
		return verdict{settling: true, err: errSettling} // Another binding has just ended it.
	}
	l.members.Insert(member)
	l.forget(objects.RecordTime(in.placement.GetStatus().Conditions, now))
	l.note(member, lost, now)
	if now.Before(l.since.Add(deletionSettle)) {
		if len(lost.objects) > 0 {
			return verdict{settling: true, err: errSettling}
		}
		return verdict{settling: true}
	}
	v := l.decide(in.placement, member, now)
	if len(l.pending)+len(l.recent) == 0 {
		delete(r.known, key)
	}
	return v
}

func (l *losses) decide(placement placementv1beta1.PlacementObject, member string, now time.Time) (v verdict) {
	token := l.token()
	if placementv1beta1.RemovalConfirmed(placement, token) {
		l.confirm()
	}
	if l.isLarge() {
		v.condition = &metav1.Condition{Message: l.message(placement, token)}
	}
	lost, loses := l.pending[member]
	switch {
	case !loses || l.isConfirmed(member):
	case v.condition != nil:
		v.err = unsent("%w: see condition %s of the placement", errSuspended, placementv1beta1.ConditionRemovalSuspended)
	default:
		if l.recent[member] == nil {
			l.recent[member] = placementv1beta1.RecentRemovals{}
		}
		l.recent[member].Add(now, lost.objects...)
	}
	return v
}

// forget drops members that the placement no longer has, and removals that are not recent.
func (l *losses) forget(now time.Time) {
	maps.DeleteFunc(l.pending, func(member string, _ loss) bool { return !l.members.Has(member) })
	maps.DeleteFunc(l.confirmed, func(member, _ string) bool { return !l.members.Has(member) })
	maps.DeleteFunc(l.recent, func(member string, recent placementv1beta1.RecentRemovals) bool {
		maps.DeleteFunc(recent, func(_ string, at time.Time) bool { return now.Sub(at) > placementv1beta1.RemovalWindow })
		return len(recent) == 0 || !l.members.Has(member)
	})
}

// note records what a member would lose.
func (l *losses) note(member string, lost loss, now time.Time) {
	if len(lost.objects) == 0 {
		delete(l.pending, member)
		delete(l.confirmed, member)
		return
	}
	if _, known := l.pending[member]; !known {
		l.since = now
	}
	l.pending[member] = lost
	l.recent[member].Forget(lost.objects...) // The cache may be behind the write that removes them.
}

func (l *losses) confirm() {
	for member, lost := range l.pending {
		l.confirmed[member] = placementv1beta1.RemovalToken(lost.objects)
	}
	clear(l.recent) // The user knows of these.
}

func (l *losses) isConfirmed(member string) bool {
	return l.confirmed[member] == placementv1beta1.RemovalToken(l.pending[member].objects)
}

// waiting are the members with losses that nobody confirmed, sorted.
func (l *losses) waiting() []string {
	var all []string
	for _, member := range slices.Sorted(maps.Keys(l.pending)) {
		if !l.isConfirmed(member) {
			all = append(all, member)
		}
	}
	return all
}

// token depends on the members and on what each would lose.
func (l *losses) token() string {
	var all []string
	for _, member := range l.waiting() {
		for _, object := range l.pending[member].objects {
			all = append(all, member+" "+object)
		}
	}
	return placementv1beta1.RemovalToken(all)
}

// isLarge reports whether many members, or one of them much, would lose, together with what they lost recently.
func (l *losses) isLarge() bool {
	waiting := l.waiting()
	if len(waiting) == 0 {
		return false
	}
	for _, member := range waiting {
		lost, recent := l.pending[member], len(l.recent[member])
		if placementv1beta1.LargeRemoval(len(lost.objects)+recent, lost.all+recent) {
			return true
		}
	}
	return placementv1beta1.LargeRemoval(len(waiting)+l.others(), l.members.Len())
}

// others is the number of members that lost recently, and would lose nothing now.
func (l *losses) others() int {
	n := 0
	for member := range l.recent {
		if _, pending := l.pending[member]; !pending {
			n++
		}
	}
	return n
}

func (l *losses) message(placement placementv1beta1.PlacementObject, token string) string {
	waiting := l.waiting()
	var named []string
	for _, member := range waiting {
		lost := l.pending[member]
		named = append(named, fmt.Sprintf("%s loses %d of %d objects (%s)", member, len(lost.objects), lost.all, refusal.Names(lost.objects, 1)))
	}
	return fmt.Sprintf("Labels, annotations or properties of members changed, so that charts have fewer objects for %d of %d members%s: %s. "+
		"These members keep what they have and get no updates. Change the members or the charts, or confirm the removal with \"kubectl fleetgate confirm %s\", which sets annotation %s=%s",
		len(waiting), l.members.Len(), objects.AfterRecent(l.others()), refusal.Names(named, maxAffected), klog.KObj(placement), placementv1beta1.ConfirmRemovalAnnotation, token)
}

// lostByRendering is what a member has of charts that were rendered for it before it changed, and what no desired
// Work has. The Works' statuses say what the member has.
func lostByRendering(works []*placementv1beta1.Work, desired []desiredWork) (loss, error) {
	var lost loss
	for _, w := range works {
		lost.all += len(w.Status.ManifestConditions)
		if w.DeletionTimestamp != nil || !isRenderedForAnother(w, desired) {
			continue
		}
		lost.objects = append(lost.objects, reportedIn(w)...)
	}
	if len(lost.objects) == 0 {
		return lost, nil
	}
	kept, err := objectsIn(works, desired)
	lost.objects = slices.DeleteFunc(lost.objects, kept.Has)
	slices.Sort(lost.objects)
	return lost, err
}

// isRenderedForAnother reports whether a Work has objects of a chart that is desired, and that was rendered for the
// member before it changed. It is unknown of Works of a previous gateway.
func isRenderedForAnother(w *placementv1beta1.Work, desired []desiredWork) bool {
	before := w.Annotations[placementv1beta1.RenderedForAnnotation]
	return before != "" && slices.ContainsFunc(desired, func(d desiredWork) bool {
		now := d.Annotations[placementv1beta1.RenderedForAnnotation]
		return now != "" && now != before && envelopeLabels(d.Work) == envelopeLabels(w)
	})
}

func envelopeLabels(w *placementv1beta1.Work) string {
	return strings.Join([]string{w.Labels[placementv1beta1.EnvelopeTypeLabel], w.Labels[placementv1beta1.EnvelopeNamespaceLabel],
		w.Labels[placementv1beta1.EnvelopeNameLabel]}, "/")
}

func objectsIn(works []*placementv1beta1.Work, desired []desiredWork) (sets.Set[string], error) {
	all := sets.New[string]()
	for _, d := range desired {
		if d.keepManifests {
			all.Insert(reportedIn(workNamed(works, d.Name))...)
		}
		for _, m := range d.Spec.Workload.Manifests {
			id, err := snapshot.Identify(m.Raw)
			if err != nil {
				return nil, err
			}
			all.Insert(nameOf(id.Group, id.Kind, id.Namespace, id.Name))
		}
	}
	return all, nil
}

// reportedIn are the objects in the status of a Work.
func reportedIn(w *placementv1beta1.Work) []string {
	var all []string
	for i := range w.Status.ManifestConditions {
		if id := w.Status.ManifestConditions[i].Identifier; id.Kind != "" && id.Name != "" {
			all = append(all, nameOf(id.Group, id.Kind, id.Namespace, id.Name))
		}
	}
	return all
}

func nameOf(group, kind, namespace, name string) string {
	return manifest.Key{Group: group, Kind: kind, Namespace: namespace, Name: name}.String()
}
