// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/placement/snapshot"
)

// unsent is an error that lasts until a user changes something.
func unsent(format string, args ...any) error {
	return refusal.New(placementv1beta1.ReasonSyncWorkFailed, format, args...)
}

// sync brings the binding's current Works (have) up to date and returns them. A nil placement is
// deleted.
func (r *Reconciler) sync(ctx context.Context, b placementv1beta1.BindingObject, placement placementv1beta1.PlacementObject,
	member *clusterv1beta1.MemberCluster, have []*placementv1beta1.Work,
) ([]*placementv1beta1.Work, error) {
	key := types.NamespacedName{Namespace: b.GetNamespace(), Name: b.GetSpec().ResourceSnapshotName}
	group, err := r.Snapshots.Group(ctx, key)
	if apierrors.IsNotFound(err) || errors.Is(err, snapshot.ErrIncomplete) {
		return r.withoutSnapshot(key, have)
	}
	if err != nil {
		return have, err
	}
	if group.Fault != nil {
		return have, unsent("an envelope cannot be opened: %w", group.Fault)
	}
	if err := r.Authors.mayHave(placement, key.Name, group, have); err != nil {
		return have, err
	}
	if group, err = r.overridden(ctx, b, placement, member, group, have); err != nil {
		return have, err
	}
	group, charts, err := r.rendered(b, member, group, have)
	if err != nil {
		return have, err
	}
	if err := belongsTo(b.GetNamespace(), group, r.Scopes); err != nil {
		return have, err
	}
	if group, err = split(group); err != nil {
		return have, err
	}
	desired, err := desiredWorks(b, group, reportBack(placement))
	if err != nil {
		return have, err
	}
	charts.annotate(desired)
	hold(desired, member)
	if err := rejectPaused(placement, member); err != nil {
		return unchanged(have, desired, group, err)
	}
	if err := r.mayWrite(ctx, b, have, desired, group); err != nil {
		return have, err
	}
	works := make([]*placementv1beta1.Work, len(desired))
	for _, i := range newFirst(have, desired) {
		if works[i], err = r.ensure(ctx, b, have, desired[i], group.Parts[i].Hash, charts.kept(desired[i].Name)); err != nil {
			return have, err
		}
	}
	return works, r.deleteStale(ctx, have, desired)
}

// mayWrite rejects all writes while the member is still removing a Work with one of the desired names.
// A resource that moves into that Work would leave its old Work first, and the member would delete it.
// The cache may lag, so the API server is read before one of several Works changes.
func (r *Reconciler) mayWrite(ctx context.Context, b placementv1beta1.BindingObject, have, desired []*placementv1beta1.Work, group *snapshot.Group) error {
	for _, d := range desired {
		if w := workNamed(have, d.Name); w != nil && w.DeletionTimestamp != nil {
			return terminating(w.Name, b)
		}
	}
	if len(desired) < 2 || len(have) == 0 {
		return nil
	}
	if _, err := unchanged(have, desired, group, errChanges); err == nil || !errors.Is(err, errChanges) {
		return err
	}
	live, err := r.liveWorksOf(ctx, b)
	if err != nil {
		return err
	}
	for _, w := range live {
		if w.DeletionTimestamp != nil && workNamed(desired, w.Name) != nil {
			return apierrors.NewConflict(placementv1beta1.Resource("works"), w.Name, errors.New("the cache is behind"))
		}
	}
	return nil
}

// errChanges is returned when Works differ from the desired ones.
var errChanges = errors.New("works change")

func terminating(work string, b placementv1beta1.BindingObject) error {
	return unsent("work %q of member %q: the name is taken: it is still being removed from the member", work, b.GetSpec().TargetCluster)
}

// newFirst is the order in which desired Works are written: new ones before existing ones. Stale ones
// are deleted last. So the agent sees a resource in its new Work before it leaves the old one, and does
// not delete it.
func newFirst(have, desired []*placementv1beta1.Work) []int {
	var missing, there []int
	for i, d := range desired {
		if workNamed(have, d.Name) != nil {
			there = append(there, i)
		} else {
			missing = append(missing, i)
		}
	}
	return append(missing, there...)
}

