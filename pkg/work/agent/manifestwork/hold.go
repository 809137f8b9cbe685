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

// A hub can go back to an earlier state, in which a ManifestWork is not there, or asks for
// less. Nobody has said then that what is on the cluster and not in the ManifestWork is to
// go: it is held, as what Works brought. Whether the hub went back tells the epoch (package
// hold) that the record has since something was entered in its ledger last: the hub is asked
// before something would go, and at no other time.

// mindEpoch finds out whether something of a ManifestWork is held, and has its record say so,
// and which epoch its ledger is of, before anything is brought or removed.
func (r *Reconciler) mindEpoch(ctx context.Context, p *planned, entries []engine.Entry) error {
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

// markOf is what a record is to say of what is held. The hub is asked if something of the
// ledger is not wanted any more, and nothing is held yet.
func (r *Reconciler) markOf(ctx context.Context, record *workv1.AppliedManifestWork, unwanted []engine.Entry) (retention.Mark, error) {
	mark := retention.MarkOn(record)
	switch {
	case mark.Is() && mark.IsReleased(r.options.Holds.Released()):
		return retention.Mark{}, nil
	case mark.Is() || len(unwanted) == 0:
		return mark, nil
	}
	lost, err := r.options.Epochs.Lost(ctx, retention.NumberOn(record))
	if !lost || err != nil {
		return retention.Mark{}, err
	}
	return r.newHold(ctx, record), nil
}

// grows reports whether something is to be brought that is not in the ledger, or the
// ManifestWork is another one than that of the record's epoch. One that an agent of before
// brought gets its first epoch when it grows.
func grows(p *planned, entries []engine.Entry) bool {
	_, uid, has := strings.Cut(p.record.Annotations[retention.EpochAnnotation], "/")
	return has && uid != string(p.work.UID) || engine.Grows(entries, p.items)
}

// conditionRetained is on a ManifestWork while it is True. OCM does not have it.
const (
	conditionRetained = "Retained"
	reasonHubRestored = "HubRestored"

	// previousRetained is the type that the previous version wrote. Remove after the next release.
	previousRetained = "Held"
)

// retained reports the objects that are no longer in a ManifestWork and stay on the cluster, because
// the agent has seen nobody remove them from it.
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

// newHold is one that begins now.
func (r *Reconciler) newHold(ctx context.Context, record *workv1.AppliedManifestWork) retention.Mark {
	log.FromContext(ctx).Info("The hub has gone back to an earlier state: what is on the cluster and not in the ManifestWork is held",
		"ManifestWork", record.Spec.ManifestWorkName, "epoch", record.Annotations[retention.EpochAnnotation])
	return r.options.Holds.New(r.options.Clock.Now(), r.options.Holds.Released())
}

// isHeld enters how much is held of a ManifestWork.
func (r *Reconciler) isHeld(work string, mark retention.Mark, objects int) {
	if r.options.Holds != nil {
		r.options.Holds.Set(retention.ManifestWorks, work, mark, objects)
	}
}

// settleHold counts what is held of a ManifestWork, and ends the hold once there is nothing.
func (r *Reconciler) settleHold(ctx context.Context, p *planned, result engine.Result) error {
	switch {
	case isResting(p.work): // nothing was asked of the ledger
		return nil
	case result.HoldEnds:
		r.isHeld(p.work.Name, retention.Mark{}, 0)
		return r.endHold(ctx, p)
	}
	r.isHeld(p.work.Name, p.mark, len(result.Held))
	return nil
}

// holdVanished reports whether what a ManifestWork brought that is gone from the hub is held.
func (r *Reconciler) holdVanished(ctx context.Context, record *workv1.AppliedManifestWork, name string) (bool, error) {
	if r.options.Epochs == nil {
		return false, nil
	}
	mark := retention.MarkOn(record)
	if !mark.Is() {
		lost, err := r.options.Epochs.Lost(ctx, retention.NumberOn(record))
		if !lost || err != nil {
			return false, err
		}
		mark = r.newHold(ctx, record)
		if err := r.records.annotate(ctx, record, func() error { setMark(record, mark); return nil }); err != nil {
			return false, err
		}
	}
	if mark.IsReleased(r.options.Holds.Released()) {
		r.isHeld(name, retention.Mark{}, 0)
		_, err := r.finish(ctx, record, name)
		return true, err
	}
	ledger, err := r.records.ledgerOf(record)
	if err != nil {
		return false, err
	}
	gone := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: name}}
	held, err := r.engine.Hold(ctx, engine.Work{Name: name, Owner: ownerOf(record), Ledger: ledger, HeirOf: r.heirsOf(gone)})
	if err != nil {
		return false, err
	}
	r.isHeld(name, mark, len(held))
	if len(held) == 0 { // all that it had is another's now, or nobody's
		_, err = r.finish(ctx, record, name)
	}
	return true, err
}

// endHold takes the mark off a record, whose ledger is of the present epoch from then on.
func (r *Reconciler) endHold(ctx context.Context, p *planned) error {
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

// beginEpoch has the hub count, and the record say so when it is written.
func (k *recordKeeper) beginEpoch(ctx context.Context, record *workv1.AppliedManifestWork, work *workv1.ManifestWork) error {
	number, err := k.options.Epochs.Begin(ctx)
	if number > 0 {
		metav1.SetMetaDataAnnotation(&record.ObjectMeta, retention.EpochAnnotation, strconv.FormatInt(number, 10)+"/"+string(work.UID))
	}
	return err
}

// annotate changes the annotations of a record.
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

// largestEpoch is the largest number that a record of this agent has.
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
