// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// A resource can pass from one Work to another: a placement that outgrows one Work
// is cut anew, or two placements want the same and one of them goes. If the first
// deleted it and the second made it again, a Deployment would stop and a volume
// lose its data. So what another Work wants becomes its own, in one write: an object
// that nobody owns for a moment would stay for ever if the other went then too.

// worksByObject finds the Works that have a manifest for an object.
const worksByObject = "object"

// siblingPause is after what time a Work looks again whether its siblings have come to
// its snapshot. They are written one right after the other.
const siblingPause = time.Second

// siblings are the Works beside one: who shares its objects, and who inherits them.
type siblings struct {
	*records
}

// heirsOf finds the heirs of what a Work leaves, which may be gone from the hub. A
// Work of the same placement is one in any case, since to it the object is not one
// that was there before; a Work of another placement if it may take objects over.
func (r siblings) heirsOf(work metav1.Object) engine.HeirFinder {
	return func(ctx context.Context, e engine.Entry) (*metav1.OwnerReference, error) {
		list := &placementv1beta1.WorkList{}
		err := r.hub.List(ctx, list, client.InNamespace(r.options.HubNamespace), client.UnsafeDisableDeepCopy,
			client.MatchingFields{worksByObject: manifest.KeyOf(e.Ref).String()})
		if err != nil {
			return nil, fmt.Errorf("asking who else wants %s %q: %w", e.Kind, e.Name, err)
		}
		found := ""
		for i := range list.Items {
			other := &list.Items[i]
			strategy := other.Spec.ApplyStrategy.WithDefaults()
			switch {
			case other.Name == work.GetName() || other.DeletionTimestamp != nil || strategy.Type == placementv1beta1.ReportDiff:
			case areSiblings(work, other):
				return r.ownerFor(ctx, other.Name)
			case strategy.WhenToTakeOver == placementv1beta1.TakeOverAlways && r.mayInherit(work, other):
				found = other.Name
			}
		}
		if found == "" {
			return nil, nil
		}
		return r.ownerFor(ctx, found)
	}
}

// mayInherit reports whether a Work could have made for itself what another one leaves:
// one that is applied with the rights of a namespace must not get more than those reach
// by naming it, nor keep it from being removed.
func (r siblings) mayInherit(from, heir metav1.Object) bool {
	namespace := heir.GetLabels()[placementv1beta1.ParentPlacementNamespaceLabel]
	return r.options.NamespacedApplier == "" || namespace == "" ||
		namespace == from.GetLabels()[placementv1beta1.ParentPlacementNamespaceLabel]
}

// ownerFor is what a Work owns objects by. It is nil if the Work cannot own any.
func (r siblings) ownerFor(ctx context.Context, work string) (*metav1.OwnerReference, error) {
	m, err := r.membership(ctx, r.hub)
	if err != nil {
		return nil, err
	}
	record, err := r.ensure(ctx, work, m, nil)
	if err != nil || !r.isOurs(record, m) || record.DeletionTimestamp != nil {
		return nil, err
	}
	owner := ownerOf(record)
	return &owner, nil
}

// shares reports whether the Work of another AppliedWork lets its objects have a second
// owner that writes them the same way. One that is gone has no say, and another hub's
// cannot be asked.
func (r siblings) shares(ctx context.Context, other string, ours placementv1beta1.ApplyStrategy) bool {
	foreign, err := r.isOfAnotherHub(ctx, other)
	if foreign || err != nil {
		return false
	}
	work := &placementv1beta1.Work{}
	name, _ := r.options.workOf(other)
	err = r.hub.Get(ctx, client.ObjectKey{Namespace: r.options.HubNamespace, Name: name}, work)
	if apierrors.IsNotFound(err) {
		return true
	}
	theirs := work.Spec.ApplyStrategy.WithDefaults()
	return err == nil && theirs.AllowCoOwnership && theirs.Type == ours.Type
}

