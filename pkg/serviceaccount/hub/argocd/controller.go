// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package argocd

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

// retryInterval is the interval of checks whether a problem is solved.
const retryInterval = time.Minute

// EventNotWritten is the reason of the event on a MemberCluster whose Secret
// cannot be written.
const EventNotWritten = "ArgoCDSecretNotWritten"

// Reconciler writes the Secrets of labelled members. It processes one member at a time, because
// they share a role.
type Reconciler struct {
	// Client reads MemberClusters from a cache; Live reads the objects that the Reconciler writes.
	Client client.Client
	Live   client.Reader
	// Secrets caches the metadata of Secrets with the label fleetgate.io/member.
	Secrets  cache.Cache
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
	// Namespace is the namespace of Argo CD.
	Namespace string
	// HubURL is Argo CD's URL of the hub, and HubCA (PEM) verifies it. If unset, the hub's
	// certificate must be publicly trusted.
	HubURL string
	HubCA  []byte
}

// SetupWithManager watches labels of MemberClusters, and the Secrets, to restore deleted or altered
// ones.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	secrets := source.Kind[client.Object](r.Secrets, secret, handler.EnqueueRequestsFromMapFunc(r.memberOf))
	return ctrl.NewControllerManagedBy(mgr).
		Named("membercluster.argocd").
		For(&clusterv1beta1.MemberCluster{}, builder.WithPredicates(predicate.LabelChangedPredicate{})).
		WatchesRawSource(secrets).
		Complete(r)
}

func (r *Reconciler) memberOf(_ context.Context, secret client.Object) []ctrl.Request {
	if secret.GetNamespace() != r.Namespace {
		return nil
	}
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Name: secret.GetLabels()[clusterv1beta1.LabelMember]}}}
}

// Reconcile updates the Secret of one member, and requeues it for the next refresh of its token.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	member := &clusterv1beta1.MemberCluster{}
	err := r.Client.Get(ctx, request.NamespacedName, member)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("reading MemberCluster %s: %w", request.Name, err)
	}
	if err != nil || !isRequested(member) {
		return ctrl.Result{}, r.withdraw(ctx, request.Name)
	}
	due, why, err := r.provide(ctx, member)
	if err != nil {
		return ctrl.Result{}, ignoreConflict(err)
	}
	if why != "" {
		r.Recorder.Eventf(member, nil, corev1.EventTypeWarning, EventNotWritten, "WriteSecret", "%s", why)
		return ctrl.Result{RequeueAfter: retryInterval}, nil
	}
	return ctrl.Result{RequeueAfter: max(due.Sub(r.Clock.Now()), time.Second)}, nil
}

func isRequested(member *clusterv1beta1.MemberCluster) bool {
	return member.DeletionTimestamp.IsZero() && member.Labels[authenticationv1beta1.LabelArgoCD] == authenticationv1beta1.LabelArgoCDValue
}

