// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rotator

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

const (
	// holderLease is the Lease that OCM's agent renews in the namespace of the accounts.
	holderLease = "managed-serviceaccount"
	// holderGone is the age of the Lease from which that agent counts as stopped, as in OCM.
	holderGone = 5 * time.Minute
)

// mayTakeOver returns nil if the ManagedServiceAccount can use an account that was not created for
// it, otherwise a mistake with the remedy.
func (r *Reconciler) mayTakeOver(ctx context.Context, onMember *corev1.ServiceAccount, account *authenticationv1beta1.ManagedServiceAccount, whose ownership) error {
	if whose == another {
		return mistake(fmt.Sprintf("ServiceAccount %s/%s on the member belongs to an agent in another namespace: give each agent of a member its own --account-namespace",
			onMember.Namespace, onMember.Name))
	}
	holderRuns, may, err := r.circumstances(ctx, onMember, whose)
	if err != nil {
		return err
	}
	switch decideTakeover(whose, r.Adopt, holderRuns, may) {
	case take:
		log.FromContext(ctx).Info("Took over the account of another product", "account", onMember.Name)
		return nil
	case record:
		metav1.SetMetaDataAnnotation(&onMember.ObjectMeta, authenticationv1beta1.AnnotationPendingAdoption, pendingAdoption(onMember, r.AgentNamespace, account.UID))
		if err := r.Member.Update(ctx, onMember); err != nil {
			return fmt.Errorf("noting on ServiceAccount %s/%s on the member who holds it: %w", onMember.Namespace, onMember.Name, err)
		}
		fallthrough
	case await:
		return mistake(fmt.Sprintf("ServiceAccount %s/%s on the member is held by another product's agent, which is running (Lease %s): it is taken over when that agent is stopped",
			onMember.Namespace, onMember.Name, holderLease))
	}
	return mistake(refusal(onMember, account.UID, whose, may))
}

// refusal says why an account is not taken over, and how an administrator of the member can assign
// it.
func refusal(account *corev1.ServiceAccount, uid types.UID, whose ownership, may rights) string {
	why := "was not made for this ManagedServiceAccount"
	switch {
	case whose == recorded && may == administrator:
		why = "was another product's, and is bound to cluster-admin"
	case whose == recorded && may == unknown:
		why = "was another product's, and the agent cannot check whether it is bound to cluster-admin (it lacks list on clusterrolebindings and rolebindings)"
	case whose == foreign:
		why = fmt.Sprintf("is on the member without the label %s=%s, so it was not made for a ManagedServiceAccount",
			authenticationv1beta1.LabelManagedServiceAccount, authenticationv1beta1.LabelManagedServiceAccountValue)
	}
	return fmt.Sprintf("ServiceAccount %s/%s %s: delete it, rename the ManagedServiceAccount, or have an administrator of the member assign it: kubectl --namespace=%s annotate serviceaccount %s %s=%s",
		account.Namespace, account.Name, why, account.Namespace, account.Name, authenticationv1beta1.AnnotationAssignedTo, uid)
}

// circumstances reads the facts for the decision from the member.
func (r *Reconciler) circumstances(ctx context.Context, onMember *corev1.ServiceAccount, whose ownership) (holderRuns bool, may rights, err error) {
	if whose == recorded || whose == unmarked && r.Adopt {
		if holderRuns, err = r.holderRuns(ctx); err != nil {
			return false, unknown, err
		}
	}
	if whose == recorded && !holderRuns {
		may, err = r.rightsOf(ctx, onMember)
	}
	return holderRuns, may, err
}

// holderRuns reports whether the other product's agent is running.
func (r *Reconciler) holderRuns(ctx context.Context) (bool, error) {
	lease := &coordinationv1.Lease{}
	key := client.ObjectKey{Namespace: r.AccountNamespace, Name: holderLease}
	if found, err := reconcileutil.GetIfExists(ctx, r.Member, key, lease, "reading Lease %s/%s on the member", r.AccountNamespace, holderLease); !found {
		return false, err
	}
	renewed := lease.Spec.RenewTime
	return renewed != nil && r.Clock.Since(renewed.Time) < holderGone, nil
}

// rightsOf determines whether the account is an administrator of the member, or of a namespace.
func (r *Reconciler) rightsOf(ctx context.Context, account *corev1.ServiceAccount) (rights, error) {
	everything := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: authenticationv1beta1.UsernameIn(account.Namespace, account.Name), Groups: groupsOf(account.Namespace),
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Resource: "*"},
	}}
	if err := r.Member.Create(ctx, everything); err != nil {
		return unknown, fmt.Errorf("asking the member what ServiceAccount %s/%s may do: %w", account.Namespace, account.Name, err)
	}
	if everything.Status.Allowed {
		return administrator, nil
	}
	var everywhere rbacv1.ClusterRoleBindingList
	var somewhere rbacv1.RoleBindingList
	for _, list := range []client.ObjectList{&everywhere, &somewhere} {
		err := r.Member.List(ctx, list)
		if apierrors.IsForbidden(err) {
			return unknown, nil
		}
		if err != nil {
			return unknown, fmt.Errorf("looking for bindings of ServiceAccount %s/%s on the member: %w", account.Namespace, account.Name, err)
		}
	}
	for _, binding := range everywhere.Items {
		if bindsAdministrator(binding.RoleRef, binding.Subjects, account.Namespace, account.Name) {
			return administrator, nil
		}
	}
	for _, binding := range somewhere.Items {
		if bindsAdministrator(binding.RoleRef, binding.Subjects, account.Namespace, account.Name) {
			return administrator, nil
		}
	}
	return ordinary, nil
}
