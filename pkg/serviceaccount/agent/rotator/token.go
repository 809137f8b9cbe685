// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rotator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/serviceaccount/boundtoken"
)

// reconcileToken updates Secret and status of an account on the member, and returns until when they
// are valid.
func (r *Reconciler) reconcileToken(ctx context.Context, account *authenticationv1beta1.ManagedServiceAccount, onMember *corev1.ServiceAccount) (due time.Time, err error) {
	ca, err := r.MemberCA()
	if err != nil {
		return time.Time{}, fmt.Errorf("reading the CA of the member's API server: %w", err)
	}
	secret, err := r.readSecret(ctx, account)
	if err != nil {
		return time.Time{}, err
	}
	reportSecret(account, secret, r.Clock.Now())

	found, ours := inspect(secret, account, onMember, ca)
	if ours {
		if found.works, err = r.accepted(ctx, secret, onMember); err != nil {
			return time.Time{}, err
		}
	}
	next, due := decide(account, onMember.UID, found, r.Clock.Now())
	switch next {
	case spent:
		return time.Time{}, mistake("The only token was issued and no longer exists, and spec.rotation.enabled is false: set it to true, or re-create the ManagedServiceAccount")
	case restore:
		err = r.storeToken(ctx, account, secret, string(secret.Data[authenticationv1beta1.SecretKeyToken]), ca)
	case request:
		if err := r.isNewest(ctx, account); err != nil {
			return time.Time{}, err
		}
		return r.renew(ctx, account, onMember, secret, ca)
	}
	if err != nil {
		return time.Time{}, err
	}
	reportToken(account, found.claims, found.claims.Issued, r.Clock.Now())
	return due, nil
}

// isNewest returns a conflict if the cache has an old version of the ManagedServiceAccount. Its
// status has the time of the last refresh, which nothing else shows if the clocks of member and
// agent differ.
func (r *Reconciler) isNewest(ctx context.Context, account *authenticationv1beta1.ManagedServiceAccount) error {
	var newest authenticationv1beta1.ManagedServiceAccount
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(account), &newest); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading ManagedServiceAccount %s on the hub: %w", account.Name, err)
	}
	if newest.ResourceVersion == account.ResourceVersion {
		return nil
	}
	resource := authenticationv1beta1.GroupVersion.WithResource("managedserviceaccounts").GroupResource()
	return apierrors.NewConflict(resource, account.Name, errors.New("the cache is behind"))
}

// renew stores a new token. If it fails, the Secret is unchanged, and the older token serves until
// it expires.
func (r *Reconciler) renew(ctx context.Context, account *authenticationv1beta1.ManagedServiceAccount, onMember *corev1.ServiceAccount,
	secret *corev1.Secret, ca []byte) (due time.Time, err error) {
	claims, err := r.refresh(ctx, account, onMember, secret, ca)
	if err != nil {
		return time.Time{}, err
	}
	now := r.Clock.Now()
	reportSecret(account, secret, now)
	reportToken(account, claims, now, now)
	_, due = decide(account, onMember.UID, present{claims: claims, works: true, whole: true}, now)
	return due, nil
}

// readSecret returns the Secret on the hub, or an empty one without a resourceVersion.
func (r *Reconciler) readSecret(ctx context.Context, account *authenticationv1beta1.ManagedServiceAccount) (*corev1.Secret, error) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name}}
	found, err := reconcileutil.GetIfExists(ctx, r.Hub, client.ObjectKeyFromObject(secret), secret, "reading Secret %s/%s on the hub", secret.Namespace, secret.Name)
	if !found {
		return secret, err
	}
	if secret.Type != corev1.SecretTypeOpaque || !isManaged(secret) && !isOwned(secret, account) {
		return nil, mistake(fmt.Sprintf("Secret %s/%s is on the hub and was not made for a ManagedServiceAccount: delete it, or rename the ManagedServiceAccount",
			secret.Namespace, secret.Name))
	}
	return secret, nil
}

func isOwned(secret *corev1.Secret, account *authenticationv1beta1.ManagedServiceAccount) bool {
	return slices.ContainsFunc(secret.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.UID == account.UID })
}

