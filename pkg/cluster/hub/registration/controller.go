// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/identity"
	"fleetgate.io/fleetgate/pkg/cluster/hub/membership"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// GrantControllerName is the name of GrantReconciler.
const GrantControllerName = "clusterregistration.grant"

// DefaultAgentTokenLifetime is the requested lifetime of a member's token.
const DefaultAgentTokenLifetime = 7 * 24 * time.Hour

// GrantReconciler grants or rejects ClusterRegistrations.
type GrantReconciler struct {
	// Client writes, and reads the kinds of the registration and cluster groups, from a cache if it has
	// one.
	Client client.Client
	// Live reads from the API server.
	Live  client.Reader
	Clock clock.PassiveClock
	// AgentTokenLifetime is the requested lifetime of a member's token; the API server can grant less.
	// Zero means DefaultAgentTokenLifetime.
	AgentTokenLifetime time.Duration
	// Secrets is an optional cache from membership.NewMemberCache. With it, a request is deleted as
	// soon as its credential is revoked, and not only when the credential would have expired.
	Secrets cache.Cache
	// Namespaces are the namespaces in which clusters can register. Empty means all.
	Namespaces []string
	// Defaults are the permissions of tokens without annotations.
	Defaults Defaults
	// Labels decides which labels of their Clusters members get.
	Labels LabelRule
	// Concurrency is the number of requests that are reconciled at a time. Zero means one.
	Concurrency int

	// hub is this hub's UID, once it was read.
	hub atomic.Pointer[string]
}

var _ reconcile.Reconciler = (*GrantReconciler)(nil)

// SetupWithManager watches requests, and what they wait for: their Clusters and MemberClusters.
func (r *GrantReconciler) SetupWithManager(mgr ctrl.Manager) error {
	b := ctrl.NewControllerManagedBy(mgr).
		Named(GrantControllerName).
		For(&registrationv1alpha1.ClusterRegistration{}).
		Watches(&registrationv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.requestsOfCluster),
			builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&clusterv1beta1.MemberCluster{}, handler.EnqueueRequestsFromMapFunc(r.requestsOfMember),
			builder.WithPredicates(readyChanged())).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Concurrency})
	if r.Secrets != nil {
		b.WatchesRawSource(membership.CredentialSource(r.Secrets, identity.FleetSeats(), handler.TypedEnqueueRequestsFromMapFunc(r.requestsOfCredential)))
	}
	return b.Complete(reconcileutil.RetryConflicts(r))
}

// readyChanged drops heartbeats, which every member sends each minute.
func readyChanged() predicate.Predicate {
	return enqueue.Updates(func(before, after *clusterv1beta1.MemberCluster) bool {
		return before.Generation != after.Generation || (refuseUnready(before) == nil) != (refuseUnready(after) == nil)
	})
}

func (r *GrantReconciler) requestsOfCluster(ctx context.Context, obj client.Object) []reconcile.Request {
	cluster, ok := obj.(*registrationv1alpha1.Cluster)
	if !ok {
		return nil
	}
	ofIt := func(request *registrationv1alpha1.ClusterRegistration) bool {
		return request.Spec.ClientID == cluster.Spec.ClientID
	}
	return enqueue.Those(ctx, r.Client, &registrationv1alpha1.ClusterRegistrationList{}, ofIt, client.InNamespace(cluster.Namespace))
}

func (r *GrantReconciler) requestsOfMember(ctx context.Context, mc client.Object) []reconcile.Request {
	key := clusterKeyOf(mc)
	if key.Name == "" {
		return nil
	}
	var cluster registrationv1alpha1.Cluster
	if err := r.Client.Get(ctx, key, &cluster); err != nil {
		return nil
	}
	return r.requestsOfCluster(ctx, &cluster)
}

func (r *GrantReconciler) requestsOfCredential(ctx context.Context, secret *metav1.PartialObjectMetadata) []reconcile.Request {
	member, _ := clusterv1beta1.MemberOfNamespace(secret.Namespace)
	var mc clusterv1beta1.MemberCluster
	if err := r.Client.Get(ctx, client.ObjectKey{Name: member}, &mc); err != nil {
		return nil
	}
	return r.requestsOfMember(ctx, &mc)
}

// Reconcile grants or rejects one registration, and deletes it after its time.
func (r *GrantReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var request registrationv1alpha1.ClusterRegistration
	if err := r.Client.Get(ctx, req.NamespacedName, &request); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !request.DeletionTimestamp.IsZero() || request.Labels[registrationv1alpha1.LabelClusterManagement] != "" {
		return ctrl.Result{}, nil
	}
	return reconcileutil.RequeueOnConflict(r.reconcile(ctx, &request))
}

func (r *GrantReconciler) reconcile(ctx context.Context, request *registrationv1alpha1.ClusterRegistration) (ctrl.Result, error) {
	if request.Status.Granted {
		return r.keepGranted(ctx, request)
	}
	if request.Namespace == registrationv1alpha1.ReturningNamespace {
		return ctrl.Result{}, nil // ReturnReconciler created it and handles it.
	}
	status := *request.Status.DeepCopy()
	refused, err := r.register(ctx, request, &status)
	if err != nil {
		return ctrl.Result{}, err
	}
	if left := preparing(r.Clock, request); left > 0 && refused != nil && refused.Reason == registrationv1alpha1.RegistrationReasonWaiting {
		return ctrl.Result{RequeueAfter: left}, nil // Usually the result is available earlier, so a waiting state is not worth a write.
	}
	condition := grantedCondition(refused)
	condition.ObservedGeneration = request.Generation
	condition.LastTransitionTime = metav1.NewTime(r.Clock.Now())
	if meta.SetStatusCondition(&status.Conditions, condition) {
		if err := r.writeStatus(ctx, request, status); err != nil {
			return ctrl.Result{}, err
		}
	}
	return r.keepRefused(ctx, request, condition.Reason)
}

// register takes a request through the three steps of a registration. The status is complete if the
// request is granted.
func (r *GrantReconciler) register(ctx context.Context, request *registrationv1alpha1.ClusterRegistration, status *registrationv1alpha1.ClusterRegistrationStatus) (*refusal.Refusal, error) {
	a, refused, err := r.validate(ctx, request)
	if refused != nil || err != nil {
		return refused, err
	}
	cluster, refused, err := r.claim(ctx, a)
	if refused != nil || err != nil {
		return refused, err
	}
	return r.grant(ctx, request, cluster, status)
}

func grantedCondition(refused *refusal.Refusal) metav1.Condition {
	condition := metav1.Condition{
		Type: registrationv1alpha1.RegistrationConditionGranted, Status: metav1.ConditionTrue, Reason: registrationv1alpha1.RegistrationReasonGranted,
		Message: "status.sealedToken contains the member's token, encrypted with spec.publicKey",
	}
	if refused != nil {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, refused.Reason, refused.Message
	}
	return condition
}

func (r *GrantReconciler) writeStatus(ctx context.Context, request *registrationv1alpha1.ClusterRegistration, status registrationv1alpha1.ClusterRegistrationStatus) error {
	return reconcileutil.PatchStatus(ctx, r.Client, request, func() { request.Status = status }, "writing the status of ClusterRegistration %q", request.Name)
}

// preparation is the usual time to prepare a new member. Before it has passed, no status reports that
// the preparation is in progress.
const preparation = 2 * time.Second

// preparing is the remaining part of that time for a new object. The clock may be off.
func preparing(clock clock.PassiveClock, object metav1.Object) time.Duration {
	return min(preparation-clock.Since(object.GetCreationTimestamp().Time), preparation)
}
