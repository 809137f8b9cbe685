// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
)

// Reconciler requests the gateway's account on each member, by a ManagedServiceAccount in the
// member's namespace.
type Reconciler struct {
	Client client.Client
}

// HubRules returns the rights that a member's agent needs in its namespace on the hub to report
// tokens. RBAC cannot restrict writes to Secrets of ManagedServiceAccounts; policy
// fleetgate-member-secrets does.
func HubRules(string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{authenticationv1beta1.GroupVersion.Group}, Resources: []string{"managedserviceaccounts"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{authenticationv1beta1.GroupVersion.Group}, Resources: []string{"managedserviceaccounts/status"}, Verbs: []string{"patch", "update"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create", "get", "list", "patch", "update", "watch"}},
		{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}
}

// SetupWithManager watches members, their namespaces, and the gateway's ManagedServiceAccounts, to
// restore deleted ones.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	ownAccount := predicate.NewPredicateFuncs(func(object client.Object) bool { return object.GetName() == authenticationv1beta1.GatewayAccount })
	memberOf := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []ctrl.Request {
		namespace := object.GetNamespace()
		if namespace == "" {
			namespace = object.GetName()
		}
		member, ok := clusterv1beta1.MemberOfNamespace(namespace)
		if !ok {
			return nil
		}
		return []ctrl.Request{{NamespacedName: types.NamespacedName{Name: member}}}
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("managedserviceaccount.gateway").
		For(&clusterv1beta1.MemberCluster{}, builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, reported()))).
		WatchesMetadata(&corev1.Namespace{}, memberOf).
		Watches(&authenticationv1beta1.ManagedServiceAccount{}, memberOf, builder.WithPredicates(ownAccount)).
		Complete(r)
}

// Reconcile creates the gateway's ManagedServiceAccount of one member.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var member clusterv1beta1.MemberCluster
	if err := r.Client.Get(ctx, request.NamespacedName, &member); err != nil || !member.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !hasReported(&member) {
		return ctrl.Result{}, nil // no agent can create a token before; spare the hub the write
	}
	account := &authenticationv1beta1.ManagedServiceAccount{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: clusterv1beta1.MemberNamespace(member.Name),
			Name:      authenticationv1beta1.GatewayAccount,
			Labels:    map[string]string{clusterv1beta1.LabelMember: member.Name},
		},
		Spec: authenticationv1beta1.ManagedServiceAccountSpec{
			Rotation: authenticationv1beta1.ManagedServiceAccountRotation{Validity: metav1.Duration{Duration: authenticationv1beta1.GatewayValidity}},
		},
	}
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(account), &authenticationv1beta1.ManagedServiceAccount{})
	if !apierrors.IsNotFound(err) {
		return ctrl.Result{}, err
	}
	err = r.Client.Create(ctx, account)
	if apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return ctrl.Result{}, nil // the namespace's event will enqueue it
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("asking for the gateway's account on member %q: %w", member.Name, err)
	}
	return ctrl.Result{}, nil
}

// hasReported reports whether a member's agent has ever reported.
func hasReported(member *clusterv1beta1.MemberCluster) bool {
	return member.Status.AgentStatusOf(clusterv1beta1.MemberAgent) != nil
}

// reported selects the first report.
func reported() predicate.Predicate {
	return enqueue.OnUpdate(func(before, after *clusterv1beta1.MemberCluster) bool {
		return hasReported(before) != hasReported(after)
	})
}

// NewSecretCache returns a cache for the metadata of the Secrets of ManagedServiceAccounts. The
// caller adds it to its manager.
func NewSecretCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	options.DefaultLabelSelector = labels.SelectorFromSet(labels.Set{authenticationv1beta1.LabelManagedServiceAccount: authenticationv1beta1.LabelManagedServiceAccountValue})
	secrets, err := cache.New(config, options)
	if err != nil {
		return nil, fmt.Errorf("making a cache of the Secrets of ManagedServiceAccounts: %w", err)
	}
	return secrets, nil
}
