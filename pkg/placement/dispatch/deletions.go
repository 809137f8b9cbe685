// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	"fleetgate.io/fleetgate/pkg/placement/override"
	"fleetgate.io/fleetgate/pkg/placement/snapshot"
)

// Labels of members that change can make an existing override delete objects there. If many would be
// deleted, the members keep them until a user confirms it.

const (
	// deletionSettle is how long no further member may be affected before a deletion is decided. A
	// command that labels many members labels one after the other.
	deletionSettle = 10 * time.Second
	// deletionRecheck is the delay after which a suspended binding checks again: the other members may
	// have their labels again.
	deletionRecheck = 30 * time.Second
	// maxAffected is the number of members that the condition names.
	maxAffected = 5
)

var (
	// errSettling is returned while the labels of members may still be changing.
	errSettling = errors.New("labels of members are changing")
	// errSuspended is returned when a deletion waits for a confirmation.
	errSuspended = errors.New("the removal of objects waits for a confirmation")
)

// affected are the members of a placement on which overrides would delete objects only since the
// members' labels changed.
type affected struct {
	members []override.Member
	// all is the number of members that the placement has.
	all int
	// done are the members on which the overrides have deleted already, and recent the number of those
	// on which they did so recently.
	done   []string
	recent int
	// large is true if they, or the objects of one of them, are too many to delete without a
	// confirmation.
	large     bool
	overrides override.Set
	// since is when other members were affected.
	since time.Time
	// examined is when this was found out.
	examined time.Time
}

func (a *affected) names() []string {
	names := make([]string, 0, len(a.members))
	for _, m := range a.members {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return names
}

// deletions stores the affected members of placements. It is empty after a start, and then each
// deletion settles again.
type deletions struct {
	mu    sync.Mutex // Guards known, and makes sure that one binding examines a placement for all.
	known map[types.NamespacedName]affected
}

// examineEvery limits how often a placement is examined, because each of its bindings calls examine.
const examineEvery = time.Second

// examine returns the affected members, at most a second old.
func (d *deletions) examine(key types.NamespacedName, now time.Time, find func() (affected, error)) (affected, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before, ok := d.known[key]
	if ok && now.Sub(before.examined) < examineEvery {
		return before, nil
	}
	found, err := find()
	if err != nil {
		return affected{}, err
	}
	found.examined, found.since = now, now
	if ok && now.Sub(before.examined) < 2*deletionRecheck && sets.New(before.names()...).HasAll(found.names()...) {
		found.since = before.since
	}
	if d.known == nil {
		d.known = map[types.NamespacedName]affected{}
	}
	d.known[key] = found
	if len(found.members) == 0 {
		delete(d.known, key)
	}
	return found, nil
}

func (d *deletions) forget(key types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.known, key)
}

// mayDelete rejects a change of a member's Works by which overrides would delete objects only since
// labels of members changed, if the removal is large and not confirmed.
func (r *Reconciler) mayDelete(ctx context.Context, in input, set override.Set, group *snapshot.Group) error {
	if in.placement == nil {
		return nil // Its objects are removed.
	}
	member := override.MemberOf(in.member)
	lost, err := lostByLabels(set, member, in.binding, group, in.works)
	if err != nil {
		return misfit(err)
	}
	if len(lost) == 0 && !objects.Suspended(in.placement, placementv1beta1.ReasonOverrideConfirmationRequired) {
		return nil
	}
	key, now := client.ObjectKeyFromObject(in.placement), r.Clock.Now()
	found, err := r.deletions.examine(key, now, func() (affected, error) { return r.affected(ctx, in.placement, group) })
	if err != nil {
		return err
	}
	if len(lost) > 0 && now.Before(found.since.Add(deletionSettle)) {
		return errSettling
	}
	names := found.names()
	token := placementv1beta1.RemovalToken(names)
	var condition *metav1.Condition
	switch {
	case !found.large && len(lost) > 0:
		err = set.NoteDeletion(ctx, r.Client, member, now)
	case !found.large:
	case placementv1beta1.RemovalConfirmed(in.placement, token):
		if err = found.overrides.Confirm(ctx, r.Client, found.members); err == nil {
			r.deletions.forget(key)
		}
	default:
		condition = &metav1.Condition{Message: found.message(in.placement, names, token)}
	}
	if err == nil {
		err = r.reportSuspension(ctx, in.placement, placementv1beta1.ReasonOverrideConfirmationRequired, condition)
	}
	if err != nil || condition == nil || len(lost) == 0 {
		return err
	}
	return refusal.New(placementv1beta1.ReasonOverriddenFailed, "%w: see condition %s of the placement", errSuspended, placementv1beta1.ConditionRemovalSuspended)
}

