// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/placement/helmchart"
	"fleetgate.io/fleetgate/pkg/placement/objects"
)

// unsent is an error that lasts until a user changes something.
func unsent(format string, args ...any) error {
	return refusal.New(placementv1beta1.ReasonSyncWorkFailed, format, args...)
}

// misfit is the error for a binding's overrides that do not fit its resources.
func misfit(err error) error {
	return refusal.New(placementv1beta1.ReasonOverriddenFailed, "the overrides cannot be applied: %w", err)
}

// report writes the status of a binding whose Works were synchronized, or not because of an error.
func (r *Reconciler) report(ctx context.Context, in input, works []*placementv1beta1.Work, err error) (again time.Duration, _ error) {
	switch {
	case apierrors.IsConflict(err):
		return 0, err
	case errors.Is(err, helmchart.ErrRendering):
		return 0, nil // The rendered chart triggers the binding again.
	case errors.Is(err, errSettling):
		return deletionSettle / 2, nil
	}
	s := synced{works: works, noHeartbeat: objects.NoHeartbeat(in.member), external: rolledOutByRuns(in.placement)}
	refused := refusal.Of(err)
	switch {
	case refused != nil && refused.Reason == placementv1beta1.ReasonOverriddenFailed:
		s.misfit = err.Error()
	case err != nil:
		s.problem = err.Error()
	}
	again, statusErr := r.writeStatus(ctx, in.binding, s)
	switch {
	case statusErr == nil && errors.Is(err, errSuspended):
		return deletionRecheck, nil
	case statusErr != nil || refused != nil:
		return again, statusErr // Only a user's change helps, which triggers the binding again.
	case err == nil && again == 0 && objects.Suspended(in.placement, placementv1beta1.ReasonOverrideConfirmationRequired, placementv1beta1.ReasonChartConfirmationRequired):
		return deletionRecheck, nil // The labels of other members may be set again.
	}
	return again, err
}

// dropped returns the state of a binding that waits for its removal. A member that is gone or never got
// anything is a problem: the rollout waits for Works that can still become available, and these cannot.
func dropped(in input) synced {
	s, target := synced{works: in.works, noHeartbeat: objects.NoHeartbeat(in.member)}, in.binding.GetSpec().TargetCluster
	switch {
	case in.member == nil:
		s.problem = fmt.Sprintf("member %q has left", target)
	case len(in.works) == 0:
		s.problem = fmt.Sprintf("member %q was dropped before anything was sent to it", target)
	}
	return s
}

// rolledOutByRuns reports whether only update runs start the rollout of a placement. A nil placement is
// deleted.
func rolledOutByRuns(placement placementv1beta1.PlacementObject) bool {
	return placement != nil && placement.GetSpec().Strategy.Type == placementv1beta1.ExternalStrategy
}

func (r *Reconciler) writeStatus(ctx context.Context, b placementv1beta1.BindingObject, s synced) (again time.Duration, err error) {
	status, key := desiredStatus(b, s), client.ObjectKeyFromObject(b)
	if equality.Semantic.DeepEqual(*b.GetStatus(), status) {
		r.inFlight.forget(key)
		return 0, nil
	}
	if s.problem == "" && s.misfit == "" && isInFlight(&status, b.GetGeneration()) {
		if again = r.inFlight.wait(key, r.Clock.Now()); again > 0 {
			return again, nil
		}
	}
	*b.GetStatus() = status
	// Update instead of patch: the whole object is at hand, and the API server would merge and prune a patch first.
	if err := r.Client.Status().Update(ctx, b); err != nil {
		return 0, fmt.Errorf("writing the status of binding %q: %w", b.GetName(), err)
	}
	r.inFlight.forget(key)
	return 0, nil
}
