// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package managedcluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// Name is the controller's name, and that of its events' source.
const Name = "managedcluster.accept"

// Reasons of events on ManagedClusters.
const (
	eventAccepted = "ManagedClusterAccepted"
	eventDenied   = "ManagedClusterDenied"
)

// Reconciler gives accepted clusters their permissions, removes those of clusters that are no
// longer accepted, and releases deleted clusters.
type Reconciler struct {
	// Clusters reads and writes ManagedClusters. Writes for a cluster trigger its reconciliation,
	// so a cache should include earlier writes.
	Clusters client.Client
	// Client reads and writes everything except permissions.
	Client client.Client
	// Rights writes what lets a cluster join: its namespace, roles and bindings. Agents cannot
	// cause repeated writes of these.
	Rights client.Client
	// Live reads from the API server itself.
	Live client.Reader
	// Objects is a cache from NewCache.
	Objects cache.Cache
	// Recorder records events on a ManagedCluster.
	Recorder events.EventRecorder
	// Clock tells the time.
	Clock clock.PassiveClock
	// ForceDeleteWait is how long the agent of a deleted cluster may clean up before a forced
	// deletion proceeds. Zero means 15 minutes.
	ForceDeleteWait time.Duration
	// Agents are the subjects of a cluster's permissions. Nil: its klusterlets.
	Agents func(ctx context.Context, cluster *clusterv1.ManagedCluster) (Subjects, error)
	// Report returns additional status of a cluster that the hub already knows, such as the report
	// of a member's agent. It is written together with the acceptance. Nil, as its result may be:
	// there is none.
	Report func(ctx context.Context, cluster *clusterv1.ManagedCluster) (func(*clusterv1.ManagedClusterStatus), error)
	// Labels are on all objects that are created for clusters, in addition to the cluster's label.
	Labels map[string]string
	// Workers is how many clusters are reconciled at a time. Zero means one.
	Workers int

	vanished vanished
}

var _ reconcile.Reconciler = (*Reconciler)(nil)

// SetupWithManager watches ManagedClusters, their namespaces, and their permissions. Of statuses,
// which agents write, only the acceptance counts. It reconciles the shared roles once at its start,
// because a hub may lack all of them.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	ofCluster := func(_ context.Context, object client.Object) []reconcile.Request {
		return request(object.GetLabels()[clusterv1.ClusterNameLabel])
	}
	named := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request { return request(object.GetName()) })
	shared := make(chan event.GenericEvent, 1)
	shared <- event.GenericEvent{Object: &clusterv1.ManagedCluster{}}
	b := ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&clusterv1.ManagedCluster{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, marksChanged()))).
		Watches(&clusterv1.ManagedCluster{}, r.vanished.watch(named)).
		Watches(&corev1.Namespace{}, named, builder.OnlyMetadata).
		WatchesRawSource(source.Channel(shared, named)).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Workers})
	for _, object := range []client.Object{&rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}, &rbacv1.RoleBinding{}} {
		b.WatchesRawSource(source.Kind[client.Object](r.Objects, object, handler.EnqueueRequestsFromMapFunc(ofCluster)))
	}
	return reconcileutil.SetupError(Name, b.Complete(reconcileutil.RetryConflicts(r)))
}

func request(cluster string) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: cluster}}}
}

// marksChanged accepts updates of the fields that this controller writes on a ManagedCluster, so
// that it reverts them.
func marksChanged() predicate.Predicate {
	accepted := func(object client.Object) metav1.ConditionStatus {
		cluster, ok := object.(*clusterv1.ManagedCluster)
		if !ok {
			return ""
		}
		condition := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ConditionHubAccepted)
		if condition == nil {
			return ""
		}
		return condition.Status
	}
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return len(e.ObjectOld.GetFinalizers()) != len(e.ObjectNew.GetFinalizers()) || accepted(e.ObjectOld) != accepted(e.ObjectNew)
	}}
}

