// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rotator runs in the agent: it makes the service accounts that
// ManagedServiceAccounts in the member's namespace on the hub ask for, and keeps
// a token of each in a Secret on the hub.
//
// It touches no ServiceAccount and no Secret that does not carry the label of
// managed ones. An account whose ManagedServiceAccount went away, also while the
// agent did not run, is removed from the member; its Secret goes by its owner.
package rotator

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	msav1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	"fleetgate.io/fleetgate/pkg/serviceaccount"
)

// Reconciler keeps the tokens of one member's accounts fresh.
type Reconciler struct {
	// Hub reads and writes the member's namespace on the hub.
	Hub client.Client
	// Member reads and writes service accounts on the member.
	Member client.Client
	// MemberCache watches the managed service accounts on the member. It should
	// hold nothing else.
	MemberCache cache.Cache
	// HubNamespace is the member's namespace on the hub.
	HubNamespace string
	// MemberCA returns the PEM certificates that verify the member's API server.
	MemberCA func() ([]byte, error)
	Clock    clock.PassiveClock
}

// SetupWithManager watches ManagedServiceAccounts and their Secrets on the hub,
// and the accounts on the member: what was deleted or altered is put back.
func (r *Reconciler) SetupWithManager(hub ctrl.Manager) error {
	managed := predicate.NewPredicateFuncs(isManaged)
	byName := func(_ context.Context, object client.Object) []ctrl.Request {
		return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: r.HubNamespace, Name: object.GetName()}}}
	}
	accounts := source.Kind[client.Object](r.MemberCache, &corev1.ServiceAccount{}, handler.EnqueueRequestsFromMapFunc(byName), managed)
	return ctrl.NewControllerManagedBy(hub).
		Named("managedserviceaccount.rotator").
		For(&msav1beta1.ManagedServiceAccount{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(byName), builder.WithPredicates(managed)).
		WatchesRawSource(accounts).
		Complete(r)
}

// Reconcile brings one account and its token up to date, and comes back when the
// token is due.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var account msav1beta1.ManagedServiceAccount
	err := r.Hub.Get(ctx, request.NamespacedName, &account)
	if apierrors.IsNotFound(err) || err == nil && !account.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.removeAccount(ctx, request.Name)
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading ManagedServiceAccount %s: %w", request.Name, err)
	}

	due, failure := r.reconcileToken(ctx, &account)
	if apierrors.IsConflict(failure) || apierrors.IsAlreadyExists(failure) {
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	if failure != nil {
		meta.SetStatusCondition(&account.Status.Conditions, failed(account.Generation, failure))
	}
	if err := r.writeStatus(ctx, &account); err != nil {
		return ctrl.Result{}, err
	}
	if failure != nil {
		return ctrl.Result{}, failure
	}
	return ctrl.Result{RequeueAfter: max(due.Sub(r.Clock.Now()), time.Second)}, nil
}

// reconcileToken makes account and Secret right, fills in the status, and
// returns when the token is due.
func (r *Reconciler) reconcileToken(ctx context.Context, account *msav1beta1.ManagedServiceAccount) (due time.Time, err error) {
	onMember, err := r.ensureAccount(ctx, account.Name)
	if err != nil {
		return time.Time{}, err
	}
	ca, err := r.MemberCA()
	if err != nil {
		return time.Time{}, fmt.Errorf("reading the CA of the member's API server: %w", err)
	}

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name}}
	err = r.Hub.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	if client.IgnoreNotFound(err) != nil {
		return time.Time{}, fmt.Errorf("reading Secret %s on the hub: %w", account.Name, err)
	}
	if err == nil && !isManaged(secret) {
		return time.Time{}, fmt.Errorf("Secret %s/%s is on the hub and was not made for this account: rename the ManagedServiceAccount or delete that Secret",
			secret.Namespace, secret.Name)
	}

	claims, usable := usableClaims(secret.Data, onMember, ca)
	if due = dueAt(claims, onMember.UID); !usable || !r.Clock.Now().Before(due) {
		// A failure leaves the Secret alone: an older token serves while it lives.
		fresh, err := r.requestToken(ctx, account, onMember)
		if err != nil {
			return time.Time{}, err
		}
		if claims, err = serviceaccount.ParseClaims(fresh); err != nil {
			return time.Time{}, fmt.Errorf("reading the token that the member's API server issued: %w", err)
		}
		if err := r.storeToken(ctx, account, secret, fresh, ca); err != nil {
			return time.Time{}, err
		}
		due = dueAt(claims, onMember.UID)
		account.Status.TokenSecretRef = &msav1beta1.SecretRef{Name: account.Name, LastRefreshTimestamp: metav1.NewTime(r.Clock.Now())}
	}
	report(account, claims, r.Clock.Now())
	return due, nil
}

