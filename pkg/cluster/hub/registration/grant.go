// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/identity"
	"fleetgate.io/fleetgate/pkg/cluster/hub/membership"
	"fleetgate.io/fleetgate/pkg/cluster/sealing"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// GrantControllerName is the name of the controller that GrantReconciler is.
const GrantControllerName = "clusterregistration.grant"

// DefaultAgentTokenLifetime is how long a member's token is asked to live.
const DefaultAgentTokenLifetime = 7 * 24 * time.Hour

// GrantReconciler answers ClusterRegistrations.
type GrantReconciler struct {
	// Client writes; it reads the kinds of the registration and cluster groups, from
	// a cache if it has one.
	Client client.Client
	// Live reads from the API server itself.
	Live client.Reader
	// Clock tells the time.
	Clock clock.PassiveClock
	// AgentTokenLifetime is how long a member's token is asked to live. What the API
	// server grants counts. Zero means DefaultAgentTokenLifetime.
	AgentTokenLifetime time.Duration
	// Secrets, if set, is a cache that membership.NewMemberCache made: a request whose
	// credential was revoked is then forgotten at once, and not only when the
	// credential would have expired.
	Secrets cache.Cache
	// Namespaces are where clusters may register. Empty means everywhere.
	Namespaces []string
	// Defaults are what tokens allow that do not say otherwise.
	Defaults Defaults
	// Labels are what members get of the labels of their Clusters.
	Labels LabelRule
	// Concurrency is how many requests are worked on at a time. Zero means one.
	Concurrency int

	// hub is the UID of this one, once it was asked for.
	hub atomic.Pointer[string]
}

var _ reconcile.Reconciler = (*GrantReconciler)(nil)

// SetupWithManager watches requests, and what they wait for: their Clusters and
// MemberClusters.
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
	return b.Complete(r)
}

// readyChanged lets heartbeats pass by: they come every minute from every member.
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

