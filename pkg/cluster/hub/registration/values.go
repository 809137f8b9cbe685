// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/yaml"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// Bounds of a TokenRequest, by the API server's own validation.
const (
	minTokenSeconds = 10 * 60
	maxTokenSeconds = 1 << 32
)

// grantSlack is the difference from the requested lifetime that is ignored.
const grantSlack = time.Minute

// ensureValues maintains the Secret with the token's name. An existing token in it is kept: it lives as
// long as the ClusterRegistrationToken.
func (r *TokenReconciler) ensureValues(ctx context.Context, token *registrationv1alpha1.ClusterRegistrationToken, life life) (issueState, error) {
	secret := &corev1.Secret{}
	found, err := reconcileutil.GetIfExists(ctx, r.Live, client.ObjectKeyFromObject(token), secret, "reading Secret %q", token.Name)
	if err != nil {
		return 0, err
	}
	if !found {
		return r.createValues(ctx, token, life)
	}
	if !metav1.IsControlledBy(secret, token) || secret.Type != registrationv1alpha1.SecretTypeRegistrationValues {
		return secretNotOurs, nil
	}
	return r.updateValues(ctx, token, secret, life)
}

func (r *TokenReconciler) createValues(ctx context.Context, token *registrationv1alpha1.ClusterRegistrationToken, life life) (issueState, error) {
	bearer, err := r.bearerToken(ctx, token, life)
	if bearer == "" || err != nil {
		return waitingForToken, err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: token.Namespace, Name: token.Name},
		Type:       registrationv1alpha1.SecretTypeRegistrationValues,
	}
	if err := r.fillValues(token, secret, bearer); err != nil {
		return 0, err
	}
	return issuedValues, r.createOwned(ctx, token, secret)
}

// updateValues applies a change of the hub's URL or CA, and replaces unreadable values.
func (r *TokenReconciler) updateValues(ctx context.Context, token *registrationv1alpha1.ClusterRegistrationToken, secret *corev1.Secret, life life) (issueState, error) {
	var values registrationv1alpha1.AgentValues
	// Unreadable values have no token and are rewritten below.
	_ = untrusted.Unmarshal(secret.Data[registrationv1alpha1.RegistrationValuesKey], untrusted.Object, &values)
	bearer := values.Token
	if bearer == "" {
		var err error
		if bearer, err = r.bearerToken(ctx, token, life); bearer == "" || err != nil {
			return waitingForToken, err
		}
	}
	before := secret.DeepCopy()
	if err := r.fillValues(token, secret, bearer); err != nil {
		return 0, err
	}
	if equality.Semantic.DeepEqual(before.Data, secret.Data) {
		return issuedValues, nil
	}
	if err := r.Client.Update(ctx, secret); err != nil {
		return 0, fmt.Errorf("updating Secret %q: %w", secret.Name, err)
	}
	return issuedValues, nil
}

func (r *TokenReconciler) fillValues(token *registrationv1alpha1.ClusterRegistrationToken, secret *corev1.Secret, bearer string) error {
	values, err := yaml.Marshal(registrationv1alpha1.AgentValues{
		ClusterNamespace:            token.Namespace,
		APIServerURL:                r.Hub.URL,
		APIServerCA:                 string(r.Hub.CA),
		Token:                       bearer,
		SystemRegistrationNamespace: clusterv1beta1.SystemNamespace,
		TokenName:                   token.Name,
	})
	if err != nil {
		return fmt.Errorf("writing the values of %q: %w", token.Name, err)
	}
	secret.Data = map[string][]byte{registrationv1alpha1.RegistrationValuesKey: values}
	return nil
}

// bearerToken is a token of the account for the rest of its lifetime, or empty while it is not
// available. It requests a token that expires by itself. If the lifetime is infinite or the API server
// grants less, it uses a token Secret, which is deleted at expiry.
func (r *TokenReconciler) bearerToken(ctx context.Context, token *registrationv1alpha1.ClusterRegistrationToken, life life) (string, error) {
	seconds, ok := requestSeconds(life)
	if !ok {
		return r.legacyToken(ctx, token)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: token.Namespace,
		Name:      accountName(token.Name, token.UID),
	}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if err := r.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("requesting a token of account %q: %w", account.Name, err)
	}
	if request.Status.ExpirationTimestamp.Add(grantSlack).Before(life.expires) {
		return r.legacyToken(ctx, token)
	}
	return request.Status.Token, nil
}

// requestSeconds is the lifetime for a TokenRequest, and false if a TokenRequest is not possible. If
// the lifetime is below the API server's minimum, the token is longer and ends with its account.
func requestSeconds(life life) (int64, bool) {
	if life.infinite {
		return 0, false
	}
	seconds := int64(math.Ceil(life.left.Seconds()))
	return max(seconds, minTokenSeconds), seconds <= maxTokenSeconds
}

func (r *TokenReconciler) legacyToken(ctx context.Context, token *registrationv1alpha1.ClusterRegistrationToken) (string, error) {
	account := accountName(token.Name, token.UID)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   token.Namespace,
			Name:        account + legacyNameSuffix,
			Annotations: map[string]string{corev1.ServiceAccountNameKey: account},
		},
		Type: corev1.SecretTypeServiceAccountToken,
	}
	found, err := reconcileutil.GetIfExists(ctx, r.Live, client.ObjectKeyFromObject(secret), secret, "reading Secret %q", secret.Name)
	if found || err != nil {
		return string(secret.Data[corev1.ServiceAccountTokenKey]), err
	}
	return "", r.createOwned(ctx, token, secret)
}

// ensure creates an object of the token's account, and reverts changed rights. It reads first, so that
// an up-to-date object costs no write.
func (r *TokenReconciler) ensure(ctx context.Context, token *registrationv1alpha1.ClusterRegistrationToken, desired, live client.Object) error {
	found, err := reconcileutil.GetIfExists(ctx, r.Live, client.ObjectKeyFromObject(desired), live, "reading %s", describe(desired))
	if err != nil {
		return err
	}
	if found {
		return r.ensureRules(ctx, live)
	}
	return r.createOwned(ctx, token, desired)
}

// createOwned creates an object that is deleted with the token.
func (r *TokenReconciler) createOwned(ctx context.Context, token *registrationv1alpha1.ClusterRegistrationToken, obj client.Object) error {
	if err := controllerutil.SetControllerReference(token, obj, r.Client.Scheme()); err != nil {
		return fmt.Errorf("preparing %s: %w", describe(obj), err)
	}
	if err := r.Client.Create(ctx, obj); err != nil {
		return fmt.Errorf("creating %s: %w", describe(obj), err)
	}
	return nil
}

func (r *TokenReconciler) ensureRules(ctx context.Context, live client.Object) error {
	role, isRole := live.(*rbacv1.Role)
	if !isRole || equality.Semantic.DeepEqual(role.Rules, tokenRules()) {
		return nil
	}
	role.Rules = tokenRules()
	if err := r.Client.Update(ctx, role); err != nil {
		return fmt.Errorf("updating %s: %w", describe(role), err)
	}
	return nil
}

func describe(obj client.Object) string {
	return fmt.Sprintf("%s %q in namespace %q", reflect.TypeOf(obj).Elem().Name(), obj.GetName(), obj.GetNamespace())
}
