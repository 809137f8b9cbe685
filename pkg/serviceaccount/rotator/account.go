// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rotator

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	msav1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
)

// ensureAccount returns the ServiceAccount on the member, made if it was missing.
func (r *Reconciler) ensureAccount(ctx context.Context, name string) (*corev1.ServiceAccount, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: msav1beta1.AccountNamespace, Name: name}}
	err := r.Member.Get(ctx, client.ObjectKeyFromObject(account), account)
	if apierrors.IsNotFound(err) {
		return account, r.makeAccount(ctx, account)
	}
	if err != nil {
		return nil, fmt.Errorf("reading ServiceAccount %s/%s on the member: %w", account.Namespace, name, err)
	}
	if !isManaged(account) {
		return nil, mistake(fmt.Sprintf("ServiceAccount %s/%s is on the member without the label %s=%s, so it was not made for a ManagedServiceAccount: delete it, or rename the ManagedServiceAccount",
			account.Namespace, name, msav1beta1.LabelManagedServiceAccount, msav1beta1.LabelManagedServiceAccountValue))
	}
	return account, nil
}

// makeAccount makes the namespace too if it is missing.
func (r *Reconciler) makeAccount(ctx context.Context, account *corev1.ServiceAccount) error {
	account.Labels = map[string]string{msav1beta1.LabelManagedServiceAccount: msav1beta1.LabelManagedServiceAccountValue}
	err := r.Member.Create(ctx, account)
	if apierrors.IsNotFound(err) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: account.Namespace}}
		if err := r.Member.Create(ctx, namespace); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("making namespace %s on the member: %w", namespace.Name, err)
		}
		err = r.Member.Create(ctx, account)
	}
	if err != nil {
		return fmt.Errorf("making ServiceAccount %s/%s on the member: %w", account.Namespace, account.Name, err)
	}
	log.FromContext(ctx).Info("Made the account on the member", "account", account.Name)
	return nil
}

// removeAccount takes the account off the member; its tokens die with it.
func (r *Reconciler) removeAccount(ctx context.Context, name string) error {
	account := &corev1.ServiceAccount{}
	err := r.Member.Get(ctx, client.ObjectKey{Namespace: msav1beta1.AccountNamespace, Name: name}, account)
	if apierrors.IsNotFound(err) || err == nil && !isManaged(account) {
		return nil
	}
	if err == nil {
		err = r.Member.Delete(ctx, account, client.Preconditions{UID: &account.UID})
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing ServiceAccount %s/%s from the member: %w", msav1beta1.AccountNamespace, name, err)
	}
	log.FromContext(ctx).Info("Removed the account from the member", "account", name)
	return nil
}
