// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// An object can pass from one Work to another: a placement is split into more Works, or two
// placements contain the same object and one of them is deleted. If the first Work deleted the
// object and the second re-created it, a Deployment would stop and a volume lose its data. One
// write therefore makes the other Work the owner. Two writes could leave the object without an
// owner indefinitely if the other Work is deleted in between.

// worksByObject is the index of Works by the objects of their manifests.
const worksByObject = "object"

// siblingInterval is the interval at which a Work checks whether its siblings have reached its
// snapshot. The hub writes siblings in quick succession.
const siblingInterval = time.Second

// owner decides about the objects of one Work, also together with the other Works that share or
// inherit them.
type owner struct {
	*records
	work metav1.Object // may no longer exist
	// strategy is that of the Work, with defaults. It is not set for a removal.
	strategy placementv1beta1.ApplyStrategy
}

var _ engine.Owner = owner{}

// MayWrite implements engine.Owner.
func (o owner) MayWrite(ctx context.Context, s engine.Ownership, wanted *unstructured.Unstructured) *refusal.Refusal {
	refused := mayOwn(s, o.strategy, isShared(wanted), func(other string) bool { return o.shares(ctx, other) })
	if refused == nil {
		return nil
	}
	// The placement moves the object between its Works. Its owner passes it on with its own next write.
	if i := slices.IndexFunc(s.Works, func(record string) bool { return o.isSibling(ctx, record) }); i >= 0 {
		refused.Message = fmt.Sprintf("The object is moving here from %q, a Work of the same placement, which still owns it: wait", s.Works[i])
	}
	return refused
}

// isSibling reports whether an AppliedWork is of a Work of the same placement.
func (o owner) isSibling(ctx context.Context, record string) bool {
	work := &placementv1beta1.Work{}
	name, _ := o.options.workOf(record)
	err := o.hub.Get(ctx, client.ObjectKey{Namespace: o.options.HubNamespace, Name: name}, work)
	return err == nil && areSiblings(o.work, work)
}

// Orphans implements engine.Owner.
func (owner) Orphans(engine.Entry) bool { return false }

// NextOwner returns the next owner of an object. A Work of the same placement always inherits,
// because for it the object does not count as existing before. A Work of another placement inherits
// if it is allowed to take objects over.
func (o owner) NextOwner(ctx context.Context, e engine.Entry) (*metav1.OwnerReference, error) {
	list := &placementv1beta1.WorkList{}
	err := o.hub.List(ctx, list, client.InNamespace(o.options.HubNamespace), client.UnsafeDisableDeepCopy,
		client.MatchingFields{worksByObject: manifest.KeyOf(e.Ref).String()})
	if err != nil {
		return nil, fmt.Errorf("finding other owners of %s %q: %w", e.Kind, e.Name, err)
	}
	found := ""
	for i := range list.Items {
		other := &list.Items[i]
		strategy := other.Spec.ApplyStrategy.WithDefaults()
		switch {
		case other.Name == o.work.GetName() || other.DeletionTimestamp != nil || strategy.Type == placementv1beta1.ReportDiff:
		case areSiblings(o.work, other):
			return o.ownerFor(ctx, other.Name)
		case strategy.WhenToTakeOver == placementv1beta1.TakeOverAlways && o.mayInherit(other):
			found = other.Name
		}
	}
	if found == "" {
		return nil, nil
	}
	return o.ownerFor(ctx, found)
}

// mayInherit reports whether the next owner could have created the object with its own rights. A Work
// that is applied with the rights of a namespace must not gain more by naming an object, nor
// prevent its removal.
func (o owner) mayInherit(next metav1.Object) bool {
	namespace := next.GetLabels()[placementv1beta1.ParentPlacementNamespaceLabel]
	return o.options.NamespacedApplier == "" || namespace == "" ||
		namespace == o.work.GetLabels()[placementv1beta1.ParentPlacementNamespaceLabel]
}

// ownerFor returns the owner reference of a Work; nil if the Work cannot own objects.
func (o owner) ownerFor(ctx context.Context, work string) (*metav1.OwnerReference, error) {
	m, err := o.membership(ctx, o.hub)
	if err != nil {
		return nil, err
	}
	record, err := o.ensure(ctx, work, m, nil)
	if err != nil || !o.isOurs(record, m) || record.DeletionTimestamp != nil {
		return nil, err
	}
	owner := ownerOf(record)
	return &owner, nil
}

