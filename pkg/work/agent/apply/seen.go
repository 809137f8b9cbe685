// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/manifest"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

// What the member has of a Work must have been asked for by a state of the hub from which the
// present one follows. UID and generation of a Work do not tell that alone: one that a restore
// put back goes on, and is soon of a generation that was seen before, with other contents. Nor
// do resourceVersions, which a restore moves on as it should, nor memory, which an agent loses.
//
// So a Work has an epoch, which the agent writes on the hub first, and only then on the member,
// before something new of the Work is applied. A hub that lacks the member's epoch has lost
// the state that asked for what is there, however far it has come since. It costs a request
// to the hub when an object joins a Work that is on the member, and none at other times: the
// first generation of a Work needs none, since nothing was before it.

// ObservedWorkAnnotation is on an AppliedWork: UID and generation of its Work when an object was
// last added to the ledger, separated by a slash. The agent writes it.
const ObservedWorkAnnotation = "fleetgate.io/observed-work"

// deprecatedObservedWorkAnnotation is the previous key of ObservedWorkAnnotation. The agent writes
// both: one of the previous version that runs again after a rollback would otherwise take its
// Works for new ones, and not notice that the hub was restored meanwhile.
// Remove after the next release.
const deprecatedObservedWorkAnnotation = "fleetgate.io/work-seen"

// errBehind is returned when the cache shows a Work as it was before we last saw it, though
// the hub has it as it should be.
var errBehind = errors.New("the cache is behind what was seen of the Work")

// seen is what is remembered of a Work beside its ledger. The zero value is nothing.
type seen struct {
	// work is the value of ObservedWorkAnnotation, epoch that of EpochAnnotation, held that of
	// hold.Annotation.
	work, epoch string
	held        retention.Mark
}

// sight says what is seen of a Work whose record is given, nil if it has none.
type sight func(record *placementv1beta1.AppliedWork) (seen, error)

func seenOn(record *placementv1beta1.AppliedWork) seen {
	return seen{work: observedOn(record), epoch: record.Annotations[placementv1beta1.EpochAnnotation], held: holdOf(record)}
}

// observedOn returns the value of ObservedWorkAnnotation. Where the previous key differs from it,
// an agent of the previous version wrote last.
func observedOn(record *placementv1beta1.AppliedWork) string {
	if observed, ok := record.Annotations[deprecatedObservedWorkAnnotation]; ok {
		return observed
	}
	return record.Annotations[ObservedWorkAnnotation]
}

func (s seen) mark(record *placementv1beta1.AppliedWork) {
	if s.work == "" {
		return
	}
	for key, value := range map[string]string{
		ObservedWorkAnnotation: s.work, deprecatedObservedWorkAnnotation: s.work,
		placementv1beta1.EpochAnnotation: s.epoch, retention.Annotation: s.held.Text(),
	} {
		if value == "" {
			delete(record.Annotations, key)
			continue
		}
		metav1.SetMetaDataAnnotation(&record.ObjectMeta, key, value)
	}
}

func (s seen) isMarkedOn(record *placementv1beta1.AppliedWork) bool {
	return s.work == "" || s == seenOn(record) && s.work == record.Annotations[ObservedWorkAnnotation]
}

// mark is what ObservedWorkAnnotation says of a Work.
func mark(work *placementv1beta1.Work) string {
	return string(work.UID) + "/" + strconv.FormatInt(work.Generation, 10)
}

// follows reports whether a Work may be what became of it as it was seen last.
func (s seen) follows(work *placementv1beta1.Work) bool {
	uid, number, found := strings.Cut(s.work, "/")
	generation, err := strconv.ParseInt(number, 10, 64)
	if !found || err != nil {
		return true // it was never seen, or by an agent that did not remember
	}
	return types.UID(uid) == work.UID && generation <= work.Generation && hasEpoch(work, s.epoch)
}

// hasEpoch reports whether the hub has an epoch of a Work, or a later one. What agents of
// before brought has none.
func hasEpoch(work *placementv1beta1.Work, epoch string) bool {
	there := work.Annotations[placementv1beta1.EpochAnnotation]
	return epoch == "" || there == epoch || generationIn(there) > generationIn(epoch)
}

// generationIn is 0 for what is no epoch.
func generationIn(epoch string) int64 {
	number, _, _ := strings.Cut(epoch, "/")
	generation, _ := strconv.ParseInt(number, 10, 64)
	return generation
}

