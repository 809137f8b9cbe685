// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
)

// Reconciler maintains a mirror of each ManagedServiceAccount in a namespace that is assigned to a
// member, and a copy of its token.
type Reconciler struct {
	// Client reads ManagedServiceAccounts and metadata of namespaces from a cache, and Secrets from
	// the hub.
	Client client.Client
	// Secrets caches the metadata of the Secrets of ManagedServiceAccounts; see
	// credentials.NewSecretCache.
	Secrets cache.Cache
	// GatewayNamespace is the namespace of the gateway.
	GatewayNamespace string
	// Concurrency is the number of parallel reconciles. If zero, one.
	Concurrency int
}

// SetupWithManager watches ManagedServiceAccounts, namespaces and the Secrets with tokens. The
// status of a mirror is not enough: its times are in seconds, so that a second token right after the
// first one does not change it.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	secrets := source.Kind[client.Object](r.Secrets, secret, handler.EnqueueRequestsFromMapFunc(r.ofSecret))
	return ctrl.NewControllerManagedBy(mgr).
		Named("managedserviceaccount.mirror").
		Watches(&authenticationv1beta1.ManagedServiceAccount{}, handler.EnqueueRequestsFromMapFunc(sourceOf)).
		WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.inNamespace), builder.WithPredicates(predicate.LabelChangedPredicate{})).
		WatchesRawSource(secrets).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Concurrency}).
		Complete(r)
}

// outside returns the request for an object, unless it is in a member's namespace.
func outside(object client.Object) []ctrl.Request {
	if _, ofMember := clusterv1beta1.MemberOfNamespace(object.GetNamespace()); ofMember {
		return nil
	}
	return []ctrl.Request{{NamespacedName: client.ObjectKeyFromObject(object)}}
}

// ofSecret returns the request for a copy, or for the source of a mirror's token.
func (r *Reconciler) ofSecret(ctx context.Context, secret client.Object) []ctrl.Request {
	if requests := outside(secret); requests != nil {
		return requests
	}
	mirror := &authenticationv1beta1.ManagedServiceAccount{}
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(secret), mirror); err != nil {
		return nil // without a mirror there is nothing to copy; the mirror's event enqueues it
	}
	return sourceOf(ctx, mirror)
}

// sourceOf returns the request for a ManagedServiceAccount, or for the source of a mirror.
func sourceOf(_ context.Context, account client.Object) []ctrl.Request {
	if from := sourceNamespace(account); from != "" {
		return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: from, Name: account.GetName()}}}
	}
	return outside(account)
}

// inNamespace returns requests for the ManagedServiceAccounts in a namespace. For a member's
// namespace, it returns those in namespaces that are assigned to the member.
func (r *Reconciler) inNamespace(ctx context.Context, namespace client.Object) []ctrl.Request {
	names := []string{namespace.GetName()}
	if member, ok := clusterv1beta1.MemberOfNamespace(namespace.GetName()); ok {
		names = r.namespacesOf(ctx, member)
	}
	var requests []ctrl.Request
	for _, name := range names {
		if _, ofMember := clusterv1beta1.MemberOfNamespace(name); !ofMember {
			requests = append(requests, enqueue.All(ctx, r.Client, &authenticationv1beta1.ManagedServiceAccountList{}, client.InNamespace(name))...)
		}
	}
	return requests
}

func (r *Reconciler) namespacesOf(ctx context.Context, member string) (names []string) {
	namespaces := &metav1.PartialObjectMetadataList{}
	namespaces.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := r.Client.List(ctx, namespaces, client.MatchingLabels{clusterv1beta1.LabelMember: member}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Could not list namespaces", "member", member)
	}
	for _, namespace := range namespaces.Items {
		names = append(names, namespace.Name)
	}
	return names
}

// Reconcile updates the mirror of one ManagedServiceAccount, and copies token and status from it.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	member, why, err := r.memberOf(ctx, request.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	account := &authenticationv1beta1.ManagedServiceAccount{}
	err = r.Client.Get(ctx, request.NamespacedName, account)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("reading ManagedServiceAccount %s: %w", request, err)
	}
	if err != nil || !account.DeletionTimestamp.IsZero() {
		account = nil
	}
	if member != "" && request.Name == authenticationv1beta1.GatewayAccount {
		// Otherwise this account would get the gateway's rights on the member.
		member, why = "", fmt.Sprintf("%s is the gateway's own account on member %s: choose another name", request.Name, member)
	}
	withdrawn, err := r.withdraw(ctx, request.NamespacedName, member, account)
	switch {
	case err != nil || account == nil:
		return ctrl.Result{}, ignoreRoutine(err)
	case member != "":
		return ctrl.Result{}, ignoreRoutine(r.serve(ctx, account, member))
	case why == "" && !withdrawn:
		return ctrl.Result{}, nil // it was never served
	case why == "":
		why = fmt.Sprintf("namespace %s is no longer assigned to a member: label it %s=<name>", account.Namespace, clusterv1beta1.LabelMember)
	}
	return ctrl.Result{}, ignoreRoutine(r.refuse(ctx, account, why))
}

// ignoreRoutine drops errors after which a watch event enqueues the request again.
func ignoreRoutine(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	return err
}

func (r *Reconciler) memberOf(ctx context.Context, name string) (member, why string, err error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, namespace); client.IgnoreNotFound(err) != nil {
		return "", "", fmt.Errorf("reading namespace %s: %w", name, err)
	}
	member, why = Given(name, namespace.Labels, r.GatewayNamespace)
	return member, why, nil
}

