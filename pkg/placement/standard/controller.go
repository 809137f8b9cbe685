// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package standard

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	multiclusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/multicluster/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/placement/objects"
)

// EventSource is the component in events about published decisions.
const EventSource = "placement-standard"

// settle is how long changes of a decision's input are gathered.
const settle = 50 * time.Millisecond

// Options are common to both families.
type Options struct {
	// Client reads through the cache, and sees its own writes there.
	Client   client.Client
	Recorder events.EventRecorder
	// Namespace is the namespace of ClusterProfiles, and of the decisions of cluster-scoped placements.
	Namespace string
	// Manager is the cluster manager in profiles; if unset, multiclusterv1alpha1.ClusterManager.
	Manager string
	// Workers is the number of placements that are reconciled at a time.
	Workers int
}

// Reconciler publishes decisions as PlacementDecisions of multicluster.x-k8s.io.
type Reconciler struct {
	Options
	source source
	wanted wanted
}

// NewFleet publishes ClusterResourcePlacements and ResourcePlacements that request it, or, with all,
// those that do not refuse it. The cache must have the indexes of objects.AddIndexes.
func NewFleet(o Options, all bool) *Reconciler {
	return &Reconciler{Options: o, source: &fleet{reader: o.Client, all: all}}
}

// NewOCM publishes Open Cluster Management's Placements that do not refuse it.
func NewOCM(o Options) *Reconciler {
	return &Reconciler{Options: o, source: &ocm{reader: o.Client}}
}

// SetupWithManager registers the controller. It reconciles a placement when its request to be published
// changes, when its decision changes, when somebody changes an object of its decision, and when one of
// its clusters gets or loses its ClusterProfile. The cache must have the indexes of AddIndexes.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Manager == "" {
		r.Manager = multiclusterv1alpha1.ClusterManager
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named(r.source.name()).
		Watches(&multiclusterv1alpha1.PlacementDecision{}, enqueue.After(settle, r.owner)).
		Watches(&multiclusterv1alpha1.ClusterProfile{}, enqueue.After(settle, r.ofProfile), builder.WithPredicates(enqueue.Updates(func(was, is *multiclusterv1alpha1.ClusterProfile) bool { return r.isOurs(was) != r.isOurs(is) }))).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Workers})
	return reconcileutil.SetupError(r.source.name(), r.source.watch(b).Complete(r))
}

// Reconcile publishes the decisions of one placement.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	err := r.reconcile(ctx, req.NamespacedName)
	switch {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: objects.RetryDelay}, nil
	case objects.RefusedAsGoing(err):
		return ctrl.Result{RequeueAfter: objects.GoingDelay}, nil
	}
	return ctrl.Result{}, err
}

func (r *Reconciler) reconcile(ctx context.Context, key types.NamespacedName) error {
	placement := r.source.empty(key.Namespace) // Read-only, so not copied: its status may be large.
	err := r.Client.Get(ctx, key, placement, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading %s %s: %w", r.source.kind(key.Namespace), key, err)
	}
	existing, listErr := r.existing(ctx, key)
	if listErr != nil {
		return listErr
	}
	if err != nil || placement.GetDeletionTimestamp() != nil || !isPublished(placement, r.source.publishes()) {
		r.wanted.set(key, nil)
		return r.removeAll(ctx, existing)
	}
	return r.publish(ctx, key, placement, existing)
}
