// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/manifest"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

// A hub can go back: its etcd is restored from a backup, or lost. Two signs of it cannot be
// seen otherwise, since a Work has our finalizer before anything of it is applied, its
// generation only grows, and so does its epoch:
//
//   - a Work is gone, and its deletion did not come here;
//   - a Work is of an earlier generation or epoch than that from which the ledger got its last
//     entry, or of another UID.
//
// Then nobody has said that what is on the member and not in the Work is to go: it is held.
// It stays, is counted and told, and is adopted again when a Work wants it. Only an
// administrator lets it go, on the hub.

// holdOf is what is held by a record, nothing if there is none.
func holdOf(record *placementv1beta1.AppliedWork) retention.Mark {
	if record == nil {
		return retention.Mark{}
	}
	return retention.MarkOn(record)
}

// newHold is one that begins now.
func (r *Reconciler) newHold(m membership) retention.Mark {
	return r.options.Holds.New(r.options.Clock.Now(), m.released)
}

// goesOn is a hold that is not let go: one that an agent of before began gets an id.
func (r *Reconciler) goesOn(h retention.Mark, m membership) retention.Mark {
	return r.options.Holds.GoesOn(h, r.options.Clock.Now(), m.released)
}

// isHeld enters how much is held of a Work.
func (r *Reconciler) isHeld(work string, h retention.Mark, objects int) {
	r.options.Holds.Set(retention.Works, work, h, objects)
}

// settleHold counts what is held of a Work, and ends the hold once there is nothing.
func (r *Reconciler) settleHold(ctx context.Context, p *planned, result engine.Result) error {
	if !p.job.Held {
		r.isHeld(p.work.Name, retention.Mark{}, 0)
		return nil
	}
	if !result.HoldEnds {
		r.isHeld(p.work.Name, holdOf(p.record), len(result.Held))
		return nil
	}
	r.isHeld(p.work.Name, retention.Mark{}, 0)
	return r.records.annotate(ctx, p.record, func() { delete(p.record.Annotations, retention.Annotation) })
}

// holdVanished holds what a Work applied that is gone though nobody is known to have deleted
// it.
func (r *Reconciler) holdVanished(ctx context.Context, record *placementv1beta1.AppliedWork, m membership) (ctrl.Result, error) {
	name, h := record.Spec.WorkName, r.goesOn(holdOf(record), m)
	if !h.Is() {
		h = r.newHold(m)
		log.FromContext(ctx).Info("A Work is not on the hub any more, and its deletion did not come here: what it applied is held", "Work", name)
	}
	if h != holdOf(record) {
		if err := r.records.annotate(ctx, record, func() {
			metav1.SetMetaDataAnnotation(&record.ObjectMeta, retention.Annotation, h.Text())
		}); err != nil {
			return ctrl.Result{}, err
		}
	}
	gone := &metav1.ObjectMeta{Name: name}
	held, err := r.engine.Hold(ctx, engine.Work{
		Name: name, Owner: ownerOf(record), Ledger: ledger{r.records, record}, HeirOf: siblings{r.records}.heirsOf(gone), UnmarkedBefore: unmarkedBefore(record)})
	if err != nil {
		return ctrl.Result{}, err
	}
	r.isHeld(name, h, len(held))
	if len(held) > 0 {
		return ctrl.Result{RequeueAfter: retention.Recheck}, nil
	}
	// All that it had is another's now, or nobody's.
	_, err = r.depart(ctx, departure{work: gone, record: record, membership: m, policy: metav1.DeletePropagationOrphan})
	return ctrl.Result{RequeueAfter: recheckDeletion}, err
}

// departHeld removes what a deleted Work applied, but for what is held and what that is in. It
// returns what is left to wait for, nil if nothing is: then the rest is what a Work applied
// that is gone.
func (r *Reconciler) departHeld(ctx context.Context, d departure, held []engine.Entry) (*engine.Removal, error) {
	removed, err := r.engine.RemoveBut(ctx, r.removalOf(d), held, d.policy)
	r.tellRetained(ctx, d.work, removed.Retained())
	if err != nil || !removed.IsOver() {
		return removed, err
	}
	return nil, nil
}

// beyond are the entries of a ledger that its Work does not ask for.
func beyond(entries []engine.Entry, work *placementv1beta1.Work) []engine.Entry {
	named := sets.New(objectsOf(work)...)
	return slices.DeleteFunc(entries, func(entry engine.Entry) bool { return named.Has(manifest.KeyOf(entry.Ref).String()) })
}

// waitingWorks are those that an order of the hub about the whole member may let go on: whose
// deletion is not finished, of which something is held, and which a hub placed whose place
// this one has.
func (r *Reconciler) waitingWorks(ctx context.Context, member client.Object) []reconcile.Request {
	r.options.Holds.Release(retention.ReleasedIDs(member)) // of works of all families
	requests := r.deletedWorks(ctx, member)
	names := r.options.Holds.Names(retention.Works)
	if former := member.GetAnnotations()[clusterv1beta1.AnnotationFormerHub]; former != "" {
		records := &placementv1beta1.AppliedWorkList{}
		if err := r.records.member.List(ctx, records); err != nil {
			log.FromContext(ctx).Error(err, "Listing what the former hub placed; it is found at the next look")
		}
		for i := range records.Items {
			if record := &records.Items[i]; record.Annotations[HubAnnotation] == former && record.Spec.WorkNamespace == r.options.HubNamespace {
				names = append(names, record.Spec.WorkName)
			}
		}
	}
	for _, name := range names {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: r.options.HubNamespace, Name: name}})
	}
	return requests
}