// Reconcile implements reconcile.Reconciler.
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
		return ctrl.Result{}, nil // ReturnReconciler has made it, and answers it
	}
	status := *request.Status.DeepCopy()
	refused, err := r.answer(ctx, request, &status)
	if err != nil {
		return ctrl.Result{}, err
	}
	if left := preparing(r.Clock, request); left > 0 && refused != nil && refused.Reason == registrationv1alpha1.RegistrationReasonWaiting {
		return ctrl.Result{RequeueAfter: left}, nil // Mostly the answer comes before: that it is awaited is not worth a write.
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

// preparation is how long what a newcomer needs mostly takes to be made: until then
// nothing says that it is under way.
const preparation = 2 * time.Second

// preparing is how much of that is left for an object that was just made, by a clock that
// may be off.
func preparing(clock clock.PassiveClock, object metav1.Object) time.Duration {
	return min(preparation-clock.Since(object.GetCreationTimestamp().Time), preparation)
}

// keepRefused deletes a refused request when its time is over: nobody else would, and
// whoever holds a token could fill the hub with them.
func (r *GrantReconciler) keepRefused(ctx context.Context, request *registrationv1alpha1.ClusterRegistration, reason string) (ctrl.Result, error) {
	life, ends := refusedLife(reason)
	if !ends {
		return ctrl.Result{}, nil
	}
	if left := life - r.Clock.Since(request.CreationTimestamp.Time); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	if reason == registrationv1alpha1.RegistrationReasonWaiting {
		ended, err := r.tokenEnded(ctx, request)
		if err != nil || !ended {
			return ctrl.Result{RequeueAfter: life}, err
		}
	}
	return ctrl.Result{}, r.forget(ctx, request)
}

// tokenEnded reports whether the token that a request names has expired or was deleted. Nobody can
// fetch the answer with it then.
func (r *GrantReconciler) tokenEnded(ctx context.Context, request *registrationv1alpha1.ClusterRegistration) (bool, error) {
	var token registrationv1alpha1.ClusterRegistrationToken
	name := request.Labels[registrationv1alpha1.LabelRegistrationToken]
	if name == "" {
		return true, nil
	}
	found, err := reconcileutil.GetIfExists(ctx, r.Live, client.ObjectKey{Namespace: request.Namespace, Name: name}, &token, "reading ClusterRegistrationToken %q", name)
	return err == nil && (!found || lifeOf(&token, r.Clock.Now()).over()), err
}

func (r *GrantReconciler) forget(ctx context.Context, request *registrationv1alpha1.ClusterRegistration) error {
	if err := client.IgnoreNotFound(r.Client.Delete(ctx, request, client.Preconditions{UID: &request.UID})); err != nil {
		return fmt.Errorf("deleting ClusterRegistration %q: %w", request.Name, err)
	}
	return nil
}

// answer finds or makes what the request asks for, and fills the status if it can be
// granted.
func (r *GrantReconciler) answer(ctx context.Context, request *registrationv1alpha1.ClusterRegistration, status *registrationv1alpha1.ClusterRegistrationStatus) (*refusal.Refusal, error) {
	if refused := refuseNamespace(r.Namespaces, request.Namespace); refused != nil {
		return refused, nil
	}
	if refused := refuseRequest(request); refused != nil {
		return refused, nil
	}
	cluster, refused, err := r.clusterFor(ctx, request)
	if refused != nil || err != nil {
		return refused, err
	}
	key, err := r.agentKey(ctx, request.Spec.PublicKey)
	if err != nil {
		return nil, err
	}
	mc, refused, err := r.memberOf(ctx, cluster, key)
	if refused != nil || err != nil {
		return refused, err
	}
	if err := r.recordAgentKey(ctx, mc, key); err != nil {
		return nil, err
	}
	status.ClusterName = cluster.Name
	if refused := refuseUnready(mc); refused != nil {
		return refused, nil
	}
	bound, err := credentialSecret(ctx, r.Live, mc.Name)
	if err != nil {
		return nil, err
	}
	if bound == nil {
		return waiting("the Secret to which the tokens of member %q are bound is being made", mc.Name), nil
	}
	return nil, r.grant(ctx, request, mc, bound.UID, status)
}

// grant fills the status with a credential for the member, which only the request's key opens.
func (r *GrantReconciler) grant(ctx context.Context, request *registrationv1alpha1.ClusterRegistration, mc *clusterv1beta1.MemberCluster, bound types.UID,
	status *registrationv1alpha1.ClusterRegistrationStatus) error {
	credential, err := r.credentialFor(ctx, mc, bound)
	if err != nil {
		return err
	}
	status.CredentialUID = bound
	if err := r.recordExpiry(ctx, request, credential.Expires); err != nil {
		return err
	}
	status.SealedToken, err = sealing.Seal(credential, request.Spec.PublicKey, request.UID, request.Spec.ClientID)
	if err != nil {
		return fmt.Errorf("answering ClusterRegistration %q: %w", request.Name, err)
	}
	status.Granted = true
	return nil
}

// memberOf returns the Cluster's MemberCluster, making it, with the agent's key, if there never
// was one.
func (r *GrantReconciler) memberOf(ctx context.Context, cluster *registrationv1alpha1.Cluster, key string) (*clusterv1beta1.MemberCluster, *refusal.Refusal, error) {
	if name := cluster.Annotations[AnnotationMember]; name != "" && cluster.Annotations[AnnotationMemberUID] != "" {
		mc, err := getMember(ctx, r.Live, name)
		if err != nil {
			return nil, nil, err
		}
		return mc, refuseMember(cluster, mc), nil
	}
	mc, refused, err := r.makeMember(ctx, cluster, key)
	if refused != nil || err != nil {
		return nil, refused, err
	}
	base := cluster.DeepCopy()
	metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, AnnotationMember, mc.Name)
	metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, AnnotationMemberUID, string(mc.UID))
	return mc, nil, patchCluster(ctx, r.Client, cluster, base)
}

