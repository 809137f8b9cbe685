// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/manifest"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

// A hub can be restored to an earlier state, in which a ManifestWork does not exist or contains
// less. No user asked then to remove the objects on the cluster that are not in the ManifestWork,
// and the agent retains them, as for Works. The epoch in the record (package retention) shows
// whether the hub was restored. The agent asks the hub only before it would remove something.

// updateEpoch decides whether objects of a ManifestWork are retained. It writes the mark and the
// epoch of the ledger to the record before anything is applied or removed.
func (r *Reconciler) updateEpoch(ctx context.Context, p *planned, entries []engine.Entry) error {
	if r.options.Epochs == nil {
		return nil
	}
	before := retention.MarkOn(p.record)
	var err error
	if p.mark, err = r.markOf(ctx, p.record, engine.Beyond(entries, p.items)); err != nil {
		return err
	}
	isNew := grows(p, entries) || before.Is() && !p.mark.Is()
	if !isNew && p.mark == before {
		return nil
	}
	return r.records.annotate(ctx, p.record, func() error {
		setMark(p.record, p.mark)
		if !isNew {
			return nil
		}
		return r.records.beginEpoch(ctx, p.record, p.work)
	})
}

// markOf returns the mark of a record. It asks the hub only if the ledger has unwanted objects and
// no mark is set yet.
func (r *Reconciler) markOf(ctx context.Context, record *workv1.AppliedManifestWork, unwanted []engine.Entry) (retention.Mark, error) {
	mark := retention.MarkOn(record)
	switch {
	case mark.Is() && mark.IsReleased(r.options.Retention.Released()):
		return retention.Mark{}, nil
	case mark.Is() || len(unwanted) == 0:
		return mark, nil
	}
	lost, err := r.options.Epochs.Lost(ctx, retention.NumberOn(record))
	if !lost || err != nil {
		return retention.Mark{}, err
	}
	return r.newMark(ctx, record), nil
}

// grows reports whether an item is not in the ledger, or the ManifestWork was replaced since the
// record's epoch. A record of an earlier version of the agent gets its first epoch when it grows.
func grows(p *planned, entries []engine.Entry) bool {
	_, uid, has := strings.Cut(p.record.Annotations[retention.EpochAnnotation], "/")
	return has && uid != string(p.work.UID) || engine.Grows(entries, p.items)
}

// conditionRetained is set on a ManifestWork while objects are retained. OCM does not have it.
const (
	conditionRetained = "Retained"
	reasonHubRestored = "HubRestored"

	// previousRetained is the type that the previous version wrote. Remove after the next release.
	previousRetained = "Held"
)

// retained reports the objects that are no longer in a ManifestWork and stay on the cluster,
// because the agent has seen no user remove them.
func (c conditions) retained(by retention.Mark, entries []engine.Entry) {
	c.Remove(previousRetained)
	if len(entries) == 0 {
		c.Remove(conditionRetained)
		return
	}
	c.Set(conditionRetained, metav1.ConditionTrue, reasonHubRestored, fmt.Sprintf(
		"The hub was restored to an earlier state, or is another hub: the cluster retains %d objects that are no longer in the ManifestWork. The first is %s. "+
			"Add them again, or release them: annotate the MemberCluster with %s=%s",
		len(entries), manifest.KeyOf(entries[0].Ref), clusterv1beta1.AnnotationRelease, by.ID))
}

// newMark returns the mark for objects that are retained from now on.
func (r *Reconciler) newMark(ctx context.Context, record *workv1.AppliedManifestWork) retention.Mark {
	log.FromContext(ctx).Info("The hub was restored to an earlier state; retaining objects that are not in the ManifestWork",
		"ManifestWork", record.Spec.ManifestWorkName, "epoch", record.Annotations[retention.EpochAnnotation])
	return r.options.Retention.New(r.options.Clock.Now(), r.options.Retention.Released())
}

// setRetained records how many objects of a ManifestWork are retained.
func (r *Reconciler) setRetained(work string, mark retention.Mark, objects int) {
	if r.options.Retention != nil {
		r.options.Retention.Set(retention.ManifestWorks, work, mark, objects)
	}
}