// rejectPaused rejects changes of Works while their placement or member is paused.
func rejectPaused(placement placementv1beta1.PlacementObject, member *clusterv1beta1.MemberCluster) error {
	const remedy = "take annotation " + placementv1beta1.PausedAnnotation + " off it to continue"
	switch {
	case placement != nil && placementv1beta1.Paused(placement):
		return unsent("the placement is paused: %s", remedy)
	case placementv1beta1.Paused(member):
		return unsent("member %q is paused: %s", member.Name, remedy)
	}
	return nil
}

// unchanged returns the Works if they are up to date, and otherwise an error.
func unchanged(have, desired []*placementv1beta1.Work, group *snapshot.Group, err error) ([]*placementv1beta1.Work, error) {
	if len(have) != len(desired) {
		return have, err
	}
	for i, d := range desired {
		w := workNamed(have, d.Name)
		if w == nil {
			return have, err
		}
		if same, compareErr := upToDate(w, d, group.Parts[i].Hash); compareErr != nil || !same {
			return have, errors.Join(err, compareErr)
		}
	}
	return have, nil
}

// withoutSnapshot keeps Works that were created from a snapshot before it was deleted.
func (r *Reconciler) withoutSnapshot(key types.NamespacedName, have []*placementv1beta1.Work) ([]*placementv1beta1.Work, error) {
	for _, w := range have {
		if w.Annotations[placementv1beta1.ParentResourceSnapshotNameAnnotation] != key.Name {
			have = nil
		}
	}
	if len(have) > 0 {
		return have, nil
	}
	return nil, unsent("resource snapshot %q: master resource snapshot is not found", key.Name)
}

// ensure creates or updates one Work and returns the stored one. If kept is true, the manifests have
// not been rendered again and stay.
func (r *Reconciler) ensure(ctx context.Context, b placementv1beta1.BindingObject, have []*placementv1beta1.Work, desired *placementv1beta1.Work, hash string, kept bool) (*placementv1beta1.Work, error) {
	w := workNamed(have, desired.Name)
	if w == nil {
		created := desired.DeepCopy()
		return created, r.create(ctx, b, created)
	}
	if w.DeletionTimestamp != nil {
		return nil, terminating(w.Name, b)
	}
	current, err := upToDate(w, desired, hash)
	if err != nil || current {
		return w, err
	}
	changed := overwrite(w, desired)
	if kept {
		changed.Spec.Workload = *w.Spec.Workload.DeepCopy()
		err = r.Client.Patch(ctx, changed, reconcileutil.PatchFrom(w))
	} else {
		err = r.Client.Update(ctx, changed)
	}
	if err != nil {
		return nil, fmt.Errorf("updating work %q of member %q: %w", w.Name, b.GetSpec().TargetCluster, err)
	}
	return changed, nil
}

func (r *Reconciler) create(ctx context.Context, b placementv1beta1.BindingObject, w *placementv1beta1.Work) error {
	err := r.Client.Create(ctx, w)
	if !apierrors.IsAlreadyExists(err) {
		if err != nil {
			err = fmt.Errorf("creating work %q of member %q: %w", w.Name, b.GetSpec().TargetCluster, err)
		}
		return err
	}
	var other placementv1beta1.Work
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(w), &other); err != nil {
		return fmt.Errorf("reading work %q of member %q: %w", w.Name, b.GetSpec().TargetCluster, err)
	}
	if belongs(&other, b) {
		return apierrors.NewConflict(placementv1beta1.Resource("works"), w.Name, errors.New("the cache is behind"))
	}
	return unsent("work %q of member %q: the name is taken: it belongs to binding %q of placement %q and has to go first",
		w.Name, b.GetSpec().TargetCluster, other.Labels[placementv1beta1.ParentBindingLabel], other.Labels[placementv1beta1.ParentPlacementLabel])
}

func (r *Reconciler) deleteStale(ctx context.Context, have, desired []*placementv1beta1.Work) error {
	for _, w := range have {
		if w.DeletionTimestamp != nil || workNamed(desired, w.Name) != nil {
			continue
		}
		says := map[string]string{placementv1beta1.DeletionCauseAnnotation: placementv1beta1.DeletionResourceRemoved}
		if err := r.annotate(ctx, []*metav1.PartialObjectMetadata{{ObjectMeta: w.ObjectMeta}}, says); err != nil {
			return err
		}
		if err := r.Client.Delete(ctx, w); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting work %q: %w", w.Name, err)
		}
	}
	return nil
}