// makeMember takes the first name that is free, or that was taken for this Cluster
// before. Another origin's MemberCluster is never taken over.
func (r *GrantReconciler) makeMember(ctx context.Context, cluster *registrationv1alpha1.Cluster, key string) (*clusterv1beta1.MemberCluster, *refusal.Refusal, error) {
	for _, name := range memberNames(cluster.Namespace, cluster.Name) {
		mc, err := getMember(ctx, r.Live, name)
		if err != nil {
			return nil, nil, err
		}
		if mc == nil {
			mc, err = r.createMember(ctx, cluster, name, key)
			return mc, nil, err
		}
		if !isOrigin(mc, cluster) {
			continue
		}
		if !mc.DeletionTimestamp.IsZero() {
			return nil, waiting("MemberCluster %q is still leaving; the request is looked at again when it is gone", name), nil
		}
		return mc, nil, nil
	}
	return nil, conflict("no name is free for the member: MemberClusters %q belong to others; delete one of them, or make the Cluster again with another name",
		memberNames(cluster.Namespace, cluster.Name)), nil
}

// createMember makes sure first that the Cluster is as it was read: from a cache that
// lags it could seem never to have had a member.
func (r *GrantReconciler) createMember(ctx context.Context, cluster *registrationv1alpha1.Cluster, name, key string) (*clusterv1beta1.MemberCluster, error) {
	var live registrationv1alpha1.Cluster
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(cluster), &live); err != nil {
		return nil, fmt.Errorf("reading Cluster %q: %w", cluster.Name, err)
	}
	if live.ResourceVersion != cluster.ResourceVersion {
		return nil, apierrors.NewConflict(schema.GroupResource{Group: registrationv1alpha1.GroupName, Resource: "clusters"},
			cluster.Name, errors.New("it has changed since it was read"))
	}
	mc := desiredMember(cluster, name, r.Labels)
	metav1.SetMetaDataAnnotation(&mc.ObjectMeta, AnnotationAgentKey, key)
	membership.Mark(mc) // It would be the first thing to be written there.
	if err := r.Client.Create(ctx, mc); err != nil {
		return nil, fmt.Errorf("creating MemberCluster %q: %w", name, err)
	}
	return mc, nil
}

// getMember reads a MemberCluster, or nil if there is none. Whether one is free or gone is for
// the API server to say: a cache may lag.
func getMember(ctx context.Context, from client.Reader, name string) (*clusterv1beta1.MemberCluster, error) {
	if name == "" {
		return nil, nil
	}
	var mc clusterv1beta1.MemberCluster
	if found, err := reconcileutil.GetIfExists(ctx, from, client.ObjectKey{Name: name}, &mc, "reading MemberCluster %q", name); !found {
		return nil, err
	}
	return &mc, nil
}

// keepGranted deletes a granted request when what it carries is worthless, so that
// its agent can ask again.
func (r *GrantReconciler) keepGranted(ctx context.Context, request *registrationv1alpha1.ClusterRegistration) (ctrl.Result, error) {
	granted := meta.FindStatusCondition(request.Status.Conditions, registrationv1alpha1.RegistrationConditionGranted)
	if granted == nil {
		return ctrl.Result{}, nil
	}
	revoked := false
	if request.Namespace != registrationv1alpha1.ReturningNamespace { // There it is nobody's Cluster's.
		var err error
		if revoked, err = r.isRevoked(ctx, request); err != nil {
			return ctrl.Result{}, err
		}
	}
	left := credentialExpiry(request, granted.LastTransitionTime, r.lifetime()).Sub(r.Clock.Now())
	if !revoked && left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	log.FromContext(ctx).Info("Deleting a ClusterRegistration whose credential has expired or was revoked")
	return ctrl.Result{}, r.forget(ctx, request)
}

func (r *GrantReconciler) writeStatus(ctx context.Context, request *registrationv1alpha1.ClusterRegistration, status registrationv1alpha1.ClusterRegistrationStatus) error {
	return reconcileutil.PatchStatus(ctx, r.Client, request, func() { request.Status = status }, "writing the status of ClusterRegistration %q", request.Name)
}
