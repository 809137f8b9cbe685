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

// Reconcile answers one registration request.
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
	refused, err := r.answer(ctx, request, &status)
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

// preparation is the usual time to prepare a new member. Before it has passed, no status reports that
// the preparation is in progress.
const preparation = 2 * time.Second

// preparing is the remaining part of that time for a new object. The clock may be off.
func preparing(clock clock.PassiveClock, object metav1.Object) time.Duration {
	return min(preparation-clock.Since(object.GetCreationTimestamp().Time), preparation)
}

// keepRefused deletes a rejected request after its time. Nobody else would, and a token bearer could
// fill the hub with requests.
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

// answer finds or creates the objects for the request, and fills the status if it can be granted.
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

// grant writes an encrypted credential for the member into the status.
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

// memberOf returns the Cluster's MemberCluster. It creates one, with the agent's key, if there never
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

// makeMember uses the first name that is free, or that was already used for this Cluster. It never
// adopts a MemberCluster of another origin.
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
			return nil, waiting("MemberCluster %q is still leaving; the request is retried when it is deleted", name), nil
		}
		return mc, nil, nil
	}
	return nil, conflict("no name is free for the member: MemberClusters %q belong to others; delete one of them, or make the Cluster again with another name",
		memberNames(cluster.Namespace, cluster.Name)), nil
}

// createMember first verifies that the Cluster did not change since it was read: in an outdated cache a
// Cluster could appear to never have had a member.
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
	membership.Mark(mc) // This saves the first write there.
	if err := r.Client.Create(ctx, mc); err != nil {
		return nil, fmt.Errorf("creating MemberCluster %q: %w", name, err)
	}
	return mc, nil
}

// getMember reads a MemberCluster, or nil if there is none. Only the API server knows whether a name is
// free, because a cache may lag.
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

// keepGranted deletes a granted request when its credential is invalid, so that its agent can request
// again.
func (r *GrantReconciler) keepGranted(ctx context.Context, request *registrationv1alpha1.ClusterRegistration) (ctrl.Result, error) {
	granted := meta.FindStatusCondition(request.Status.Conditions, registrationv1alpha1.RegistrationConditionGranted)
	if granted == nil {
		return ctrl.Result{}, nil
	}
	revoked := false
	if request.Namespace != registrationv1alpha1.ReturningNamespace { // There it belongs to no Cluster.
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