// usableClaims reads a Secret's token, and reports whether it can go on serving
// until it is due: it belongs to this very account, beside the right CA.
func usableClaims(data map[string][]byte, onMember *corev1.ServiceAccount, ca []byte) (serviceaccount.Claims, bool) {
	claims, err := serviceaccount.ParseClaims(string(data[msav1beta1.SecretKeyToken]))
	if err != nil {
		return serviceaccount.Claims{}, false
	}
	username := "system:serviceaccount:" + onMember.Namespace + ":" + onMember.Name
	same := claims.Subject == username && claims.Account == onMember.UID
	return claims, same && len(data) == 2 && string(data[msav1beta1.SecretKeyCA]) == string(ca)
}

func dueAt(claims serviceaccount.Claims, account types.UID) time.Time {
	return serviceaccount.RefreshAt(claims.Issued, claims.Expires, serviceaccount.Jitter(account, claims.Issued))
}

func (r *Reconciler) requestToken(ctx context.Context, account *msav1beta1.ManagedServiceAccount, onMember *corev1.ServiceAccount) (string, error) {
	validity := account.Spec.Rotation.Validity.Duration
	if validity == 0 {
		validity = msav1beta1.DefaultValidity
	}
	if validity < msav1beta1.MinValidity {
		return "", fmt.Errorf("spec.rotation.validity is %s: no API server issues tokens for less than %s", validity, msav1beta1.MinValidity)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(validity.Seconds()))}}
	if err := r.Member.SubResource("token").Create(ctx, onMember, request); err != nil {
		return "", fmt.Errorf("requesting a token of ServiceAccount %s/%s on the member: %w", onMember.Namespace, onMember.Name, err)
	}
	return request.Status.Token, nil
}

// storeToken writes the Secret on the hub, owned by the ManagedServiceAccount so
// that it goes with it.
func (r *Reconciler) storeToken(ctx context.Context, account *msav1beta1.ManagedServiceAccount, secret *corev1.Secret, token string, ca []byte) error {
	kind, err := apiutil.GVKForObject(account, r.Hub.Scheme())
	if err != nil {
		return err
	}
	secret.Type = corev1.SecretTypeOpaque
	secret.Labels = map[string]string{msav1beta1.LabelManagedServiceAccount: msav1beta1.LabelManagedServiceAccountValue}
	secret.OwnerReferences = []metav1.OwnerReference{{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: account.Name, UID: account.UID}}
	secret.Data = map[string][]byte{msav1beta1.SecretKeyToken: []byte(token), msav1beta1.SecretKeyCA: ca}
	if secret.ResourceVersion == "" {
		err = r.Hub.Create(ctx, secret)
	} else {
		err = r.Hub.Update(ctx, secret)
	}
	if err != nil {
		return fmt.Errorf("storing the token in Secret %s/%s on the hub: %w", secret.Namespace, secret.Name, err)
	}
	log.FromContext(ctx).Info("Refreshed the token", "account", account.Name)
	return nil
}