// withdraw deletes unwanted mirrors: the source was deleted or re-created, or its namespace is no
// longer assigned to that member. The copy is deleted with the mirror.
func (r *Reconciler) withdraw(ctx context.Context, key types.NamespacedName, member string, account *authenticationv1beta1.ManagedServiceAccount) (withdrawn bool, err error) {
	mirrors, err := r.mirrorsOf(ctx, key.Namespace)
	if err != nil {
		return false, err
	}
	for _, mirror := range mirrors {
		if mirror.Name != key.Name || account != nil && member != "" && isMirror(&mirror, account, member) {
			continue
		}
		if err := r.Client.Delete(ctx, &mirror, client.Preconditions{UID: &mirror.UID}); client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("removing mirror %s/%s: %w", mirror.Namespace, mirror.Name, err)
		}
		withdrawn = true
	}
	if withdrawn && account != nil {
		err = r.removeCopy(ctx, account)
	}
	return withdrawn, err
}

// mirrorsOf lists the mirrors of the ManagedServiceAccounts in a namespace.
func (r *Reconciler) mirrorsOf(ctx context.Context, namespace string) (all []authenticationv1beta1.ManagedServiceAccount, err error) {
	for _, key := range []string{authenticationv1beta1.LabelSourceNamespace, authenticationv1beta1.DeprecatedLabelAskedFrom} {
		var mirrors authenticationv1beta1.ManagedServiceAccountList
		if err := r.Client.List(ctx, &mirrors, client.MatchingLabels{key: namespace}); err != nil {
			return nil, fmt.Errorf("listing mirrors of ManagedServiceAccounts in %s: %w", namespace, err)
		}
		for _, mirror := range mirrors.Items {
			if _, both := mirror.Labels[authenticationv1beta1.LabelSourceNamespace]; !both || key == authenticationv1beta1.LabelSourceNamespace {
				all = append(all, mirror)
			}
		}
	}
	return all, nil
}

// sourceNamespace is the namespace of a mirror's source, or empty.
func sourceNamespace(mirror client.Object) string {
	if namespace, ok := mirror.GetLabels()[authenticationv1beta1.LabelSourceNamespace]; ok {
		return namespace
	}
	return mirror.GetLabels()[authenticationv1beta1.DeprecatedLabelAskedFrom] // Remove after the next release.
}

// hasLabels reports whether a mirror has all desired labels. A gateway of the previous version did
// not set LabelSourceNamespace.
func hasLabels(mirror, desired *authenticationv1beta1.ManagedServiceAccount) bool {
	for key, value := range desired.Labels {
		if mirror.Labels[key] != value {
			return false
		}
	}
	return true
}

// isMirror reports whether mirror is the mirror of this ManagedServiceAccount, by UID.
func isMirror(mirror, account *authenticationv1beta1.ManagedServiceAccount, member string) bool {
	return mirror.Namespace == clusterv1beta1.MemberNamespace(member) && sourceNamespace(mirror) == account.Namespace &&
		mirror.Annotations[authenticationv1beta1.AnnotationMadeFor] == string(account.UID)
}

// serve updates the mirror, and copies token and status from it.
func (r *Reconciler) serve(ctx context.Context, account *authenticationv1beta1.ManagedServiceAccount, member string) error {
	desired := desiredMirror(account, member)
	mirror := desired.DeepCopy()
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(mirror), mirror)
	switch {
	case apierrors.IsNotFound(err):
		err := r.Client.Create(ctx, mirror)
		if apierrors.IsNotFound(err) {
			return r.reportMissingMember(ctx, account, member)
		}
		return err // the mirror's event will enqueue the source
	case err != nil:
		return fmt.Errorf("reading mirror %s/%s: %w", mirror.Namespace, mirror.Name, err)
	case sourceNamespace(mirror) != account.Namespace:
		return r.refuse(ctx, account, fmt.Sprintf("member %s has an account of that name already, for ManagedServiceAccount %s/%s: choose another name", member, mirror.Namespace, mirror.Name))
	case !isMirror(mirror, account, member) || !mirror.DeletionTimestamp.IsZero():
		return nil // the mirror is being replaced
	case !equality.Semantic.DeepEqual(mirror.Spec, desired.Spec) || !hasLabels(mirror, desired):
		mirror = mirror.DeepCopy()
		mirror.Spec = desired.Spec
		maps.Copy(mirror.Labels, desired.Labels)
		return r.Client.Update(ctx, mirror)
	}
	if why, err := r.copyToken(ctx, mirror, account); err != nil || why != "" {
		if err != nil {
			return err
		}
		return r.refuse(ctx, account, why)
	}
	return r.writeStatus(ctx, account, desiredStatus(mirror, account))
}

// reportMissingMember deletes the copy, because the member and its tokens no longer exist.
func (r *Reconciler) reportMissingMember(ctx context.Context, account *authenticationv1beta1.ManagedServiceAccount, member string) error {
	if err := r.removeCopy(ctx, account); err != nil {
		return err
	}
	return r.refuse(ctx, account, fmt.Sprintf("there is no member %s: correct the label %s of namespace %s", member, clusterv1beta1.LabelMember, account.Namespace))
}

// refuse reports in the status why there is no token.
func (r *Reconciler) refuse(ctx context.Context, account *authenticationv1beta1.ManagedServiceAccount, why string) error {
	return r.writeStatus(ctx, account, refusedStatus(account, why))
}

func (r *Reconciler) writeStatus(ctx context.Context, account *authenticationv1beta1.ManagedServiceAccount, status authenticationv1beta1.ManagedServiceAccountStatus) error {
	if equality.Semantic.DeepEqual(account.Status, status) {
		return nil
	}
	changed := account.DeepCopy()
	changed.Status = status
	if err := r.Client.Status().Patch(ctx, changed, client.MergeFrom(account)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of ManagedServiceAccount %s/%s: %w", account.Namespace, account.Name, err)
	}
	return nil
}
