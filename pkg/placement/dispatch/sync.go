// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/snapshot"
)

var (
	// errOccupied is returned while a Work that is needed belongs to another
	// binding.
	errOccupied = errors.New("the name is taken")
	// errNoSnapshot is returned when what the binding is bound to is gone.
	errNoSnapshot = errors.New("master resource snapshot is not found")
	// errEnvelope is returned for an envelope that cannot be opened.
	errEnvelope = errors.New("an envelope cannot be opened")
	// errChart is returned for a chart whose author has to change something.
	errChart = errors.New("a chart cannot be rendered")
	// errPaused is returned when a Work should change and somebody has paused its
	// placement or its member.
	errPaused = errors.New("paused")
)

// sync brings the binding's Works up to date and returns them. have are its
// Works now.
func (r *Reconciler) sync(ctx context.Context, b placementv1beta1.BindingObject, member *clusterv1beta1.MemberCluster, have []*placementv1beta1.Work) ([]*placementv1beta1.Work, error) {
	key := types.NamespacedName{Namespace: b.GetNamespace(), Name: b.GetSpec().ResourceSnapshotName}
	group, err := r.Snapshots.Group(ctx, key)
	if apierrors.IsNotFound(err) || errors.Is(err, snapshot.ErrIncomplete) {
		return r.withoutSnapshot(key, have)
	}
	if err != nil {
		return have, err
	}
	if group.Fault != nil {
		return have, fmt.Errorf("%w: %w", errEnvelope, group.Fault)
	}
	if group, err = r.overridden(ctx, b, member, group); err != nil {
		return have, err
	}
	group, charts, err := r.rendered(b, member, group, have)
	if err != nil {
		return have, err
	}
	if err := belongsTo(b.GetNamespace(), group, r.Scopes); err != nil {
		return have, err
	}
	placement, err := r.placement(ctx, b)
	if err != nil {
		return have, err
	}
	desired, err := desiredWorks(b, group, reportBack(placement))
	if err != nil {
		return have, err
	}
	charts.annotate(desired)
	hold(desired, member)
	if err := held(placement, member); err != nil {
		return unchanged(have, desired, group, err)
	}
	works := make([]*placementv1beta1.Work, len(desired))
	for _, i := range newFirst(have, desired) {
		if works[i], err = r.ensure(ctx, b, have, desired[i], group.Parts[i].Hash, charts.kept(desired[i].Name)); err != nil {
			return have, err
		}
	}
	return works, r.deleteStale(ctx, have, desired)
}

// newFirst is the order in which desired Works are written: those that are not there
// yet before the others, as those that are not needed any more are deleted last. So
// the member sees where a resource goes before it sees that it left a Work, and
// does not delete it.
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

// held returns errPaused, with the remedy, if placement or member is paused.
func held(placement placementv1beta1.PlacementObject, member *clusterv1beta1.MemberCluster) error {
	const remedy = "take annotation " + placementv1beta1.PausedAnnotation + " off it to go on"
	switch {
	case placement != nil && placementv1beta1.Paused(placement):
		return fmt.Errorf("the placement is %w: %s", errPaused, remedy)
	case placementv1beta1.Paused(member):
		return fmt.Errorf("member %q is %w: %s", member.Name, errPaused, remedy)
	}
	return nil
}

// unchanged returns the Works as they are, and an error if they should be others.
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

// withoutSnapshot keeps Works that were made from the snapshot before it went.
func (r *Reconciler) withoutSnapshot(key types.NamespacedName, have []*placementv1beta1.Work) ([]*placementv1beta1.Work, error) {
	for _, w := range have {
		if w.Annotations[placementv1beta1.ParentResourceSnapshotNameAnnotation] != key.Name {
			have = nil
		}
	}
	if len(have) > 0 {
		return have, nil
	}
	return nil, fmt.Errorf("resource snapshot %q: %w", key.Name, errNoSnapshot)
}

// ensure creates or changes one Work and returns it as it then is. One whose manifests are
// kept gets none, as they have not been rendered again.
func (r *Reconciler) ensure(ctx context.Context, b placementv1beta1.BindingObject, have []*placementv1beta1.Work, desired *placementv1beta1.Work, hash string, kept bool) (*placementv1beta1.Work, error) {
	w := workNamed(have, desired.Name)
	if w == nil {
		created := desired.DeepCopy()
		return created, r.create(ctx, b, created)
	}
	if w.DeletionTimestamp != nil {
		return nil, fmt.Errorf("work %q of member %q: %w: it is still being removed from the member", w.Name, b.GetSpec().TargetCluster, errOccupied)
	}
	current, err := upToDate(w, desired, hash)
	if err != nil || current {
		return w, err
	}
	changed := overwrite(w, desired)
	if kept {
		changed.Spec.Workload = *w.Spec.Workload.DeepCopy()
		err = r.Client.Patch(ctx, changed, client.MergeFromWithOptions(w, client.MergeFromWithOptimisticLock{}))
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
	return fmt.Errorf("work %q of member %q: %w: it belongs to binding %q of placement %q and has to go first",
		w.Name, b.GetSpec().TargetCluster, errOccupied, other.Labels[placementv1beta1.ParentBindingLabel], other.Labels[placementv1beta1.ParentPlacementLabel])
}

func (r *Reconciler) deleteStale(ctx context.Context, have, desired []*placementv1beta1.Work) error {
	for _, w := range have {
		if w.DeletionTimestamp != nil || workNamed(desired, w.Name) != nil {
			continue
		}
		if err := r.Client.Delete(ctx, w); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting work %q: %w", w.Name, err)
		}
	}
	return nil
}
