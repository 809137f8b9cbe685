// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
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

// renewLease says on the hub that the agent lives. It returns false where the hub has no
// Lease for this member: an older gateway, or somebody deleted it.
func (r *Reconciler) renewLease(ctx context.Context, periodSeconds int32) (bool, error) {
	patch, err := leasePatch(r.Name, periodSeconds, r.Clock.Now())
	if err != nil {
		return false, err
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: clusterv1beta1.MemberNamespace(r.Name), Name: clusterv1beta1.AgentLease,
	}}
	err = r.Hub.Patch(ctx, lease, client.RawPatch(types.MergePatchType, patch))
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("renewing the Lease on the hub: %w", err)
	}
	r.lookBack(ctx, lease.ResourceVersion)
	return true, nil
}

// lookBack compares the resourceVersion of a write with that of the one before: on one hub
// they only grow.
func (r *Reconciler) lookBack(ctx context.Context, version string) {
	before := r.reached
	r.reached = version
	if r.WentBack == nil || before == "" || !isLower(version, before) {
		return
	}
	log.FromContext(ctx).Info("The hub went back to an earlier state; all that is watched there is read anew", "from", before, "to", version)
	r.WentBack()
}

// isLower compares two resourceVersions of an API server; of others nothing is known.
func isLower(version, than string) bool {
	a, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		//lint:ignore nilerr It is none of an API server.
		return false
	}
	b, err := strconv.ParseUint(than, 10, 64)
	return err == nil && a < b
}

// leasePatch sets the whole spec, so that nothing has to be read before.
func leasePatch(holder string, periodSeconds int32, now time.Time) ([]byte, error) {
	patch, err := json.Marshal(map[string]any{"spec": coordinationv1.LeaseSpec{
		HolderIdentity:       ptr.To(holder),
		LeaseDurationSeconds: ptr.To(max(periodSeconds, 1)),
		RenewTime:            ptr.To(metav1.NewMicroTime(now)),
	}})
	if err != nil {
		return nil, fmt.Errorf("encoding a Lease: %w", err)
	}
	return patch, nil
}