// inspect parses a Secret's token. ours reports whether the claims name this account. found.whole
// reports whether the Secret is as storeToken wrote it, with the present CA and owner. The member
// decides whether the token works.
func inspect(secret *corev1.Secret, account *authenticationv1beta1.ManagedServiceAccount, onMember *corev1.ServiceAccount, ca []byte) (found present, ours bool) {
	claims, err := boundtoken.ParseClaims(string(secret.Data[authenticationv1beta1.SecretKeyToken]))
	if err != nil {
		return present{}, false
	}
	whole := len(secret.Data) == 2 && bytes.Equal(secret.Data[authenticationv1beta1.SecretKeyCA], ca)
	ours = claims.Subject == authenticationv1beta1.UsernameIn(onMember.Namespace, onMember.Name) && claims.Account == onMember.UID
	return present{claims: claims, whole: whole && isManaged(secret) && isOwned(secret, account)}, ours
}

// accepted reports whether the member's API server accepts the token for the account, because
// claims can be forged.
func (r *Reconciler) accepted(ctx context.Context, secret *corev1.Secret, onMember *corev1.ServiceAccount) (bool, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: string(secret.Data[authenticationv1beta1.SecretKeyToken])}}
	if err := r.Member.Create(ctx, review); err != nil {
		return false, fmt.Errorf("reviewing the token of ServiceAccount %s/%s on the member: %w", onMember.Namespace, onMember.Name, err)
	}
	return review.Status.Authenticated && review.Status.User.UID == string(onMember.UID), nil
}

// refresh requests a token and stores it. secret is updated.
func (r *Reconciler) refresh(ctx context.Context, account *authenticationv1beta1.ManagedServiceAccount, onMember *corev1.ServiceAccount, secret *corev1.Secret, ca []byte) (boundtoken.Claims, error) {
	token, err := r.requestToken(ctx, account, onMember)
	if err != nil {
		return boundtoken.Claims{}, err
	}
	claims, err := boundtoken.ParseClaims(token)
	if err != nil {
		return boundtoken.Claims{}, fmt.Errorf("reading the token that the member's API server issued: %w", err)
	}
	if err := r.storeToken(ctx, account, secret, token, ca); err != nil {
		return boundtoken.Claims{}, err
	}
	log.FromContext(ctx).Info("Refreshed the token", "account", account.Name, "expires", claims.Expires)
	return claims, nil
}

func (r *Reconciler) requestToken(ctx context.Context, account *authenticationv1beta1.ManagedServiceAccount, onMember *corev1.ServiceAccount) (string, error) {
	validity := account.Spec.Rotation.RequestedValidity()
	if validity < authenticationv1beta1.MinValidity {
		return "", mistake(fmt.Sprintf("spec.rotation.validity is %s: no API server issues tokens for less than %s", validity, authenticationv1beta1.MinValidity))
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(validity.Seconds()))}}
	err := r.Member.SubResource("token").Create(ctx, onMember, request)
	if apierrors.IsInvalid(err) {
		return "", mistake(fmt.Sprintf("the member's API server refuses spec.rotation.validity %s: %v", validity, err))
	}
	if err != nil {
		return "", fmt.Errorf("requesting a token of ServiceAccount %s/%s on the member: %w", onMember.Namespace, onMember.Name, err)
	}
	return request.Status.Token, nil
}

// storeToken writes the Secret on the hub, with the ManagedServiceAccount as owner for garbage
// collection. Labels and annotations of others stay.
func (r *Reconciler) storeToken(ctx context.Context, account *authenticationv1beta1.ManagedServiceAccount, secret *corev1.Secret, token string, ca []byte) error {
	kind, err := apiutil.GVKForObject(account, r.Hub.Scheme())
	if err != nil {
		return err
	}
	secret.Type = corev1.SecretTypeOpaque
	metav1.SetMetaDataLabel(&secret.ObjectMeta, authenticationv1beta1.LabelManagedServiceAccount, authenticationv1beta1.LabelManagedServiceAccountValue)
	secret.OwnerReferences = []metav1.OwnerReference{{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: account.Name, UID: account.UID}}
	secret.Data = map[string][]byte{authenticationv1beta1.SecretKeyToken: []byte(token), authenticationv1beta1.SecretKeyCA: ca}
	if secret.ResourceVersion == "" {
		err = r.Hub.Create(ctx, secret)
	} else {
		err = r.Hub.Update(ctx, secret)
	}
	if err != nil {
		return fmt.Errorf("storing the token in Secret %s/%s on the hub: %w", secret.Namespace, secret.Name, err)
	}
	return nil
}
