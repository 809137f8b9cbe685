// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rotator

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"fleetgate.io/fleetgate/pkg/work/retention"
)

// A hub that was restored to an earlier state lacks newer ManagedServiceAccounts. No user requested to
// remove them, so the agent retains their accounts, whose tokens are in use. A
// ManagedServiceAccount that is re-created on the hub adopts its account unchanged.

// releaseAccount deletes the account of a ManagedServiceAccount that no longer exists, unless it
// retains the account.
func (r *Reconciler) releaseAccount(ctx context.Context, name string) (retained bool, err error) {
	if r.Epochs == nil {
		return false, r.removeAccount(ctx, name)
	}
	account, found, err := r.readAccount(ctx, name)
	if err != nil {
		return false, err
	}
	if !found || !r.isFormer(account) {
		r.setRetained(name, retention.Mark{})
		return false, nil
	}
	mark, err := r.retain(ctx, account)
	if err != nil {
		return false, err
	}
	r.setRetained(name, mark)
	if mark.Is() {
		return true, nil
	}
	return false, r.deleteAccount(ctx, account)
}

// retain marks an account that a restored hub lacks. It returns no mark if the account is not retained.
func (r *Reconciler) retain(ctx context.Context, account *corev1.ServiceAccount) (retention.Mark, error) {
	lost, err := r.isLost(ctx, account)
	mark := retention.MarkOn(account)
	if err != nil || !lost || mark.IsReleased(r.Retention.Released()) {
		return retention.Mark{}, err
	}
	if mark.Is() {
		return mark, nil
	}
	mark = r.Retention.New(r.Clock.Now(), r.Retention.Released())
	metav1.SetMetaDataAnnotation(&account.ObjectMeta, retention.Annotation, mark.Text())
	if err := r.Member.Update(ctx, account); err != nil {
		return retention.Mark{}, fmt.Errorf("marking ServiceAccount %s/%s on the member as retained: %w", account.Namespace, account.Name, err)
	}
	log.FromContext(ctx).Info("The hub was restored and lacks a ManagedServiceAccount; retaining its account", "account", account.Name)
	return mark, nil
}

func (r *Reconciler) setRetained(name string, mark retention.Mark) {
	objects := 0
	if mark.Is() {
		objects = 1
	}
	r.Retention.Set(retention.ServiceAccounts, name, mark, objects)
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
	if r.Retention != nil {
		r.setRetained(account.Name, retention.Mark{})
	}
	return nil
}

// largestEpoch returns the largest number on the accounts of the member.
func (r *Reconciler) largestEpoch(ctx context.Context) (int64, error) {
	accounts, err := r.managedAccounts(ctx)
	if err != nil {
		return 0, err
	}
	largest := int64(0)
	for i := range accounts {
		largest = max(largest, retention.NumberOn(&accounts[i]))
	}
	return largest, nil
}
