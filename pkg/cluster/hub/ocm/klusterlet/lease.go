// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

// LivenessName is the name of LivenessReconciler, and the source of its events.
const LivenessName = "managedcluster.liveness"

// eventUnknown is the reason of the event, in the cluster's namespace, about a cluster without
// heartbeat.
const eventUnknown = "AvailableUnknown"

// soonest is the delay for a cluster whose Lease expired during its reconciliation.
const soonest = time.Millisecond

// LivenessReconciler sets clusters without heartbeats to Unknown, and maintains the taints of
// unavailable clusters. It reconciles a cluster when its Lease is renewed, when its status changes,
// and when its Lease expires: there is no polling.
type LivenessReconciler struct {
	// Client writes; it reads ManagedClusters, from a cache if it has one.
	Client client.Client
	// Leases is a cache of Leases with a cluster's label.
	Leases cache.Cache
	// Recorder records clusters without heartbeats.
	Recorder events.EventRecorder
	// Clock tells the time.
	Clock clock.PassiveClock
	// IsMember is true for clusters with our agent, whose availability others report. Nil: there
	// are none.
	IsMember func(context.Context, *clusterv1.ManagedCluster) (bool, error)
	// Workers is how many clusters are reconciled at a time. Zero means one.
	Workers int

	mu sync.Mutex
	// seen is when this process saw the last renewal of a Lease, by cluster.
	seen map[string]Beat
}

var _ reconcile.Reconciler = (*LivenessReconciler)(nil)

// SetupWithManager watches ManagedClusters and their Leases.
func (r *LivenessReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return reconcileutil.SetupError(LivenessName, ctrl.NewControllerManagedBy(mgr).
		Named(LivenessName).
		For(&clusterv1.ManagedCluster{}).
		WatchesRawSource(source.Kind(r.Leases, &coordinationv1.Lease{}, r.leaseHandler())).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Workers}).
		Complete(reconcileutil.RetryConflicts(r)))
}

// leaseHandler records when renewals were seen.
func (r *LivenessReconciler) leaseHandler() handler.TypedEventHandler[*coordinationv1.Lease, reconcile.Request] {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	add := func(lease *coordinationv1.Lease, q queue) {
		if lease.Name == clusterv1.ClusterLease {
			q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: lease.Namespace}})
		}
	}
	return handler.TypedFuncs[*coordinationv1.Lease, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*coordinationv1.Lease], q queue) { add(e.Object, q) },
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*coordinationv1.Lease], q queue) { add(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*coordinationv1.Lease], q queue) {
			if renewed := e.ObjectNew.Spec.RenewTime; renewed != nil && !renewed.Equal(e.ObjectOld.Spec.RenewTime) {
				r.remember(e.ObjectNew.Namespace, Beat{Renewed: renewed.Time, Seen: r.Clock.Now()})
			}
			add(e.ObjectNew, q)
		},
	}
}

func (r *LivenessReconciler) remember(cluster string, beat Beat) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil {
		r.seen = map[string]Beat{}
	}
	r.seen[cluster] = beat
}

func (r *LivenessReconciler) forget(cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.seen, cluster)
}

// beatOf is a Lease's renewal, with the time when it was seen if it was.
func (r *LivenessReconciler) beatOf(lease *coordinationv1.Lease) Beat {
	r.mu.Lock()
	defer r.mu.Unlock()
	beat := Beat{Renewed: ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}).Time}
	if seen := r.seen[lease.Namespace]; seen.Renewed.Equal(beat.Renewed) {
		beat.Seen = seen.Seen
	}
	return beat
}

// Reconcile implements reconcile.Reconciler.
func (r *LivenessReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cluster := &clusterv1.ManagedCluster{}
	if err := r.Client.Get(ctx, req.NamespacedName, cluster); err != nil {
		r.forget(req.Name)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	ends, err := r.reconcileCluster(ctx, cluster)
	if err != nil || ends.IsZero() {
		return reconcileutil.RequeueOnConflict(ctrl.Result{}, client.IgnoreNotFound(err))
	}
	// The write took some time. And a cluster that existed when the gateway started, which is
	// reconciled with low priority, gets normal priority then.
	return ctrl.Result{RequeueAfter: max(soonest, ends.Sub(r.Clock.Now())), Priority: ptr.To(0)}, nil
}

// reconcileCluster returns when to reconcile the cluster again if nothing happens; zero for never.
func (r *LivenessReconciler) reconcileCluster(ctx context.Context, cluster *clusterv1.ManagedCluster) (ends time.Time, err error) {
	member := false
	if r.IsMember != nil {
		if member, err = r.IsMember(ctx, cluster); err != nil {
			return time.Time{}, err
		}
	}
	if member {
		// The controller that reports its availability has set the matching taint when it created
		// the cluster, and is about to write the condition.
		if meta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ConditionAvailable) == nil {
			return time.Time{}, nil
		}
		return time.Time{}, r.reconcileTaints(ctx, cluster)
	}
	if ends, err = r.reconcileLease(ctx, cluster); err != nil {
		return time.Time{}, err
	}
	return ends, r.reconcileTaints(ctx, cluster)
}