// Reconcile implements reconcile.Reconciler. The cluster without a name stands for the shared
// roles.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if req.Name == "" {
		return reconcileutil.RequeueOnConflict(ctrl.Result{}, r.EnsureRoles(ctx))
	}
	cluster := &clusterv1.ManagedCluster{}
	err := r.Clusters.Get(ctx, req.NamespacedName, cluster)
	if apierrors.IsNotFound(err) {
		return reconcileutil.RequeueOnConflict(r.vanish(ctx, req.Name))
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	r.vanished.forget(req.Name)
	return reconcileutil.RequeueOnConflict(r.reconcile(ctx, cluster))
}

func (r *Reconciler) reconcile(ctx context.Context, cluster *clusterv1.ManagedCluster) (ctrl.Result, error) {
	if cluster.DeletionTimestamp != nil {
		return r.leave(ctx, cluster)
	}
	if err := r.ensureFinalizers(ctx, cluster); err != nil {
		return ctrl.Result{}, err
	}
	if !cluster.Spec.HubAcceptsClient {
		return r.deny(ctx, cluster)
	}
	refused, err := r.accept(ctx, cluster)
	if err != nil {
		return ctrl.Result{}, errors.Join(fmt.Errorf("accepting ManagedCluster %q: %w", cluster.Name, err), r.reportFailure(ctx, cluster, err))
	}
	if refused != nil || r.Report == nil || meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ConditionHubAccepted) {
		return ctrl.Result{}, r.writeCondition(ctx, cluster, accepted(refused))
	}
	report, err := r.Report(ctx, cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.writeStatus(ctx, cluster, accepted(nil), report)
}

// reportFailure reports why a cluster without permissions could not get them. One that has them keeps
// its condition, because its agent reports only while that is True.
func (r *Reconciler) reportFailure(ctx context.Context, cluster *clusterv1.ManagedCluster, failure error) error {
	passing := apierrors.IsConflict(failure) || apierrors.IsAlreadyExists(failure) || ctx.Err() != nil
	if passing || meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ConditionHubAccepted) {
		return nil
	}
	return r.writeCondition(ctx, cluster, accepted(refusal.New(clusterv1.ReasonError, "%w", failure)))
}

// ensureFinalizers adds them before the objects that they protect are created.
func (r *Reconciler) ensureFinalizers(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	return reconcileutil.Patch(ctx, r.Clusters, cluster, func() {
		controllerutil.AddFinalizer(cluster, clusterv1.ResourceCleanupFinalizer)
		controllerutil.AddFinalizer(cluster, clusterv1.GarbageFinalizer)
	}, "marking ManagedCluster %q", cluster.Name)
}

// accept creates the namespace and the permissions of a cluster, or returns why it cannot.
func (r *Reconciler) accept(ctx context.Context, cluster *clusterv1.ManagedCluster) (*refusal.Refusal, error) {
	name := cluster.Name
	if refused, err := r.ensureNamespace(ctx, name); refused != nil || err != nil {
		return refused, err
	}
	agents, err := r.agentsOf(ctx, cluster)
	if err != nil {
		return nil, err
	}
	for _, object := range []client.Object{
		clusterRole(name, true), clusterRoleBinding(name, agents.all()), registrationBinding(name, agents.Agents), workBinding(name, agents.Agents),
	} {
		if err := r.ensure(ctx, object); err != nil {
			return nil, err
		}
	}
	if err := r.ensureScores(ctx, name, agents.Scorers); err != nil {
		return nil, err
	}
	return nil, r.ensureReporting(ctx, name, true, agents.Reporters)
}

func (r *Reconciler) agentsOf(ctx context.Context, cluster *clusterv1.ManagedCluster) (Subjects, error) {
	if r.Agents == nil {
		return Subjects{Agents: Klusterlets(cluster.Name)}, nil
	}
	return r.Agents(ctx, cluster)
}