// claimOn finds out whether a Work wants an object that belongs to another AppliedWork. Of another
// hub's it is not known: that one may want it.
func (r siblings) claimOn(ctx context.Context, record string, object manifest.Key) (engine.Claim, error) {
	if foreign, err := r.isOfAnotherHub(ctx, record); foreign || err != nil {
		return engine.Wanted, err
	}
	list := &placementv1beta1.WorkList{}
	err := r.hub.List(ctx, list, client.InNamespace(r.options.HubNamespace), client.UnsafeDisableDeepCopy,
		client.MatchingFields{worksByObject: object.String()})
	if err != nil {
		return engine.Wanted, fmt.Errorf("asking who wants %s: %w", object, err)
	}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			return engine.Wanted, nil
		}
	}
	work := &placementv1beta1.Work{}
	name, _ := r.options.workOf(record)
	err = r.hub.Get(ctx, client.ObjectKey{Namespace: r.options.HubNamespace, Name: name}, work)
	switch {
	case apierrors.IsNotFound(err):
		return engine.Wanted, nil // it is held, or about to be adopted
	case err != nil:
		return engine.Wanted, fmt.Errorf("getting Work %q: %w", name, err)
	case work.DeletionTimestamp != nil:
		return engine.Going, nil
	}
	return engine.Unwanted, nil
}

// areSiblings reports whether two Works carry parts of the same placement.
func areSiblings(a, b metav1.Object) bool {
	binding := a.GetLabels()[placementv1beta1.ParentBindingLabel]
	namespace := a.GetLabels()[placementv1beta1.ParentPlacementNamespaceLabel]
	return binding != "" && binding == b.GetLabels()[placementv1beta1.ParentBindingLabel] &&
		namespace == b.GetLabels()[placementv1beta1.ParentPlacementNamespaceLabel]
}

// isAhead reports whether a sibling of a Work is still of another snapshot, or is being deleted
// and may be made again: what has left the one may be about to join the other.
func (r siblings) isAhead(ctx context.Context, work *placementv1beta1.Work) (bool, error) {
	list := &placementv1beta1.WorkList{}
	labels := client.MatchingLabels{placementv1beta1.ParentBindingLabel: work.Labels[placementv1beta1.ParentBindingLabel]}
	if err := r.hub.List(ctx, list, client.InNamespace(r.options.HubNamespace), client.UnsafeDisableDeepCopy, labels); err != nil {
		return false, fmt.Errorf("listing the other Works of the placement: %w", err)
	}
	for i := range list.Items {
		other := &list.Items[i]
		if other.Name != work.Name && areSiblings(work, other) && (other.DeletionTimestamp != nil || snapshotOf(other) != snapshotOf(work)) {
			return true, nil
		}
	}
	return false, nil
}

// ranIn is what the siblings of a Work know of the run of an object, which passes to it from one of them.
func (r siblings) ranIn(ctx context.Context, work *placementv1beta1.Work, key manifest.Key) (engine.Run, error) {
	list := &placementv1beta1.WorkList{}
	labels := client.MatchingLabels{placementv1beta1.ParentBindingLabel: work.Labels[placementv1beta1.ParentBindingLabel]}
	if err := r.hub.List(ctx, list, client.InNamespace(r.options.HubNamespace), client.UnsafeDisableDeepCopy, labels); err != nil {
		return engine.Run{}, fmt.Errorf("listing the other Works of the placement: %w", err)
	}
	for i := range list.Items {
		other := &list.Items[i]
		if other.Name == work.Name || !areSiblings(work, other) {
			continue
		}
		record, err := r.current(ctx, other.Name)
		if err != nil {
			return engine.Run{}, err
		}
		if record == nil {
			continue
		}
		for _, entry := range (ledger{r.records, record}).Entries() {
			if manifest.KeyOf(entry.Ref) == key && entry.Run.Result != "" {
				return entry.Run, nil
			}
		}
	}
	return engine.Run{}, nil
}

func snapshotOf(work *placementv1beta1.Work) string {
	return work.Labels[placementv1beta1.ParentResourceSnapshotIndexLabel]
}

// objectsOf lists what the manifests of a Work are for, as an index wants it.
func objectsOf(object client.Object) []string {
	work, ok := object.(*placementv1beta1.Work)
	if !ok {
		return nil
	}
	return manifest.KeysIn(work.Spec.Workload.Manifests, func(m placementv1beta1.Manifest) []byte { return m.Raw })
}