// reconcileLease reports the state of a cluster that was accepted once by its Lease, and returns
// until when that is valid: zero until something changes.
func (r *LivenessReconciler) reconcileLease(ctx context.Context, cluster *clusterv1.ManagedCluster) (ends time.Time, err error) {
	accepted := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ConditionHubAccepted)
	if accepted == nil || accepted.Reason == clusterv1.ReasonNamespaceTaken || accepted.Reason == clusterv1.ReasonError {
		return time.Time{}, nil
	}
	lease := &coordinationv1.Lease{}
	err = r.Leases.Get(ctx, client.ObjectKey{Namespace: cluster.Name, Name: clusterv1.ClusterLease}, lease)
	if client.IgnoreNotFound(err) != nil {
		return time.Time{}, fmt.Errorf("reading the Lease of ManagedCluster %q: %w", cluster.Name, err)
	}
	if err != nil && cluster.DeletionTimestamp == nil {
		return time.Time{}, r.makeLease(ctx, cluster.Name)
	}
	life := Life{Gone: true}
	if err == nil {
		anyClock, now := cluster.Annotations[clusterv1.SkipClockSyncCheckAnnotation] == "true", r.Clock.Now()
		life = LifeOf(r.beatOf(lease), time.Duration(cluster.Spec.LeaseDurationSeconds)*time.Second, anyClock, now)
		if !life.Gone {
			ends = now.Add(life.Left)
		}
	}
	return ends, r.writeLife(ctx, cluster, life)
}

// makeLease creates the Lease that an agent renews, because the agent has no permission to create
// it.
func (r *LivenessReconciler) makeLease(ctx context.Context, cluster string) error {
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster, Name: clusterv1.ClusterLease, Labels: map[string]string{clusterv1.ClusterNameLabel: cluster},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To(clusterv1.ClusterLease), RenewTime: ptr.To(metav1.NewMicroTime(r.Clock.Now()))},
	}
	if err := r.Client.Create(ctx, lease); err != nil {
		return fmt.Errorf("creating the Lease of ManagedCluster %q: %w", cluster, err)
	}
	return nil
}

// writeLife writes the state of a cluster, if it has changed.
func (r *LivenessReconciler) writeLife(ctx context.Context, cluster *clusterv1.ManagedCluster, life Life) error {
	base := cluster.DeepCopy()
	gone := life.Gone && !meta.IsStatusConditionPresentAndEqual(cluster.Status.Conditions, clusterv1.ConditionAvailable, metav1.ConditionUnknown)
	if gone {
		meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{
			Type: clusterv1.ConditionAvailable, Status: metav1.ConditionUnknown, Reason: clusterv1.ReasonLeaseUpdateStopped,
			Message: "Registration agent stopped updating its lease.",
		})
	}
	clock := life.Judged && meta.SetStatusCondition(&cluster.Status.Conditions, clockCondition(life.Synced))
	if !gone && !clock {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, cluster, reconcileutil.PatchFrom(base)); err != nil {
		return fmt.Errorf("writing the status of ManagedCluster %q: %w", cluster.Name, err)
	}
	if gone {
		// In the namespace of the cluster, where its users look.
		about := cluster.DeepCopy()
		about.Namespace = cluster.Name
		r.Recorder.Eventf(about, nil, corev1.EventTypeWarning, eventUnknown, eventUnknown,
			"The %s is successfully imported. However, the connection check from the managed cluster to the hub cluster has failed", cluster.Name)
	}
	return nil
}

func clockCondition(synced bool) metav1.Condition {
	if synced {
		return metav1.Condition{
			Type: clusterv1.ConditionClockSynced, Status: metav1.ConditionTrue, Reason: clusterv1.ReasonClockSynced,
			Message: "The clock of the managed cluster is synced with the hub.",
		}
	}
	return metav1.Condition{
		Type: clusterv1.ConditionClockSynced, Status: metav1.ConditionFalse, Reason: clusterv1.ReasonClockOutOfSync,
		Message: "The clock of hub and agent is out of sync. This may cause the Unknown status and affect agent functionalities.",
	}
}

// reconcileTaints keeps exactly one of the hub's taints on an unavailable cluster.
func (r *LivenessReconciler) reconcileTaints(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	taints, changed := taintsOf(cluster)
	if cluster.DeletionTimestamp != nil || !changed {
		return nil
	}
	return reconcileutil.Patch(ctx, r.Client, cluster, func() { cluster.Spec.Taints = taints }, "writing the taints of ManagedCluster %q", cluster.Name)
}