func accepted(refused *refusal.Refusal) metav1.Condition {
	if refused != nil {
		return metav1.Condition{Type: clusterv1.ConditionHubAccepted, Status: metav1.ConditionFalse, Reason: refused.Reason, Message: refused.Message}
	}
	return metav1.Condition{
		Type: clusterv1.ConditionHubAccepted, Status: metav1.ConditionTrue, Reason: clusterv1.ReasonAccepted, Message: "Accepted by hub cluster admin",
	}
}

// deny removes the permissions of a cluster that was accepted once, except to read it. The binding
// for works stays until there are none, so that the agent can clean up.
func (r *Reconciler) deny(ctx context.Context, cluster *clusterv1.ManagedCluster) (ctrl.Result, error) {
	was := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ConditionHubAccepted)
	if was == nil || isSharedRole(RolePrefix+cluster.Name) || was.Reason == clusterv1.ReasonNamespaceTaken || was.Reason == clusterv1.ReasonError {
		// It may still have permissions: from before its namespace was being deleted, or because
		// its agent, which may write the status, removed the condition.
		had, err := r.hasRights(ctx, cluster.Name)
		switch {
		case err != nil || !had && was == nil:
			return ctrl.Result{}, err
		case !had:
			return ctrl.Result{}, r.writeCondition(ctx, cluster, denied())
		}
	}
	if err := r.ensure(ctx, clusterRole(cluster.Name, false)); err != nil {
		return ctrl.Result{}, err
	}
	agents, err := r.agentsOf(ctx, cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.ensure(ctx, clusterRoleBinding(cluster.Name, agents.all())); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.ensureReporting(ctx, cluster.Name, false, agents.Reporters); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.delete(ctx, registrationBinding(cluster.Name, nil)); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.ensureScores(ctx, cluster.Name, nil); err != nil {
		return ctrl.Result{}, err
	}
	remaining, err := r.releaseWorkBinding(ctx, cluster.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.writeCondition(ctx, cluster, denied()); err != nil || !remaining {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: lookAgain}, nil
}

func denied() metav1.Condition {
	return metav1.Condition{
		Type: clusterv1.ConditionHubAccepted, Status: metav1.ConditionFalse, Reason: clusterv1.ReasonDenied, Message: "Denied by hub cluster admin",
	}
}

// writeCondition writes one condition, if it changed.
func (r *Reconciler) writeCondition(ctx context.Context, cluster *clusterv1.ManagedCluster, condition metav1.Condition) error {
	return r.writeStatus(ctx, cluster, condition, nil)
}

// writeStatus writes one condition, and the additional report.
func (r *Reconciler) writeStatus(ctx context.Context, cluster *clusterv1.ManagedCluster, condition metav1.Condition, report func(*clusterv1.ManagedClusterStatus)) error {
	changed := false
	err := reconcileutil.PatchStatus(ctx, r.Clusters, cluster, func() {
		changed = meta.SetStatusCondition(&cluster.Status.Conditions, condition)
		if report != nil {
			report(&cluster.Status)
		}
	}, "writing the status of ManagedCluster %q", cluster.Name)
	switch {
	case err != nil || !changed || condition.Type != clusterv1.ConditionHubAccepted:
	case condition.Status == metav1.ConditionTrue:
		r.Recorder.Eventf(cluster, nil, corev1.EventTypeNormal, eventAccepted, "Accept", "managed cluster %s is accepted by hub cluster admin", cluster.Name)
	case condition.Reason == clusterv1.ReasonDenied:
		r.Recorder.Eventf(cluster, nil, corev1.EventTypeNormal, eventDenied, "Deny", "managed cluster %s is denied by hub cluster admin", cluster.Name)
	default:
		r.Recorder.Eventf(cluster, nil, corev1.EventTypeWarning, condition.Reason, "Accept", "%s", condition.Message)
	}
	return err
}
