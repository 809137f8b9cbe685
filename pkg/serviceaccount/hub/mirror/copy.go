// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

// copyToken writes the copy of the mirror's token. While the mirror has none, an earlier copy stays. It
// returns why if another Secret has the name.
func (r *Reconciler) copyToken(ctx context.Context, mirror, account *authenticationv1beta1.ManagedServiceAccount) (why string, err error) {
	token := &corev1.Secret{}
	if found, err := reconcileutil.GetIfExists(ctx, r.Client, client.ObjectKeyFromObject(mirror), token, "reading Secret %s/%s", mirror.Namespace, mirror.Name); !found {
		return "", err // the mirror's status will change
	}
	if !isOf(token, mirror) {
		return "", nil // another client's Secret has the name and must not be copied; the mirror's status reports it
	}
	present, err := r.presentCopy(ctx, account)
	if err != nil {
		return "", err
	}
	if !mayWrite(present, account) {
		return fmt.Sprintf("Secret %s/%s was not created for this ManagedServiceAccount: delete it, or choose another name", present.Namespace, present.Name), nil
	}
	wanted := desiredCopy(present, account, token.Data)
	switch {
	case present.ResourceVersion == "":
		err = r.Client.Create(ctx, wanted)
	case equality.Semantic.DeepEqual(present, wanted):
		return "", nil
	default:
		err = r.Client.Update(ctx, wanted)
	}
	if err != nil {
		return "", fmt.Errorf("writing Secret %s/%s: %w", wanted.Namespace, wanted.Name, err)
	}
	return "", nil
}

// presentCopy returns the copy, or an empty Secret without a resourceVersion.
func (r *Reconciler) presentCopy(ctx context.Context, account *authenticationv1beta1.ManagedServiceAccount) (*corev1.Secret, error) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name}}
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(secret), secret); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading Secret %s/%s: %w", account.Namespace, account.Name, err)
	}
	return secret, nil
}

// removeCopy deletes the Secret if it is the copy.
func (r *Reconciler) removeCopy(ctx context.Context, account *authenticationv1beta1.ManagedServiceAccount) error {
	secret, err := r.presentCopy(ctx, account)
	if err != nil {
		return err
	}
	if secret.ResourceVersion == "" || !mayWrite(secret, account) {
		return nil
	}
	if err := r.Client.Delete(ctx, secret, client.Preconditions{UID: &secret.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return nil
}
