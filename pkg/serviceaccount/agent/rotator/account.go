// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rotator

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

// ensureAccount ensures the ServiceAccount on the member and returns it.
func (r *Reconciler) ensureAccount(ctx context.Context, account *authenticationv1beta1.ManagedServiceAccount) (*corev1.ServiceAccount, error) {
	onMember := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: r.AccountNamespace, Name: account.Name}}
	err := r.Member.Get(ctx, client.ObjectKeyFromObject(onMember), onMember)
	if apierrors.IsNotFound(err) {
		return onMember, r.makeAccount(ctx, onMember, account.UID)
	}
	if err != nil {
		return nil, fmt.Errorf("reading ServiceAccount %s/%s on the member: %w", onMember.Namespace, account.Name, err)
	}
	switch whose := ownershipOf(onMember, r.AgentNamespace, account.UID); whose {
	case own, given:
	case former:
		lost, err := r.isLost(ctx, onMember)
		if err != nil {
			return nil, err
		}
		if !lost {
			return r.replaceAccount(ctx, onMember, account)
		}
	default:
		if err := r.mayTakeOver(ctx, onMember, account, whose); err != nil {
			return nil, err
		}
	}
	changed, err := r.mark(ctx, onMember, account.UID)
	if err != nil {
		return nil, err
	}
	if changed {
		if err := r.Member.Update(ctx, onMember); err != nil {
			return nil, fmt.Errorf("marking ServiceAccount %s/%s on the member: %w", onMember.Namespace, account.Name, err)
		}
	}
	return onMember, nil
}

// mark sets the label and the annotation with the owner on the account, and reports whether they
// changed. It also removes the mark of a retained account.
func (r *Reconciler) mark(ctx context.Context, onMember *corev1.ServiceAccount, uid types.UID) (changed bool, err error) {
	madeFor := r.AgentNamespace + "/" + string(uid)
	if isManaged(onMember) && onMember.Annotations[authenticationv1beta1.AnnotationMadeFor] == madeFor && !retention.MarkOn(onMember).Is() {
		return false, nil
	}
	if err := r.beginEpoch(ctx, onMember); err != nil {
		return false, err
	}
	metav1.SetMetaDataLabel(&onMember.ObjectMeta, authenticationv1beta1.LabelManagedServiceAccount, authenticationv1beta1.LabelManagedServiceAccountValue)
	metav1.SetMetaDataAnnotation(&onMember.ObjectMeta, authenticationv1beta1.AnnotationMadeFor, madeFor)
	return true, nil
}

// replaceAccount deletes an earlier account of the same name and creates a new one, which
// invalidates the earlier tokens.
func (r *Reconciler) replaceAccount(ctx context.Context, earlier *corev1.ServiceAccount, account *authenticationv1beta1.ManagedServiceAccount) (*corev1.ServiceAccount, error) {
	if err := r.deleteAccount(ctx, earlier); err != nil {
		return nil, err
	}
	onMember := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: r.AccountNamespace, Name: account.Name}}
	return onMember, r.makeAccount(ctx, onMember, account.UID)
}

// makeAccount creates the account for the ManagedServiceAccount with this UID, and the namespace if
// it does not exist.
func (r *Reconciler) makeAccount(ctx context.Context, account *corev1.ServiceAccount, uid types.UID) error {
	if _, err := r.mark(ctx, account, uid); err != nil {
		return err
	}
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
	log.FromContext(ctx).Info("Created the account on the member", "account", account.Name)
	return nil
}

// removeAccount deletes the account if this agent created it. That invalidates its tokens.
func (r *Reconciler) removeAccount(ctx context.Context, name string) error {
	account := &corev1.ServiceAccount{}
	key := client.ObjectKey{Namespace: r.AccountNamespace, Name: name}
	if found, err := reconcileutil.GetIfExists(ctx, r.Member, key, account, "reading ServiceAccount %s/%s on the member", r.AccountNamespace, name); !found {
		return err
	}
	if ownershipOf(account, r.AgentNamespace, "") != former {
		return nil
	}
	return r.deleteAccount(ctx, account)
}

func (r *Reconciler) deleteAccount(ctx context.Context, account *corev1.ServiceAccount) error {
	if err := r.Member.Delete(ctx, account, client.Preconditions{UID: &account.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing ServiceAccount %s/%s from the member: %w", account.Namespace, account.Name, err)
	}
	log.FromContext(ctx).Info("Deleted the account from the member", "account", account.Name)
	return nil
}

// Withdraw deletes all accounts on the member that the agent created for ManagedServiceAccounts,
// after the hub removed the member. It must not run concurrently with reconciles. It uses only
// Member and the namespaces.
func (r *Reconciler) Withdraw(ctx context.Context) error {
	var accounts corev1.ServiceAccountList
	labelled := client.MatchingLabels{authenticationv1beta1.LabelManagedServiceAccount: authenticationv1beta1.LabelManagedServiceAccountValue}
	if err := r.Member.List(ctx, &accounts, client.InNamespace(r.AccountNamespace), labelled); err != nil {
		return fmt.Errorf("listing ServiceAccounts in namespace %s on the member: %w", r.AccountNamespace, err)
	}
	var failures []error
	for i := range accounts.Items {
		if ownershipOf(&accounts.Items[i], r.AgentNamespace, "") == former {
			failures = append(failures, r.deleteAccount(ctx, &accounts.Items[i]))
		}
	}
	return errors.Join(failures...)
}