// ignoreConflict drops errors after which a watch event enqueues the member again.
func ignoreConflict(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// provide updates account, role and Secret. It returns when the token is due, or why there can be
// none.
func (r *Reconciler) provide(ctx context.Context, member *clusterv1beta1.MemberCluster) (due time.Time, why string, err error) {
	account, err := r.ensureAccount(ctx)
	if apierrors.IsNotFound(err) {
		return time.Time{}, fmt.Sprintf("there is no namespace %s: install Argo CD there, or set members.argoCDNamespace of the gateway", r.Namespace), nil
	}
	if err != nil {
		return time.Time{}, "", err
	}
	if err := r.ensureRole(ctx); err != nil {
		return time.Time{}, "", err
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: r.Namespace, Name: SecretName(member.Name)}
	exists, err := reconcileutil.GetIfExists(ctx, r.Live, key, secret, "reading Secret %s", key)
	if err != nil {
		return time.Time{}, "", err
	}
	if exists && !isOurs(secret) {
		return time.Time{}, fmt.Sprintf("Secret %s was not made by the hub: delete it, or take the label %s off the member", key, authenticationv1beta1.LabelArgoCD), nil
	}
	secret.Name = key.Name
	due, err = r.writeSecret(ctx, member, account, secret, exists)
	return due, "", err
}

func (r *Reconciler) writeSecret(ctx context.Context, member *clusterv1beta1.MemberCluster, account *corev1.ServiceAccount, present *corev1.Secret, exists bool) (due time.Time, err error) {
	token, due := tokenIn(present, account)
	if !r.Clock.Now().Before(due) {
		if token, err = r.requestToken(ctx, account); err != nil {
			return time.Time{}, err
		}
	}
	wanted, err := r.desiredSecret(member, token)
	if err != nil {
		return time.Time{}, err
	}
	_, due = tokenIn(wanted, account)
	wanted.ResourceVersion = present.ResourceVersion
	switch {
	case !exists:
		err = r.Client.Create(ctx, wanted)
	case equality.Semantic.DeepEqual(present.Data, wanted.Data) && equality.Semantic.DeepEqual(present.Labels, wanted.Labels):
	default:
		err = r.Client.Update(ctx, wanted)
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("writing Secret %s/%s: %w", wanted.Namespace, wanted.Name, err)
	}
	return due, nil
}

func isOurs(object client.Object) bool { return object.GetLabels()[labelManagedBy] == manager }

// ensureAccount creates the account. Tokens are matched by its UID.
func (r *Reconciler) ensureAccount(ctx context.Context) (*corev1.ServiceAccount, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: r.Namespace, Name: Account, Labels: map[string]string{labelManagedBy: manager},
	}}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(account), account)
	if apierrors.IsNotFound(err) {
		err = r.Client.Create(ctx, account)
	}
	if err != nil {
		return nil, fmt.Errorf("making ServiceAccount %s/%s: %w", r.Namespace, Account, err)
	}
	return account, nil
}

// ensureRole allows the account to use the gateways of labelled members.
func (r *Reconciler) ensureRole(ctx context.Context) error {
	var members clusterv1beta1.MemberClusterList
	if err := r.Client.List(ctx, &members, client.MatchingLabels{authenticationv1beta1.LabelArgoCD: authenticationv1beta1.LabelArgoCDValue}); err != nil {
		return fmt.Errorf("listing members for Argo CD: %w", err)
	}
	var names []string
	for _, member := range members.Items {
		if isRequested(&member) {
			names = append(names, member.Name)
		}
	}
	slices.Sort(names)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: Account, Labels: map[string]string{labelManagedBy: manager}}, Rules: desiredRules(names)}
	current := &rbacv1.ClusterRole{}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(role), current)
	switch {
	case apierrors.IsNotFound(err) && len(names) == 0:
		return nil
	case apierrors.IsNotFound(err):
		err = r.Client.Create(ctx, role)
	case err == nil && !equality.Semantic.DeepEqual(current.Rules, role.Rules):
		current.Rules = role.Rules
		err = r.Client.Update(ctx, current)
	}
	if err != nil {
		return fmt.Errorf("making ClusterRole %s: %w", Account, err)
	}
	return r.ensureBinding(ctx)
}

// ensureBinding binds the role to the account only.
func (r *Reconciler) ensureBinding(ctx context.Context) error {
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: Account, Labels: map[string]string{labelManagedBy: manager}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: Account},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: r.Namespace, Name: Account}},
	}
	current := &rbacv1.ClusterRoleBinding{}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(binding), current)
	switch {
	case apierrors.IsNotFound(err):
		err = r.Client.Create(ctx, binding)
	case err == nil && !equality.Semantic.DeepEqual(current.Subjects, binding.Subjects):
		current.Subjects = binding.Subjects
		err = r.Client.Update(ctx, current)
	}
	if err != nil {
		return fmt.Errorf("making ClusterRoleBinding %s: %w", Account, err)
	}
	return nil
}

// withdraw deletes the Secret of a member without the label, and revokes the right. If there was no
// Secret, it creates nothing.
func (r *Reconciler) withdraw(ctx context.Context, member string) error {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	key := client.ObjectKey{Namespace: r.Namespace, Name: SecretName(member)}
	if found, err := reconcileutil.GetIfExists(ctx, r.Secrets, key, secret, "reading Secret %s/%s", r.Namespace, SecretName(member)); !found || !isOurs(secret) {
		return err
	}
	// The right is revoked first: if the rest fails, the existing Secret triggers a retry.
	if err := r.ensureRole(ctx); err != nil {
		return ignoreConflict(err)
	}
	if err := r.Client.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing Secret %s/%s: %w", r.Namespace, SecretName(member), err)
	}
	return nil
}
