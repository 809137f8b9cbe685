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

// ensureAccount returns the ServiceAccount on the member for a ManagedServiceAccount, or a mistake with
// the remedy if the ManagedServiceAccount cannot have the account of its name.
func (r *Reconciler) ensureAccount(ctx context.Context, account *authenticationv1beta1.ManagedServiceAccount) (*corev1.ServiceAccount, error) {
	onMember, found, err := r.readAccount(ctx, account.Name)
	if err != nil {
		return nil, err
	}
	if !found {
		return onMember, r.makeAccount(ctx, onMember, account.UID)
	}
	whose := ownershipOf(onMember, r.AgentNamespace, account.UID)
	f, err := r.factsOf(ctx, onMember, whose)
	if err != nil {
		return nil, err
	}
	switch decideAccount(whose, f) {
	case refuse:
		return nil, mistake(refusal(onMember, account.UID, whose, f.rights))
	case record:
		metav1.SetMetaDataAnnotation(&onMember.ObjectMeta, authenticationv1beta1.AnnotationPendingAdoption, pendingAdoption(onMember, r.AgentNamespace, account.UID))
		if err := r.Member.Update(ctx, onMember); err != nil {
			return nil, fmt.Errorf("recording the holder of ServiceAccount %s/%s on the member: %w", onMember.Namespace, onMember.Name, err)
		}
		fallthrough
	case await:
		return nil, mistake(fmt.Sprintf("ServiceAccount %s/%s on the member is managed by another product's agent, which is running (Lease %s): it is adopted when that agent is stopped",
			onMember.Namespace, onMember.Name, holderLease))
	case replace:
		return r.replaceAccount(ctx, onMember, account)
	case take:
		log.FromContext(ctx).Info("Took over the account of another product", "account", onMember.Name)
	case use:
	}
	changed, err := r.mark(ctx, onMember, account.UID)
	if err != nil || !changed {
		return onMember, err
	}
	if err := r.Member.Update(ctx, onMember); err != nil {
		return nil, fmt.Errorf("marking ServiceAccount %s/%s on the member: %w", onMember.Namespace, onMember.Name, err)
	}
	return onMember, nil
}

// readAccount reads the account on the member. If it does not exist, the result has only its name.
func (r *Reconciler) readAccount(ctx context.Context, name string) (account *corev1.ServiceAccount, found bool, err error) {
	account = &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: r.AccountNamespace, Name: name}}
	found, err = reconcileutil.GetIfExists(ctx, r.Member, client.ObjectKeyFromObject(account), account, "reading ServiceAccount %s/%s on the member", r.AccountNamespace, name)
	return account, found, err
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
	account, found, err := r.readAccount(ctx, name)
	if !found || !r.isFormer(account) {
		return err
	}
	return r.deleteAccount(ctx, account)
}

// isFormer reports whether this agent created an account that no ManagedServiceAccount requests.
func (r *Reconciler) isFormer(account *corev1.ServiceAccount) bool {
	return ownershipOf(account, r.AgentNamespace, "") == former
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
	accounts, err := r.managedAccounts(ctx)
	if err != nil {
		return err
	}
	var failures []error
	for i := range accounts {
		if r.isFormer(&accounts[i]) {
			failures = append(failures, r.deleteAccount(ctx, &accounts[i]))
		}
	}
	return errors.Join(failures...)
}

// managedAccounts lists the accounts on the member that have the label.
func (r *Reconciler) managedAccounts(ctx context.Context) ([]corev1.ServiceAccount, error) {
	var accounts corev1.ServiceAccountList
	labelled := client.MatchingLabels{authenticationv1beta1.LabelManagedServiceAccount: authenticationv1beta1.LabelManagedServiceAccountValue}
	if err := r.Member.List(ctx, &accounts, client.InNamespace(r.AccountNamespace), labelled); err != nil {
		return nil, fmt.Errorf("listing ServiceAccounts in namespace %s on the member: %w", r.AccountNamespace, err)
	}
	return accounts.Items, nil
}
