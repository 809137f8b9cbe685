// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
	if group, err = r.overridden(ctx, b, group); err != nil {
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
	if err := held(placement, member); err != nil {
		return unchanged(have, desired, group, err)
	}
	works := make([]*placementv1beta1.Work, 0, len(desired))
	for i, d := range desired {
		w, err := r.ensure(ctx, b, have, d, group.Parts[i].Hash)
		if err != nil {
			return have, err
		}
		works = append(works, w)
	}
	return works, r.deleteStale(ctx, have, desired)
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
		at := slices.IndexFunc(have, func(w *placementv1beta1.Work) bool { return w.Name == d.Name })
		if at < 0 {
			return have, err
		}
		if same, compareErr := upToDate(have[at], d, group.Parts[i].Hash); compareErr != nil || !same {
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

// ensure creates or changes one Work and returns it as it then is.
func (r *Reconciler) ensure(ctx context.Context, b placementv1beta1.BindingObject, have []*placementv1beta1.Work, desired *placementv1beta1.Work, hash string) (*placementv1beta1.Work, error) {
	i := slices.IndexFunc(have, func(w *placementv1beta1.Work) bool { return w.Name == desired.Name })
	if i < 0 {
		created := desired.DeepCopy()
		return created, r.create(ctx, b, created)
	}
	w := have[i]
	if w.DeletionTimestamp != nil {
		return nil, fmt.Errorf("work %q of member %q: %w: it is still being removed from the member", w.Name, b.GetSpec().TargetCluster, errOccupied)
	}
	current, err := upToDate(w, desired, hash)
	if err != nil || current {
		return w, err
	}
	changed := overwrite(w, desired)
	if err := r.Client.Update(ctx, changed); err != nil {
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
		if w.DeletionTimestamp != nil || slices.ContainsFunc(desired, func(d *placementv1beta1.Work) bool { return d.Name == w.Name }) {
			continue
		}
		if err := r.Client.Delete(ctx, w); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting work %q: %w", w.Name, err)
		}
	}
	return nil
}