// shares reports whether the Work of another AppliedWork agrees to a second owner with the same
// apply strategy type. A Work that no longer exists always agrees. A Work of another hub cannot be
// read and never does.
func (o owner) shares(ctx context.Context, other string) bool {
	foreign, err := o.isOfAnotherHub(ctx, other)
	if foreign || err != nil {
		return false
	}
	work := &placementv1beta1.Work{}
	name, _ := o.options.workOf(other)
	err = o.hub.Get(ctx, client.ObjectKey{Namespace: o.options.HubNamespace, Name: name}, work)
	if apierrors.IsNotFound(err) {
		return true
	}
	strategy := work.Spec.ApplyStrategy.WithDefaults()
	return err == nil && strategy.AllowCoOwnership && strategy.Type == o.strategy.Type
}

// Claim reports whether a Work wants an object that belongs to another AppliedWork. A Work of
// another hub may want it.
func (o owner) Claim(ctx context.Context, record string, object manifest.Key) (engine.Claim, error) {
	if foreign, err := o.isOfAnotherHub(ctx, record); foreign || err != nil {
		return engine.Wanted, err
	}
	list := &placementv1beta1.WorkList{}
	err := o.hub.List(ctx, list, client.InNamespace(o.options.HubNamespace), client.UnsafeDisableDeepCopy,
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
	name, _ := o.options.workOf(record)
	err = o.hub.Get(ctx, client.ObjectKey{Namespace: o.options.HubNamespace, Name: name}, work)
	switch {
	case apierrors.IsNotFound(err), err == nil && work.DeletionTimestamp != nil && !hasCause(work):
		return engine.Wanted, nil // its objects are retained, or about to be adopted
	case err != nil:
		return engine.Wanted, fmt.Errorf("getting Work %q: %w", name, err)
	case work.DeletionTimestamp != nil:
		return engine.Going, nil
	}
	return engine.Unwanted, nil
}

// areSiblings reports whether two Works belong to the same placement.
func areSiblings(a, b metav1.Object) bool {
	binding := a.GetLabels()[placementv1beta1.ParentBindingLabel]
	namespace := a.GetLabels()[placementv1beta1.ParentPlacementNamespaceLabel]
	return binding != "" && binding == b.GetLabels()[placementv1beta1.ParentBindingLabel] &&
		namespace == b.GetLabels()[placementv1beta1.ParentPlacementNamespaceLabel]
}

// IsMoving reports whether a sibling still has another snapshot, or is being deleted and may be
// re-created. An object that left this Work may be about to join that sibling.
func (o owner) IsMoving(ctx context.Context) (bool, error) {
	list := &placementv1beta1.WorkList{}
	labels := client.MatchingLabels{placementv1beta1.ParentBindingLabel: o.work.GetLabels()[placementv1beta1.ParentBindingLabel]}
	if err := o.hub.List(ctx, list, client.InNamespace(o.options.HubNamespace), client.UnsafeDisableDeepCopy, labels); err != nil {
		return false, fmt.Errorf("listing the other Works of the placement: %w", err)
	}
	for i := range list.Items {
		other := &list.Items[i]
		if other.Name != o.work.GetName() && areSiblings(o.work, other) && (other.DeletionTimestamp != nil || snapshotOf(other) != snapshotOf(o.work)) {
			return true, nil
		}
	}
	return false, nil
}

// PreviousRun returns the run of an object that passes to this Work from a sibling.
func (o owner) PreviousRun(ctx context.Context, key manifest.Key) (engine.Run, error) {
	list := &placementv1beta1.WorkList{}
	labels := client.MatchingLabels{placementv1beta1.ParentBindingLabel: o.work.GetLabels()[placementv1beta1.ParentBindingLabel]}
	if err := o.hub.List(ctx, list, client.InNamespace(o.options.HubNamespace), client.UnsafeDisableDeepCopy, labels); err != nil {
		return engine.Run{}, fmt.Errorf("listing the other Works of the placement: %w", err)
	}
	for i := range list.Items {
		other := &list.Items[i]
		if other.Name == o.work.GetName() || !areSiblings(o.work, other) {
			continue
		}
		record, err := o.current(ctx, other.Name)
		if err != nil {
			return engine.Run{}, err
		}
		if record == nil {
			continue
		}
		for _, entry := range (ledger{o.records, record}).Entries() {
			if manifest.KeyOf(entry.Ref) == key && entry.Run.Result != "" {
				return entry.Run, nil
			}
		}
	}
	return engine.Run{}, nil
}

func snapshotOf(work metav1.Object) string {
	return work.GetLabels()[placementv1beta1.ParentResourceSnapshotIndexLabel]
}

// objectsOf returns the index keys of a Work: the objects of its manifests.
func objectsOf(object client.Object) []string {
	work, ok := object.(*placementv1beta1.Work)
	if !ok {
		return nil
	}
	return manifest.KeysIn(work.Spec.Workload.Manifests, func(m placementv1beta1.Manifest) []byte { return m.Raw })
}
