// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
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
