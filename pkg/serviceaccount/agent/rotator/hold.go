// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rotator

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

// A hub that was restored to an earlier state lacks newer ManagedServiceAccounts. No user asked to
// remove them, so the agent retains their accounts, whose tokens are in use. A
// ManagedServiceAccount that is re-created on the hub adopts its account unchanged.

// holdAccount decides whether the account of a ManagedServiceAccount that no longer exists is
// retained, and marks it.
func (r *Reconciler) holdAccount(ctx context.Context, name string) (bool, error) {
	if r.Epochs == nil {
		return false, nil
	}
	account := &corev1.ServiceAccount{}
	err := r.Member.Get(ctx, client.ObjectKey{Namespace: r.AccountNamespace, Name: name}, account)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("reading ServiceAccount %s/%s on the member: %w", r.AccountNamespace, name, err)
	}
	if apierrors.IsNotFound(err) || ownershipOf(account, r.AgentNamespace, "") != former {
		r.setRetained(name, retention.Mark{})
		return false, nil
	}
	lost, err := r.isLost(ctx, account)
	if err != nil {
		return false, err
	}
	mark := retention.MarkOn(account)
	if !lost || mark.IsReleased(r.Holds.Released()) {
		r.setRetained(name, retention.Mark{})
		return false, nil
	}
	if !mark.Is() {
		mark = r.Holds.New(r.Clock.Now(), r.Holds.Released())
		metav1.SetMetaDataAnnotation(&account.ObjectMeta, retention.Annotation, mark.Text())
		if err := r.Member.Update(ctx, account); err != nil {
			return false, fmt.Errorf("marking ServiceAccount %s/%s on the member as held: %w", account.Namespace, name, err)
		}
		log.FromContext(ctx).Info("The hub was restored and lacks a ManagedServiceAccount; retaining its account", "account", name)
	}
	r.setRetained(name, mark)
	return true, nil
}

func (r *Reconciler) setRetained(name string, mark retention.Mark) {
	objects := 0
	if mark.Is() {
		objects = 1
	}
	r.Holds.Set(retention.ServiceAccounts, name, mark, objects)
}

// isLost reports whether the hub was restored to a state before the request for the account.
func (r *Reconciler) isLost(ctx context.Context, account *corev1.ServiceAccount) (bool, error) {
	if retention.MarkOn(account).Is() {
		return true, nil
	}
	return r.Epochs.Lost(ctx, retention.NumberOn(account))
}

// beginEpoch increments the hub's counter before an account is created or assigned to another
// ManagedServiceAccount.
func (r *Reconciler) beginEpoch(ctx context.Context, account *corev1.ServiceAccount) error {
	number, err := r.Epochs.Begin(ctx)
	if err != nil {
		return err
	}
	delete(account.Annotations, retention.Annotation)
	if number > 0 {
		metav1.SetMetaDataAnnotation(&account.ObjectMeta, retention.EpochAnnotation, strconv.FormatInt(number, 10))
	}
	if r.Holds != nil {
		r.setRetained(account.Name, retention.Mark{})
	}
	return nil
}

// largestEpoch returns the largest number on the accounts of the member.
func (r *Reconciler) largestEpoch(ctx context.Context) (int64, error) {
	var accounts corev1.ServiceAccountList
	labelled := client.MatchingLabels{authenticationv1beta1.LabelManagedServiceAccount: authenticationv1beta1.LabelManagedServiceAccountValue}
	if err := r.Member.List(ctx, &accounts, client.InNamespace(r.AccountNamespace), labelled); err != nil {
		return 0, fmt.Errorf("listing ServiceAccounts in namespace %s on the member: %w", r.AccountNamespace, err)
	}
	largest := int64(0)
	for i := range accounts.Items {
		largest = max(largest, retention.NumberOn(&accounts.Items[i]))
	}
	return largest, nil
}
