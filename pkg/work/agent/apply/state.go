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

// The agent must detect whether the present state of the hub follows from the state that placed the
// objects on the member. UID and generation of a Work are not enough: after a restore the Work
// continues to change and soon reaches a recorded generation again, with other contents.
// ResourceVersions do not help, because a proper restore raises them; neither does memory, because
// agents restart.
//
// A Work therefore has an epoch. Before the agent applies a new object of the Work, it writes the
// epoch first on the hub and then on the member. A hub without the member's epoch has lost the
// state that placed the objects, however often the Work changed since. This costs one request to
// the hub when an object joins an applied Work, and none otherwise. The first generation of a Work
// needs no epoch.

// ObservedWorkAnnotation is set on an AppliedWork to UID and generation of its Work, separated by a
// slash, when an object is added to the ledger. The agent writes it.
const ObservedWorkAnnotation = "fleetgate.io/observed-work"

// deprecatedObservedWorkAnnotation is the previous key of ObservedWorkAnnotation. The agent writes
// both. Otherwise an agent of the previous version, after a rollback, would treat its Works as new
// and miss a restore of the hub. Remove after the next release.
const deprecatedObservedWorkAnnotation = "fleetgate.io/work-seen"

// errBehind is returned if the cache has an older version of a Work than the agent recorded and the
// hub does not.
var errBehind = errors.New("the cache is behind what was seen of the Work")

// state is the state of a Work that its record stores besides the ledger. Zero if there is none.
type state struct {
	// work, epoch and retained are the values of ObservedWorkAnnotation, EpochAnnotation and
	// retention.Annotation.
	work, epoch string
	retained    retention.Mark
}

// readState returns the state of a Work for its record, which is nil if there is none.
type readState func(record *placementv1beta1.AppliedWork) (state, error)

func stateOn(record *placementv1beta1.AppliedWork) state {
	return state{work: observedOn(record), epoch: record.Annotations[placementv1beta1.EpochAnnotation], retained: markOf(record)}
}

// observedOn returns the value of ObservedWorkAnnotation. If the previous key has another value, an
// agent of the previous version wrote last, and that value counts.
func observedOn(record *placementv1beta1.AppliedWork) string {
	if observed, ok := record.Annotations[deprecatedObservedWorkAnnotation]; ok {
		return observed
	}
	return record.Annotations[ObservedWorkAnnotation]
}

func (s state) mark(record *placementv1beta1.AppliedWork) {
	if s.work == "" {
		return
	}
	for key, value := range map[string]string{
		ObservedWorkAnnotation: s.work, deprecatedObservedWorkAnnotation: s.work,
		placementv1beta1.EpochAnnotation: s.epoch, retention.Annotation: s.retained.Text(),
	} {
		if value == "" {
			delete(record.Annotations, key)
			continue
		}
		metav1.SetMetaDataAnnotation(&record.ObjectMeta, key, value)
	}
}

func (s state) isMarkedOn(record *placementv1beta1.AppliedWork) bool {
	return s.work == "" || s == stateOn(record) && s.work == record.Annotations[ObservedWorkAnnotation]
}

// mark returns the value of ObservedWorkAnnotation for a Work.
func mark(work *placementv1beta1.Work) string {
	return string(work.UID) + "/" + strconv.FormatInt(work.Generation, 10)
}

// follows reports whether a Work can be a later version of the recorded one.
func (s state) follows(work *placementv1beta1.Work) bool {
	uid, number, found := strings.Cut(s.work, "/")
	generation, err := strconv.ParseInt(number, 10, 64)
	if !found || err != nil {
		return true // nothing was recorded, or by an agent without this annotation
	}
	return types.UID(uid) == work.UID && generation <= work.Generation && hasEpoch(work, s.epoch)
}

// hasEpoch reports whether the Work has this epoch or a later one. Agents of earlier versions
// recorded no epoch.
func hasEpoch(work *placementv1beta1.Work, epoch string) bool {
	there := work.Annotations[placementv1beta1.EpochAnnotation]
	return epoch == "" || there == epoch || generationIn(there) > generationIn(epoch)
}

// generationIn returns the generation of an epoch; 0 if it is invalid.
func generationIn(epoch string) int64 {
	number, _, _ := strings.Cut(epoch, "/")
	generation, _ := strconv.ParseInt(number, 10, 64)
	return generation
}

// compareState compares a Work with its recorded state. Before it concludes that the hub was restored, it
// reads the Work from the hub, since the cache may follow an API server with an older state.
func (r *Reconciler) compareState(ctx context.Context, work *placementv1beta1.Work, m membership) readState {
	return func(record *placementv1beta1.AppliedWork) (state, error) {
		if record == nil {
			return state{work: mark(work)}, nil
		}
		last := stateOn(record)
		if last.retained.IsReleased(m.released) {
			last.retained = retention.Mark{}
		}
		if last.work == "" {
			last.work = mark(work)
		}
		if last.follows(work) {
			last.retained = r.continueMark(last.retained, m)
			return last, nil
		}
		if err := r.confirm(ctx, work); err != nil {
			return state{}, err
		}
		now := state{work: mark(work), epoch: work.Annotations[placementv1beta1.EpochAnnotation], retained: r.newMark(m)}
		uid, _, _ := strings.Cut(last.work, "/")
		now.retained.Another = types.UID(uid) != work.UID && (!last.retained.Is() || last.retained.Another)
		log.FromContext(ctx).Info("The hub was restored or the Work was replaced; retaining objects that are not in the Work",
			"Work", work.Name, "seen", last.work, "now", now.work, "epoch", last.epoch, "epochNow", now.epoch)
		return now, nil
	}
}

// confirm reads the Work from the hub and returns errBehind if the cache differs.
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

// noteGrowth records the generation of a Work that contains an object without a ledger entry, first
// on the hub and then on the member. An earlier generation lacks that object. Other changes cost no
// request.
func (r *Reconciler) noteGrowth(ctx context.Context, p *planned) error {
	s := stateOn(p.record)
	if p.mode.Method == engine.Compare || s.work == mark(p.work) && (!needsEpoch(p.work) || generationIn(s.epoch) == p.work.Generation) {
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

// needsEpoch reports whether a Work had an earlier generation.
func needsEpoch(work *placementv1beta1.Work) bool { return work.Generation > 1 }

// ensureEpoch writes an epoch for the present generation of a Work to the hub. A gateway of an
// earlier version does not allow agents to write it; then only the generation is recorded.
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
	r.throttle.wrote(work)
	return nil
}