// updateRetention counts the retained objects of a ManifestWork and removes the mark when there are
// none.
func (r *Reconciler) updateRetention(ctx context.Context, p *planned, result engine.Result) error {
	switch {
	case isResting(p.work): // the ledger was not used
		return nil
	case result.RetentionEnds:
		r.setRetained(p.work.Name, retention.Mark{}, 0)
		return r.endRetention(ctx, p)
	}
	r.setRetained(p.work.Name, p.mark, len(result.Unreleased))
	return nil
}

// retainVanished retains the objects of a ManifestWork that no longer exists, and reports whether
// there are any.
func (r *Reconciler) retainVanished(ctx context.Context, record *workv1.AppliedManifestWork, name string) (bool, error) {
	if r.options.Epochs == nil {
		return false, nil
	}
	mark := retention.MarkOn(record)
	if !mark.Is() {
		lost, err := r.options.Epochs.Lost(ctx, retention.NumberOn(record))
		if !lost || err != nil {
			return false, err
		}
		mark = r.newMark(ctx, record)
		if err := r.records.annotate(ctx, record, func() error { setMark(record, mark); return nil }); err != nil {
			return false, err
		}
	}
	if mark.IsReleased(r.options.Retention.Released()) {
		r.setRetained(name, retention.Mark{}, 0)
		_, err := r.finish(ctx, record, name)
		return true, err
	}
	ledger, err := r.records.ledgerOf(record)
	if err != nil {
		return false, err
	}
	gone := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: name}}
	retained, err := r.engine.RetainAll(ctx, engine.Work{Name: name, Record: ownerOf(record), Owner: owner{r: r, work: gone}, Ledger: ledger})
	if err != nil {
		return false, err
	}
	r.setRetained(name, mark, len(retained))
	if len(retained) == 0 { // all objects now belong to another ManifestWork, or to none
		_, err = r.finish(ctx, record, name)
	}
	return true, err
}

// endRetention removes the mark from a record and begins a new epoch for its ledger.
func (r *Reconciler) endRetention(ctx context.Context, p *planned) error {
	return r.records.annotate(ctx, p.record, func() error {
		setMark(p.record, retention.Mark{})
		return r.records.beginEpoch(ctx, p.record, p.work)
	})
}

func setMark(record *workv1.AppliedManifestWork, mark retention.Mark) {
	if mark.Is() {
		metav1.SetMetaDataAnnotation(&record.ObjectMeta, retention.Annotation, mark.Text())
		return
	}
	delete(record.Annotations, retention.Annotation)
}

// beginEpoch increments the hub's counter and sets the number on the record, which the caller
// writes.
func (k *recordKeeper) beginEpoch(ctx context.Context, record *workv1.AppliedManifestWork, work *workv1.ManifestWork) error {
	number, err := k.options.Epochs.Begin(ctx)
	if number > 0 {
		metav1.SetMetaDataAnnotation(&record.ObjectMeta, retention.EpochAnnotation, strconv.FormatInt(number, 10)+"/"+string(work.UID))
	}
	return err
}

// annotate writes the annotations of a record that change changes.
func (k *recordKeeper) annotate(ctx context.Context, record *workv1.AppliedManifestWork, change func() error) error {
	before := record.DeepCopy()
	if err := change(); err != nil {
		return err
	}
	if err := k.member.Patch(ctx, record, reconcileutil.PatchFrom(before), client.FieldOwner(workv1.DefaultFieldManager)); err != nil {
		return fmt.Errorf("annotating AppliedManifestWork %q on the cluster: %w", record.Name, err)
	}
	k.kept.Keep(record.Name, record)
	return nil
}

// largestEpoch returns the largest number on the records of this agent.
func (k *recordKeeper) largestEpoch(ctx context.Context) (int64, error) {
	list := &workv1.AppliedManifestWorkList{}
	if err := k.member.List(ctx, list); err != nil {
		return 0, fmt.Errorf("listing AppliedManifestWorks on the cluster: %w", err)
	}
	ours := slices.DeleteFunc(list.Items, func(record workv1.AppliedManifestWork) bool { return record.Spec.AgentID != k.options.AgentID })
	largest := int64(0)
	for i := range ours {
		largest = max(largest, retention.NumberOn(&ours[i]))
	}
	return largest, nil
}