// see compares a Work with how it was seen last. The hub itself is asked before it is said to
// have gone back: one of several API servers can show what was.
func (r *Reconciler) see(ctx context.Context, work *placementv1beta1.Work, m membership) sight {
	return func(record *placementv1beta1.AppliedWork) (seen, error) {
		if record == nil {
			return seen{work: mark(work)}, nil
		}
		last := seenOn(record)
		if last.held.IsReleased(m.released) {
			last.held = retention.Mark{}
		}
		if last.work == "" {
			last.work = mark(work)
		}
		if last.follows(work) {
			last.held = r.goesOn(last.held, m)
			return last, nil
		}
		if err := r.confirm(ctx, work); err != nil {
			return seen{}, err
		}
		now := seen{work: mark(work), epoch: work.Annotations[placementv1beta1.EpochAnnotation], held: r.newHold(m)}
		uid, _, _ := strings.Cut(last.work, "/")
		now.held.Another = types.UID(uid) != work.UID && (!last.held.Is() || last.held.Another)
		log.FromContext(ctx).Info("The hub has gone back, or has another Work of that name: what is on the member and not in the Work is held",
			"Work", work.Name, "seen", last.work, "now", now.work, "epoch", last.epoch, "epochNow", now.epoch)
		return now, nil
	}
}

// confirm asks the hub itself whether a Work is as the cache has it.
func (r *Reconciler) confirm(ctx context.Context, work *placementv1beta1.Work) error {
	live := &placementv1beta1.Work{}
	if err := r.hubReader.Get(ctx, client.ObjectKeyFromObject(work), live); err != nil {
		return fmt.Errorf("asking the hub which generation Work %q has: %w", work.Name, err)
	}
	if mark(live) != mark(work) || live.Annotations[placementv1beta1.EpochAnnotation] != work.Annotations[placementv1beta1.EpochAnnotation] {
		return errBehind
	}
	return nil
}

// noteGrowth remembers the generation of a Work that has an object which is not in the ledger
// yet, on the hub and then on the member: an earlier one lacks it. Others cost no request.
func (r *Reconciler) noteGrowth(ctx context.Context, p *planned) error {
	s := seenOn(p.record)
	if p.way.By == engine.Compare || s.work == mark(p.work) && (!needsEpoch(p.work) || generationIn(s.epoch) == p.work.Generation) {
		return nil
	}
	entered := map[manifest.Key]bool{}
	for _, of := range p.record.Status.AppliedResources {
		entered[manifest.KeyOf(manifest.Ref(of.WorkResourceIdentifier))] = true
	}
	if !slices.ContainsFunc(p.items, func(it engine.Item) bool { return it.Refused == nil && !entered[manifest.KeyOf(it.Ref)] }) {
		return nil
	}
	if err := r.ensureEpoch(ctx, p.work); err != nil {
		return err
	}
	s.work, s.epoch = mark(p.work), p.work.Annotations[placementv1beta1.EpochAnnotation]
	if s.isMarkedOn(p.record) {
		return nil
	}
	return r.records.annotate(ctx, p.record, func() { s.mark(p.record) })
}

// needsEpoch reports whether a Work was of another generation before.
func needsEpoch(work *placementv1beta1.Work) bool { return work.Generation > 1 }

// ensureEpoch begins an epoch of a Work on the hub at its present generation. A gateway of
// before lets no agent write it: then the generation has to do.
func (r *Reconciler) ensureEpoch(ctx context.Context, work *placementv1beta1.Work) error {
	if !needsEpoch(work) || generationIn(work.Annotations[placementv1beta1.EpochAnnotation]) == work.Generation {
		return nil
	}
	before := work.DeepCopy()
	metav1.SetMetaDataAnnotation(&work.ObjectMeta, placementv1beta1.EpochAnnotation, strconv.FormatInt(work.Generation, 10)+"/"+work.ResourceVersion)
	err := r.hub.Patch(ctx, work, reconcileutil.PatchFrom(before))
	if apierrors.IsForbidden(err) {
		before.DeepCopyInto(work)
		return nil
	}
	if err != nil {
		return fmt.Errorf("beginning an epoch of Work %q on the hub: %w", work.Name, err)
	}
	r.turns.wrote(work)
	return nil
}
