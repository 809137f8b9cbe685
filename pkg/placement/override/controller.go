// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package override

import (
	"bytes"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/family"
	"fleetgate.io/fleetgate/pkg/routine"
)

// history is how many snapshots of an override are kept.
const history = 10

// Reconciler keeps the snapshots of the overrides of one kind.
type Reconciler struct {
	// Client reads through a cache that knows what was written through the client
	// before: else a snapshot would be made twice.
	Client client.Client
	kind   kind
}

// NewReconcilers returns one for ClusterResourceOverrides and one for
// ResourceOverrides.
func NewReconcilers(c client.Client) []*Reconciler {
	return []*Reconciler{{Client: c, kind: clusterScoped()}, {Client: c, kind: namespaced()}}
}

// SetupWithManager registers the controller. It looks at an override when its
// spec changes or it is being deleted.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return routine.SetUp(r.kind.controller, ctrl.NewControllerManagedBy(mgr).
		Named(r.kind.controller).
		For(r.kind.empty(), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(r))
}

// Reconcile brings the snapshots of one override up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	override := r.kind.empty()
	if found, err := routine.Found(ctx, r.Client, req.NamespacedName, override, "reading override %q", req.NamespacedName); !found {
		return ctrl.Result{}, err
	}
	if override.GetDeletionTimestamp() != nil {
		return family.Again(ctrl.Result{}, r.finalize(ctx, override))
	}
	return family.Again(ctrl.Result{}, r.keep(ctx, override))
}

// keep makes a snapshot if the override differs from the newest one, and leaves
// one label of the latest and no more than the history.
func (r *Reconciler) keep(ctx context.Context, override client.Object) error {
	if err := r.ensureFinalizer(ctx, override); err != nil {
		return err
	}
	hash, err := r.kind.hashOf(override)
	if err != nil {
		return err
	}
	snapshots, err := r.kind.snapshots(ctx, r.Client, override)
	if err != nil {
		return err
	}
	index := -1
	if len(snapshots) > 0 {
		newest := snapshots[len(snapshots)-1]
		if bytes.Equal(r.kind.hash(newest), hash) {
			return r.retire(ctx, snapshots)
		}
		index = family.OverrideIndex(newest)
	}
	made := r.kind.desired(override, hash, index+1)
	if err := r.Client.Create(ctx, made); err != nil {
		return fmt.Errorf("creating snapshot %q of an override: %w", klog.KObj(made), err)
	}
	return r.retire(ctx, append(snapshots, made))
}

// retire takes snapshots in order, of which the last is the latest.
func (r *Reconciler) retire(ctx context.Context, snapshots []client.Object) error {
	surplus := len(snapshots) - history
	for i, s := range snapshots {
		latest := i == len(snapshots)-1
		var err error
		switch {
		case i < surplus:
			err = client.IgnoreNotFound(r.Client.Delete(ctx, s))
		case family.IsLatest(s) != latest:
			err = r.Client.Patch(ctx, s, labelLatest(latest))
		}
		if err != nil {
			return fmt.Errorf("retiring snapshot %q of an override: %w", klog.KObj(s), err)
		}
	}
	return nil
}

func labelLatest(latest bool) client.Patch {
	return client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"labels":{%q:"%t"}}}`, placementv1beta1.IsLatestSnapshotLabel, latest))
}

func (r *Reconciler) ensureFinalizer(ctx context.Context, override client.Object) error {
	return routine.AddFinalizer(ctx, r.Client, override, placementv1beta1.OverrideCleanupFinalizer, "adding the finalizer to override %q", klog.KObj(override))
}

// finalize deletes the override's snapshots and lets it go. Rollouts see them go.
func (r *Reconciler) finalize(ctx context.Context, override client.Object) error {
	if !controllerutil.ContainsFinalizer(override, placementv1beta1.OverrideCleanupFinalizer) {
		return nil
	}
	snapshots, err := r.kind.snapshots(ctx, r.Client, override)
	if err != nil {
		return err
	}
	for _, s := range snapshots {
		if err := r.Client.Delete(ctx, s); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting snapshot %q of an override: %w", klog.KObj(s), err)
		}
	}
	return routine.RemoveFinalizer(ctx, r.Client, override, placementv1beta1.OverrideCleanupFinalizer, "removing the finalizer of override %q", klog.KObj(override))
}
