// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package override

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/placement/objects"
)

const (
	// history is the number of snapshots that are kept of an override.
	history = 10
	// recheck is the interval at which used snapshots are checked again.
	recheck = 30 * time.Second
	// settle is the delay before a snapshot that is no longer the latest may be deleted: a rollout that
	// has read its label may be about to use it.
	settle = time.Second
)

// Users knows who needs override snapshots besides bindings; updaterun.Users implements it.
type Users interface {
	// NeededOverrides names the snapshots that unfinished update runs will apply.
	NeededOverrides(ctx context.Context) ([]types.NamespacedName, error)
}

// Reconciler manages the snapshots of the overrides of one kind.
type Reconciler struct {
	// Client reads through a cache that sees the client's own writes: otherwise a snapshot could be
	// created twice.
	Client client.Client
	// Users are the other users of snapshots; a used snapshot is not removed.
	Users Users
	kind  kind
}

// NewReconcilers returns one for ClusterResourceOverrides and one for ResourceOverrides.
func NewReconcilers(c client.Client, users Users) []*Reconciler {
	return []*Reconciler{{Client: c, Users: users, kind: clusterScoped()}, {Client: c, Users: users, kind: namespaced()}}
}

// SetupWithManager registers the controller. It reconciles an override when its spec changes or it is
// being deleted. After a start it also handles remaining snapshots of deleted overrides.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return reconcileutil.SetupError(r.kind.controller, ctrl.NewControllerManagedBy(mgr).
		Named(r.kind.controller).
		For(r.kind.empty(), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(r.kind.emptySnapshot(), handler.EnqueueRequestsFromMapFunc(overrideOf), builder.WithPredicates(predicate.Funcs{
			UpdateFunc: func(event.UpdateEvent) bool { return false },
			DeleteFunc: func(event.DeleteEvent) bool { return false },
		})).
		Complete(reconcileutil.RetryConflictsAfter(objects.RetryDelay, r)))
}

func overrideOf(_ context.Context, snapshot client.Object) []reconcile.Request {
	name := snapshot.GetLabels()[placementv1beta1.ParentOverrideLabel]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: snapshot.GetNamespace(), Name: name}}}
}

// Reconcile keeps the snapshots of one override up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	override := r.kind.empty()
	found, err := reconcileutil.GetIfExists(ctx, r.Client, req.NamespacedName, override, "reading override %q", req.NamespacedName)
	var again time.Duration
	switch {
	case err != nil:
	case !found:
		override.SetNamespace(req.Namespace)
		override.SetName(req.Name)
		again, err = r.withdraw(ctx, override)
	case override.GetDeletionTimestamp() != nil:
		again, err = r.finalize(ctx, override)
	default:
		again, err = r.keep(ctx, override)
	}
	return objects.Again(ctrl.Result{RequeueAfter: again}, err)
}

// keep creates a snapshot if the override differs from the newest one. It leaves one latest label, and
// at most history snapshots besides the used ones.
func (r *Reconciler) keep(ctx context.Context, override client.Object) (again time.Duration, err error) {
	if err := reconcileutil.AddFinalizer(ctx, r.Client, override, placementv1beta1.OverrideCleanupFinalizer, "adding the finalizer to override %q", klog.KObj(override)); err != nil {
		return 0, err
	}
	hash, err := r.kind.hashOf(override)
	if err != nil {
		return 0, err
	}
	snapshots, err := r.kind.snapshots(ctx, r.Client, override)
	if err != nil {
		return 0, err
	}
	index := -1
	if len(snapshots) > 0 {
		newest := snapshots[len(snapshots)-1]
		if bytes.Equal(r.kind.hash(newest), hash) {
			return r.retire(ctx, snapshots, newest.GetName())
		}
		index = objects.OverrideIndex(newest)
	}
	made := r.kind.desired(override, hash, index+1)
	if err := recordDeletions(ctx, r.Client, made, r.kind.override(made)); err != nil {
		return 0, err
	}
	if err := r.Client.Create(ctx, made); err != nil {
		return 0, fmt.Errorf("creating snapshot %q of an override: %w", klog.KObj(made), err)
	}
	return r.retire(ctx, append(snapshots, made), made.GetName())
}

// retire takes snapshots in order, and the name of the latest. Without a latest one the override is
// deleted, and its snapshots are deleted once nobody uses them. It returns when to look again at those
// that have to wait, or 0.
func (r *Reconciler) retire(ctx context.Context, snapshots []client.Object, latest string) (again time.Duration, err error) {
	surplus := len(snapshots) - history
	if latest == "" {
		surplus = len(snapshots)
	}
	var used sets.Set[types.NamespacedName]
	if surplus > 0 {
		if used, err = r.used(ctx); err != nil {
			return 0, err
		}
	}
	for i, s := range snapshots {
		current := s.GetName() == latest
		var err error
		switch {
		case objects.IsLatest(s) != current:
			if i < surplus {
				again = settle
			}
			err = r.Client.Patch(ctx, s, client.RawPatch(types.MergePatchType,
				fmt.Appendf(nil, `{"metadata":{"labels":{%q:"%t"}}}`, placementv1beta1.IsLatestSnapshotLabel, current)))
		case i >= surplus:
		case used.Has(client.ObjectKeyFromObject(s)):
			again = cmp.Or(again, recheck)
		default:
			err = r.Client.Delete(ctx, s)
		}
		if client.IgnoreNotFound(err) != nil {
			return 0, fmt.Errorf("retiring snapshot %q of an override: %w", klog.KObj(s), err)
		}
	}
	return again, nil
}

// finalize withdraws the override's snapshots and removes the finalizer. Used snapshots outlive the
// override, because a rollout may need time. The others do not: an override that is created again
// with the same name starts with number 0.
func (r *Reconciler) finalize(ctx context.Context, override client.Object) (again time.Duration, err error) {
	if !controllerutil.ContainsFinalizer(override, placementv1beta1.OverrideCleanupFinalizer) {
		return 0, nil
	}
	if again, err = r.withdraw(ctx, override); err != nil || again == settle {
		return again, err
	}
	return again, reconcileutil.RemoveFinalizer(ctx, r.Client, override, placementv1beta1.OverrideCleanupFinalizer, "removing the finalizer of override %q", klog.KObj(override))
}

func (r *Reconciler) withdraw(ctx context.Context, override client.Object) (again time.Duration, err error) {
	snapshots, err := r.kind.snapshots(ctx, r.Client, override)
	if err != nil {
		return 0, err
	}
	return r.retire(ctx, snapshots, "")
}
