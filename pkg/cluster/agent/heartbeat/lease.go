// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// renewals are the values of renewTime, as JSON, that the Lease can have on a hub that lost
// nothing; empty if unknown.
type renewals struct{ tried, done string }

// renewLease renews the Lease on the hub. It returns false if the hub has no Lease for this member:
// the gateway is older, or a user deleted it.
func (r *Reconciler) renewLease(ctx context.Context, periodSeconds int32) (bool, error) {
	spec := leaseSpec(r.Name, periodSeconds, r.Clock.Now())
	stamp, err := json.Marshal(spec.RenewTime)
	if err != nil {
		return false, fmt.Errorf("encoding a time: %w", err)
	}
	before := r.renewals
	r.renewals.tried = string(stamp)
	err = r.patchLease(ctx, spec, before)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("renewing the Lease on the hub: %w", err)
	}
	r.renewals.done = string(stamp)
	return true, nil
}

func leaseSpec(holder string, periodSeconds int32, now time.Time) coordinationv1.LeaseSpec {
	return coordinationv1.LeaseSpec{
		HolderIdentity:       ptr.To(holder),
		LeaseDurationSeconds: ptr.To(max(periodSeconds, 1)),
		RenewTime:            ptr.To(metav1.NewMicroTime(now)),
	}
}

// patchLease writes the Lease if it has a renewTime of ours. Otherwise the hub has lost our last
// write, and others too.
func (r *Reconciler) patchLease(ctx context.Context, spec coordinationv1.LeaseSpec, before renewals) error {
	left := slices.DeleteFunc(slices.Compact([]string{before.tried, before.done}), func(at string) bool { return at == "" })
	for _, at := range left {
		patch, err := json.Marshal([]map[string]any{
			{"op": "test", "path": "/spec/renewTime", "value": json.RawMessage(at)},
			{"op": "replace", "path": "/spec", "value": spec},
		})
		if err != nil {
			return fmt.Errorf("encoding a Lease: %w", err)
		}
		if err := r.Hub.Patch(ctx, r.lease(), client.RawPatch(types.JSONPatchType, patch)); !apierrors.IsInvalid(err) {
			return err
		}
	}
	patch, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return fmt.Errorf("encoding a Lease: %w", err)
	}
	// The patch contains the whole spec, so that no read is needed.
	if err := r.Hub.Patch(ctx, r.lease(), client.RawPatch(types.MergePatchType, patch)); err != nil {
		return err
	}
	if len(left) > 0 && r.HubRestored != nil {
		log.FromContext(ctx).Info("The hub lost writes, as after a restore from a backup; reading all objects from it again")
		r.HubRestored()
	}
	return nil
}

func (r *Reconciler) lease() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1beta1.MemberNamespace(r.Name), Name: clusterv1beta1.AgentLease}}
}
