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

// A hub can return to an older state: its etcd is restored from a backup, or lost. A Work has our
// finalizer before anything is applied, and its generation and epoch only grow. Two signs therefore
// prove a restored hub:
//
//   - a Work is gone, and the agent did not see its deletion;
//   - a Work has a lower generation or epoch than its ledger recorded, or another UID.
//
// In this case no user asked to remove the objects on the member that are not in the Work, and the
// agent retains them. They stay on the member, are counted and reported, and are adopted when a
// Work wants them. Only an administrator can release them, on the hub.

// markOf returns the mark of a record with retained objects, or an empty mark.
func markOf(record *placementv1beta1.AppliedWork) retention.Mark {
	if record == nil {
		return retention.Mark{}
	}
	return retention.MarkOn(record)
}

// newMark returns the mark for objects that are retained from now on.
func (r *Reconciler) newMark(m membership) retention.Mark {
	return r.options.Retention.New(r.options.Clock.Now(), m.released)
}

// continueMark returns the mark of objects that remain retained. A mark of a previous version of the
// agent gets an id.
func (r *Reconciler) continueMark(h retention.Mark, m membership) retention.Mark {
	return r.options.Retention.Continue(h, r.options.Clock.Now(), m.released)
}

// setRetained records how many objects of a Work are retained.
func (r *Reconciler) setRetained(work string, h retention.Mark, objects int) {
	r.options.Retention.Set(retention.Works, work, h, objects)
}

// updateRetention counts the retained objects of a Work and removes the mark when there are none.
func (r *Reconciler) updateRetention(ctx context.Context, p *planned, result engine.Result) error {
	if !p.job.RetainsRemoved {
		r.setRetained(p.work.Name, retention.Mark{}, 0)
		return nil
	}
	if !result.RetentionEnds {
		r.setRetained(p.work.Name, markOf(p.record), len(result.Unreleased))
		return nil
	}
	r.setRetained(p.work.Name, retention.Mark{}, 0)
	return r.records.annotate(ctx, p.record, func() { delete(p.record.Annotations, retention.Annotation) })
}

// retainVanished retains the objects of a Work that no longer exists although the agent saw no
// deletion.
func (r *Reconciler) retainVanished(ctx context.Context, record *placementv1beta1.AppliedWork, m membership) (ctrl.Result, error) {
	name, h := record.Spec.WorkName, r.continueMark(markOf(record), m)
	if !h.Is() {
		h = r.newMark(m)
		log.FromContext(ctx).Info("A Work disappeared from the hub without a cause for its deletion; retaining its objects", "Work", name)
	}
	if h != markOf(record) {
		if err := r.records.annotate(ctx, record, func() {
			metav1.SetMetaDataAnnotation(&record.ObjectMeta, retention.Annotation, h.Text())
		}); err != nil {
			return ctrl.Result{}, err
		}
	}
	gone := &metav1.ObjectMeta{Name: name}
	retained, err := r.engine.RetainAll(ctx, engine.Work{
		Name: name, Record: ownerOf(record), Owner: owner{records: r.records, work: gone}, Ledger: ledger{r.records, record}, UnmarkedBefore: unmarkedBefore(record)})
	if err != nil {
		return ctrl.Result{}, err
	}
	r.setRetained(name, h, len(retained))
	if len(retained) > 0 {
		return ctrl.Result{RequeueAfter: retention.Recheck}, nil
	}
	// All objects now belong to another Work, or to none.
	_, err = r.depart(ctx, departure{work: gone, record: record, membership: m, policy: metav1.DeletePropagationOrphan})
	return ctrl.Result{RequeueAfter: recheckDeletion}, err
}

// departExcept removes the objects of a deleted Work, except retained ones and their containers. It
// returns the remaining objects, or nil. After that, the retained ones count as objects of a Work
// that no longer exists.
func (r *Reconciler) departExcept(ctx context.Context, d departure, retained []engine.Entry) (*engine.Removal, error) {
	removed, err := r.engine.RemoveExcept(ctx, r.removalOf(d), retained, d.policy)
	r.recordRetained(ctx, d.work, removed.Retained())
	if err != nil || !removed.IsOver() {
		return removed, err
	}
	return nil, nil
}

// beyond returns the ledger entries that the Work does not contain.
func beyond(entries []engine.Entry, work *placementv1beta1.Work) []engine.Entry {
	named := sets.New(objectsOf(work)...)
	return slices.DeleteFunc(entries, func(entry engine.Entry) bool { return named.Has(manifest.KeyOf(entry.Ref).String()) })
}

// waitingWorks returns the Works that a change of the InternalMemberCluster can unblock: Works with
// an unfinished deletion, Works with retained objects, and Works of a former hub that this hub
// replaces.
func (r *Reconciler) waitingWorks(ctx context.Context, member client.Object) []reconcile.Request {
	r.options.Retention.Release(retention.ReleasedIDs(member)) // for works of all families
	requests := r.deletedWorks(ctx, member)
	names := r.options.Retention.Names(retention.Works)
	if former := member.GetAnnotations()[clusterv1beta1.AnnotationFormerHub]; former != "" {
		records := &placementv1beta1.AppliedWorkList{}
		if err := r.records.member.List(ctx, records); err != nil {
			log.FromContext(ctx).Error(err, "Could not list AppliedWorks of the former hub; the next reconcile retries")
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
