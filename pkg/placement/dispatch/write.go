// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

// write creates and updates the desired Works, deletes all others of the binding, and returns the stored
// ones.
func (r *Reconciler) write(ctx context.Context, in input, desired []desiredWork) ([]*placementv1beta1.Work, error) {
	changes, err := compare(in.works, desired)
	if err != nil {
		return nil, err
	}
	changed := len(in.works) != len(changes) || slices.ContainsFunc(changes, func(c change) bool { return !c.upToDate })
	if err := rejectPaused(in.placement, in.member); err != nil {
		if changed {
			return nil, err
		}
		return in.works, nil
	}
	if err := r.mayWrite(ctx, in, changes, changed); err != nil {
		return nil, err
	}
	works := make([]*placementv1beta1.Work, len(changes))
	for _, i := range newFirst(changes) {
		if works[i], err = r.ensure(ctx, in.binding, changes[i]); err != nil {
			return nil, err
		}
	}
	return works, r.deleteStale(ctx, in.works, changes)
}

// change is a desired Work beside the existing one.
type change struct {
	desiredWork
	// existing is nil if there is no Work of that name.
	existing *placementv1beta1.Work
	upToDate bool
}

func compare(works []*placementv1beta1.Work, desired []desiredWork) ([]change, error) {
	changes := make([]change, len(desired))
	for i, d := range desired {
		changes[i] = change{desiredWork: d, existing: workNamed(works, d.Name)}
		if changes[i].existing == nil {
			continue
		}
		var err error
		if changes[i].upToDate, err = upToDate(changes[i].existing, d); err != nil {
			return nil, err
		}
	}
	return changes, nil
}

// upToDate reports whether the cached Work has the desired content.
func upToDate(existing *placementv1beta1.Work, desired desiredWork) (bool, error) {
	annotations := desired.Annotations
	if _, known := existing.Annotations[placementv1beta1.DeletionCauseAnnotation]; !known {
		// A previous gateway made it. It gets the annotation with its next change: an upgrade writes no Work.
		annotations = maps.Clone(annotations)
		delete(annotations, placementv1beta1.DeletionCauseAnnotation)
	}
	if !contains(existing.Labels, desired.Labels) || !contains(existing.Annotations, annotations) ||
		!equality.Semantic.DeepEqual(existing.Spec.ApplyStrategy, desired.Spec.ApplyStrategy) ||
		!equality.Semantic.DeepEqual(existing.Spec.ReportBackStrategy, desired.Spec.ReportBackStrategy) {
		return false, nil
	}
	hash, err := manifestsHash(existing)
	return hash == desired.hash, err
}

func contains(all, wanted map[string]string) bool {
	for key, value := range wanted {
		if all[key] != value {
			return false
		}
	}
	return true
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

// mayWrite rejects all writes while the member is still removing a Work with one of the desired names.
// A resource that moves into that Work would leave its old Work first, and the member would delete it.
// The cache may lag, so the API server is read before one of several Works changes.
func (r *Reconciler) mayWrite(ctx context.Context, in input, changes []change, changed bool) error {
	for _, c := range changes {
		if c.existing != nil && c.existing.DeletionTimestamp != nil {
			return unsent("work %q of member %q: the name is taken: it is still being removed from the member", c.Name, in.binding.GetSpec().TargetCluster)
		}
	}
	if !changed || len(changes) < 2 || len(in.works) == 0 {
		return nil
	}
	live, err := r.liveWorksOf(ctx, in.binding)
	if err != nil {
		return err
	}
	for _, w := range live {
		if w.DeletionTimestamp != nil && isDesired(changes, w.Name) {
			return cacheBehind(w.Name)
		}
	}
	return nil
}

func isDesired(changes []change, work string) bool {
	return slices.ContainsFunc(changes, func(c change) bool { return c.Name == work })
}

// cacheBehind is a conflict, so that the binding is requeued.
func cacheBehind(work string) error {
	return apierrors.NewConflict(placementv1beta1.Resource("works"), work, errors.New("the cache is behind"))
}

// newFirst is the order in which Works are written: new ones before existing ones. Stale ones are
// deleted last. So the agent sees a resource in its new Work before it leaves the old one, and does not
// delete it.
func newFirst(changes []change) []int {
	var missing, existing []int
	for i, c := range changes {
		if c.existing != nil {
			existing = append(existing, i)
		} else {
			missing = append(missing, i)
		}
	}
	return append(missing, existing...)
}

// ensure creates or updates one Work and returns the stored one.
func (r *Reconciler) ensure(ctx context.Context, b placementv1beta1.BindingObject, c change) (*placementv1beta1.Work, error) {
	switch {
	case c.existing == nil:
		created := c.DeepCopy()
		return created, r.create(ctx, b, created)
	case c.upToDate:
		return c.existing, nil
	}
	updated := overwrite(c.existing, c.Work)
	var err error
	if c.keepManifests {
		updated.Spec.Workload = *c.existing.Spec.Workload.DeepCopy()
		err = r.Client.Patch(ctx, updated, reconcileutil.PatchFrom(c.existing))
	} else {
		err = r.Client.Update(ctx, updated)
	}
	if err != nil {
		return nil, fmt.Errorf("updating work %q of member %q: %w", c.Name, b.GetSpec().TargetCluster, err)
	}
	return updated, nil
}

// overwrite returns the cached Work with the desired content. Other metadata stays.
func overwrite(existing, desired *placementv1beta1.Work) *placementv1beta1.Work {
	w := existing.DeepCopy()
	if w.Labels == nil {
		w.Labels = map[string]string{}
	}
	if w.Annotations == nil {
		w.Annotations = map[string]string{}
	}
	maps.Copy(w.Labels, desired.Labels)
	maps.Copy(w.Annotations, desired.Annotations)
	delete(w.Annotations, manifestsHashKey)
	w.Spec = *desired.Spec.DeepCopy()
	return w
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
		return cacheBehind(w.Name)
	}
	return unsent("work %q of member %q: the name is taken: it belongs to binding %q of placement %q and must be deleted first",
		w.Name, b.GetSpec().TargetCluster, other.Labels[placementv1beta1.ParentBindingLabel], other.Labels[placementv1beta1.ParentPlacementLabel])
}

func (r *Reconciler) deleteStale(ctx context.Context, works []*placementv1beta1.Work, changes []change) error {
	for _, w := range works {
		if w.DeletionTimestamp != nil || isDesired(changes, w.Name) {
			continue
		}
		cause := map[string]string{placementv1beta1.DeletionCauseAnnotation: placementv1beta1.DeletionResourceRemoved}
		if err := r.annotate(ctx, []*metav1.PartialObjectMetadata{{ObjectMeta: w.ObjectMeta}}, cause); err != nil {
			return err
		}
		if err := r.Client.Delete(ctx, w); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting work %q: %w", w.Name, err)
		}
	}
	return nil
}

func workNamed(works []*placementv1beta1.Work, name string) *placementv1beta1.Work {
	for _, w := range works {
		if w.Name == name {
			return w
		}
	}
	return nil
}