// ensureAccount returns the ServiceAccount on the member, made if it was missing.
func (r *Reconciler) ensureAccount(ctx context.Context, name string) (*corev1.ServiceAccount, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: msav1beta1.AccountNamespace, Name: name}}
	err := r.Member.Get(ctx, client.ObjectKeyFromObject(account), account)
	if err == nil {
		if !isManaged(account) {
			return nil, fmt.Errorf("ServiceAccount %s/%s is on the member and was not made for a ManagedServiceAccount: rename one of them", account.Namespace, name)
		}
		return account, nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading ServiceAccount %s/%s on the member: %w", account.Namespace, name, err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: account.Namespace}}
	if err := r.Member.Create(ctx, namespace); client.IgnoreAlreadyExists(err) != nil {
		return nil, fmt.Errorf("making namespace %s on the member: %w", namespace.Name, err)
	}
	account.Labels = map[string]string{msav1beta1.LabelManagedServiceAccount: msav1beta1.LabelManagedServiceAccountValue}
	if err := r.Member.Create(ctx, account); err != nil {
		return nil, fmt.Errorf("making ServiceAccount %s/%s on the member: %w", account.Namespace, name, err)
	}
	return account, nil
}

// removeAccount takes the account off the member; its tokens die with it.
func (r *Reconciler) removeAccount(ctx context.Context, name string) error {
	account := &corev1.ServiceAccount{}
	err := r.Member.Get(ctx, client.ObjectKey{Namespace: msav1beta1.AccountNamespace, Name: name}, account)
	if err != nil || !isManaged(account) {
		return client.IgnoreNotFound(err)
	}
	err = r.Member.Delete(ctx, account, client.Preconditions{UID: &account.UID})
	return client.IgnoreNotFound(err)
}

// writeStatus writes the status if it changed. A conflict brings the request
// back with the newer object.
func (r *Reconciler) writeStatus(ctx context.Context, account *msav1beta1.ManagedServiceAccount) error {
	var before msav1beta1.ManagedServiceAccount
	if err := r.Hub.Get(ctx, client.ObjectKeyFromObject(account), &before); err != nil {
		return client.IgnoreNotFound(err)
	}
	patch := client.MergeFrom(before.DeepCopy())
	before.Status = account.Status
	if err := r.Hub.Status().Patch(ctx, &before, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of ManagedServiceAccount %s: %w", account.Name, err)
	}
	return nil
}

// report fills in the status of an account whose token is in place.
func report(account *msav1beta1.ManagedServiceAccount, claims serviceaccount.Claims, now time.Time) {
	if account.Status.TokenSecretRef == nil {
		account.Status.TokenSecretRef = &msav1beta1.SecretRef{Name: account.Name, LastRefreshTimestamp: metav1.NewTime(now)}
	}
	account.Status.ExpirationTimestamp = ptr.To(metav1.NewTime(claims.Expires))
	for _, condition := range []metav1.Condition{
		{Type: msav1beta1.ConditionSecretCreated, Reason: msav1beta1.ReasonSecretCreated, Message: "Secret " + account.Name + " is on the hub"},
		{Type: msav1beta1.ConditionTokenReported, Reason: msav1beta1.ReasonTokenReported, Message: "The token is refreshed before it expires"},
	} {
		condition.Status, condition.ObservedGeneration = metav1.ConditionTrue, account.Generation
		meta.SetStatusCondition(&account.Status.Conditions, condition)
	}
}

// failed is the condition that a refresh failed. The older token, if it lives,
// is still in the Secret.
func failed(generation int64, failure error) metav1.Condition {
	message := failure.Error()
	var status apierrors.APIStatus
	if errors.As(failure, &status) && status.Status().Code == 403 {
		message += ": the agent's role on the member must allow it"
	}
	return metav1.Condition{
		Type: msav1beta1.ConditionTokenReported, Status: metav1.ConditionFalse, Reason: msav1beta1.ReasonTokenReportFailed,
		ObservedGeneration: generation, Message: message,
	}
}

func isManaged(object client.Object) bool {
	return object.GetLabels()[msav1beta1.LabelManagedServiceAccount] == msav1beta1.LabelManagedServiceAccountValue
}