func (a *affected) message(placement placementv1beta1.PlacementObject, names []string, token string) string {
	return fmt.Sprintf("Labels of members changed, so that overrides delete objects on %d of %d members%s: %s. These members keep what they have and get no updates. "+
		"Set the labels again, or confirm the removal with \"kubectl fleetgate confirm %s\", which sets annotation %s=%s",
		len(names), a.all, objects.AfterRecent(a.recent), refusal.Names(names, maxAffected), klog.KObj(placement), placementv1beta1.ConfirmRemovalAnnotation, token)
}

// affected examines all members of a placement. Their bindings may have other overrides than the latest
// ones, which the rollout has not brought there yet; both count.
func (r *Reconciler) affected(ctx context.Context, placement placementv1beta1.PlacementObject, group *snapshot.Group) (affected, error) {
	key, now := client.ObjectKeyFromObject(placement), objects.RecordTime(placement.GetStatus().Conditions, r.Clock.Now())
	bindings, err := objects.Bindings(ctx, r.Client, key)
	if err != nil {
		return affected{}, err
	}
	latest, err := override.Latest(ctx, r.Client)
	if err != nil {
		return affected{}, err
	}
	found := affected{overrides: latest.For(key, group.Objects())}
	for _, b := range bindings {
		if !keepsMember(b) {
			continue
		}
		found.all++
		if err := r.examineMember(ctx, b, group, &found); err != nil {
			return affected{}, err
		}
	}
	found.recent = found.overrides.DeletedRecently(found.done, now).Len()
	found.large = found.large || placementv1beta1.LargeRemoval(len(found.members)+found.recent, found.all)
	return found, nil
}

func (r *Reconciler) examineMember(ctx context.Context, b placementv1beta1.BindingObject, group *snapshot.Group, found *affected) error {
	m, err := r.member(ctx, b.GetSpec().TargetCluster)
	if m == nil || err != nil {
		return err
	}
	set, member := found.overrides, override.MemberOf(m)
	if listed, err := override.Named(ctx, r.Client, b.GetSpec().ClusterResourceOverrideSnapshots, b.GetSpec().ResourceOverrideSnapshots); err == nil {
		set = set.With(listed...)
	}
	if byLabels, err := set.DeletedByLabels(member, group.Objects()); err != nil || len(byLabels) == 0 {
		//lint:ignore nilerr A rule that cannot be evaluated deletes nothing: its own member reports it.
		return nil
	}
	works, err := r.worksOf(ctx, b)
	if err != nil {
		return err
	}
	lost, err := lostByLabels(set, member, b, group, works)
	if err != nil {
		return err
	}
	if len(lost) == 0 {
		found.done = append(found.done, member.Name)
		return nil
	}
	found.members, found.overrides = append(found.members, member), set
	all := 0
	for _, w := range works {
		all += len(w.Status.ManifestConditions)
	}
	found.large = found.large || placementv1beta1.LargeRemoval(len(lost), all)
	return nil
}

// lostByLabels are the objects that a member has, and that overrides delete there only since its labels
// changed. The Works' statuses say what the member has.
func lostByLabels(set override.Set, member override.Member, b placementv1beta1.BindingObject, group *snapshot.Group, works []*placementv1beta1.Work) ([]placementv1beta1.WorkResourceIdentifier, error) {
	var lost []placementv1beta1.WorkResourceIdentifier
	for _, part := range group.Parts {
		deleted, err := set.DeletedByLabels(member, part.Resources)
		if err != nil {
			return nil, err
		}
		if len(deleted) == 0 {
			continue
		}
		chart := ""
		if part.Chart {
			chart = envelopeWork(b, part.Envelope)
		}
		for _, w := range works {
			for i := range w.Status.ManifestConditions {
				if id := w.Status.ManifestConditions[i].Identifier; w.Name == chart || chart == "" && slices.ContainsFunc(deleted, sameObject(id)) {
					lost = append(lost, id)
				}
			}
		}
	}
	return lost, nil
}

func sameObject(id placementv1beta1.WorkResourceIdentifier) func(placementv1beta1.ResourceIdentifier) bool {
	return func(other placementv1beta1.ResourceIdentifier) bool {
		return other.Group == id.Group && other.Kind == id.Kind && other.Namespace == id.Namespace && other.Name == id.Name
	}
}

// reportSuspension writes the condition of a placement about a suspended removal, or removes it if it is nil.
func (r *Reconciler) reportSuspension(ctx context.Context, placement placementv1beta1.PlacementObject, reason string, c *metav1.Condition) error {
	placement = placement.DeepCopyObject().(placementv1beta1.PlacementObject) // The cache owns it.
	return objects.ReportSuspension(ctx, r.Client, r.Recorder, placement, reason, c, "Place")
}
