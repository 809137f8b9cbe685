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

// A hub that went back to an earlier state lacks ManagedServiceAccounts that were made since,
// and nobody has said that they are to go: their accounts are held, with the tokens that
// somebody works with. One that is made again on the hub gets its account as it is.

// holdAccount reports whether the account of a ManagedServiceAccount that the hub has no more
// stays, and says so on it.
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
		r.isHeld(name, retention.Mark{})
		return false, nil
	}
	lost, err := r.isLost(ctx, account)
	if err != nil {
		return false, err
	}
	mark := retention.MarkOn(account)
	if !lost || mark.IsReleased(r.Holds.Released()) {
		r.isHeld(name, retention.Mark{})
		return false, nil
	}
	if !mark.Is() {
		mark = r.Holds.New(r.Clock.Now(), r.Holds.Released())
		metav1.SetMetaDataAnnotation(&account.ObjectMeta, retention.Annotation, mark.Text())
		if err := r.Member.Update(ctx, account); err != nil {
			return false, fmt.Errorf("marking ServiceAccount %s/%s on the member as held: %w", account.Namespace, name, err)
		}
		log.FromContext(ctx).Info("The hub has gone back and does not know a ManagedServiceAccount any more: its account is held", "account", name)
	}
	r.isHeld(name, mark)
	return true, nil
}

func (r *Reconciler) isHeld(name string, mark retention.Mark) {
	objects := 0
	if mark.Is() {
		objects = 1
	}
	r.Holds.Set(retention.ServiceAccounts, name, mark, objects)
}

// isLost reports whether the hub went back behind what asked for an account.
func (r *Reconciler) isLost(ctx context.Context, account *corev1.ServiceAccount) (bool, error) {
	if retention.MarkOn(account).Is() {
		return true, nil
	}
	return r.Epochs.Lost(ctx, retention.NumberOn(account))
}

// beginEpoch has the hub count before an account is made, or made for another
// ManagedServiceAccount than before.
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
		r.isHeld(account.Name, retention.Mark{})
	}
	return nil
}

// largestEpoch is the largest number that an account on the member has.
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
