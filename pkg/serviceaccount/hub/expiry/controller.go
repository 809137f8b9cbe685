// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package expiry deletes ManagedServiceAccounts after spec.ttlSecondsAfterCreation. It runs on the
// hub. Account and tokens are removed as after any deletion.
package expiry

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/serviceaccount/hub/mirror"
)

// recheckInterval is the longest interval between checks: clocks can jump, and a namespace can be
// assigned to a member meanwhile.
const recheckInterval = time.Hour

// Reconciler deletes expired ManagedServiceAccounts in the namespaces of members and those assigned
// to members. Other namespaces belong to other products.
type Reconciler struct {
	Client client.Client
	Clock  clock.PassiveClock
	// GatewayNamespace is the namespace of the gateway.
	GatewayNamespace string
}

// SetupWithManager watches ManagedServiceAccounts.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("managedserviceaccount.expiry").
		For(&authenticationv1beta1.ManagedServiceAccount{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(r)
}

// Reconcile deletes a ManagedServiceAccount, or requeues it for the time when it expires.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var account authenticationv1beta1.ManagedServiceAccount
	if err := r.Client.Get(ctx, request.NamespacedName, &account); err != nil || !account.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	left, limited := remaining(&account, r.Clock.Now())
	if !limited {
		return ctrl.Result{}, nil
	}
	if left > 0 {
		return ctrl.Result{RequeueAfter: min(left, recheckInterval)}, nil
	}
	if served, err := r.served(ctx, account.Namespace); err != nil || !served {
		return ctrl.Result{RequeueAfter: recheckInterval}, err
	}
	if err := r.Client.Delete(ctx, &account, client.Preconditions{UID: &account.UID}); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("deleting ManagedServiceAccount %s at its end: %w", request, err)
	}
	ctrl.LoggerFrom(ctx).Info("Deleted a ManagedServiceAccount after its spec.ttlSecondsAfterCreation")
	return ctrl.Result{}, nil
}

// remaining returns the remaining lifetime, if it is limited.
func remaining(account *authenticationv1beta1.ManagedServiceAccount, now time.Time) (left time.Duration, limited bool) {
	ttl := account.Spec.TTLSecondsAfterCreation
	if ttl == nil {
		return 0, false
	}
	return account.CreationTimestamp.Add(time.Duration(*ttl) * time.Second).Sub(now), true
}

func (r *Reconciler) served(ctx context.Context, name string) (bool, error) {
	if _, ofMember := clusterv1beta1.MemberOfNamespace(name); ofMember {
		return true, nil
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	member, _ := mirror.Given(name, namespace.Labels, r.GatewayNamespace)
	return member != "", nil
}
