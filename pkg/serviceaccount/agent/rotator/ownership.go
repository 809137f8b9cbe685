// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rotator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

const (
	// holderLease is the Lease that OCM's agent renews in the namespace of the accounts.
	holderLease = "managed-serviceaccount"
	// holderGone is the age of the Lease from which that agent counts as stopped, as in OCM.
	holderGone = 5 * time.Minute
)

// ownership says to whom a ServiceAccount on the member belongs. Only data on the member counts:
// any user who can create a ManagedServiceAccount on the hub can choose its name.
type ownership int

const (
	// foreign means not created for a ManagedServiceAccount.
	foreign ownership = iota
	// another means created by the agent of a second hub.
	another
	// former means created by this agent for a ManagedServiceAccount that no longer exists.
	former
	// unmarked means that only the label is set, as by other products, or that a Work set the mark.
	unmarked
	// recorded means that another product's agent held the account for this ManagedServiceAccount when
	// this agent recorded it.
	recorded
	// given means that an administrator of the member assigned the account to this
	// ManagedServiceAccount.
	given
	// own means created for this ManagedServiceAccount.
	own
)

// ownershipOf determines the owner of a ServiceAccount from its metadata. Label or annotation alone
// is enough, because a user may have removed the other.
func ownershipOf(account *corev1.ServiceAccount, agent string, uid types.UID) ownership {
	madeFor, marked := account.Annotations[authenticationv1beta1.AnnotationMadeFor]
	by, of, _ := strings.Cut(madeFor, "/")
	// Accounts that the agent creates have no owner reference; those of a Work do.
	placed := len(account.OwnerReferences) > 0
	switch {
	case marked && by == agent && types.UID(of) == uid && !placed:
		return own
	case uid != "" && annotationOf(account, authenticationv1beta1.AnnotationAssignedTo, authenticationv1beta1.DeprecatedAnnotationGivenTo) == string(uid):
		return given
	case marked && by != agent:
		return another
	case marked && types.UID(of) != uid:
		return former
	case annotationOf(account, authenticationv1beta1.AnnotationPendingAdoption, authenticationv1beta1.DeprecatedAnnotationHeldFor) == pendingAdoption(account, agent, uid):
		return recorded
	case isManaged(account):
		return unmarked
	}
	return foreign
}

// annotationOf returns an annotation, or the one with the previous key if the account lacks the new
// key. Remove after the next release.
func annotationOf(account *corev1.ServiceAccount, key, previous string) string {
	if value, ok := account.Annotations[key]; ok {
		return value
	}
	return account.Annotations[previous]
}

// pendingAdoption is the value of AnnotationPendingAdoption. It contains the UID of the account,
// since an account that is exported and re-created keeps its annotations.
func pendingAdoption(account *corev1.ServiceAccount, agent string, uid types.UID) string {
	return agent + "/" + string(uid) + "/" + string(account.UID)
}

// facts about an account on the member and its former holder; those that ownership makes irrelevant are
// not read.
type facts struct {
	// lost is set if the hub was restored to a state without the ManagedServiceAccount of the account.
	lost bool
	// adopt is the agent's configuration.
	adopt bool
	// holderRuns is set if the other product's agent runs.
	holderRuns bool
	rights     rights
}

// rights are the rights of an account on the member, as far as they matter for a takeover.
type rights int

const (
	// unknown means that the agent has no right to find out.
	unknown rights = iota
	ordinary
	// administrator means cluster-admin, for the cluster or for a namespace.
	administrator
)

// decision is what the agent does with an account for the requesting ManagedServiceAccount.
type decision int

const (
	// refuse leaves the account unchanged until a user acts on the member.
	refuse decision = iota
	// record records that another product's agent holds the account, and waits until that agent stops.
	record
	// await waits until that agent stops.
	await
	// take makes this agent the owner of the account, which another product's agent held.
	take
	// replace deletes the account and creates a new one, which invalidates the earlier tokens.
	replace
	// use keeps the account and its tokens.
	use
)

// decideAccount decides whether a ManagedServiceAccount can have an account that exists on the member.
func decideAccount(whose ownership, f facts) decision {
	switch {
	case whose == own, whose == given, whose == former && f.lost:
		return use
	case whose == former:
		return replace
	case whose == recorded && f.holderRuns:
		return await
	case whose == recorded && f.rights == ordinary:
		return take
	case whose == unmarked && f.adopt && f.holderRuns:
		return record
	}
	return refuse
}

// refusal says why an account is not taken over, and how an administrator of the member can assign
// it.
func refusal(account *corev1.ServiceAccount, uid types.UID, whose ownership, may rights) string {
	why := "was not created for this ManagedServiceAccount"
	switch {
	case whose == another:
		return fmt.Sprintf("ServiceAccount %s/%s on the member belongs to an agent in another namespace: give each agent of a member its own --account-namespace",
			account.Namespace, account.Name)
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

// factsOf reads the facts for decideAccount.
func (r *Reconciler) factsOf(ctx context.Context, onMember *corev1.ServiceAccount, whose ownership) (facts, error) {
	f, err := facts{adopt: r.Adopt}, error(nil)
	if whose == former {
		f.lost, err = r.isLost(ctx, onMember)
		return f, err
	}
	if whose == recorded || whose == unmarked && r.Adopt {
		if f.holderRuns, err = r.holderRuns(ctx); err != nil {
			return f, err
		}
	}
	if whose == recorded && !f.holderRuns {
		f.rights, err = r.rightsOf(ctx, onMember)
	}
	return f, err
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
		return unknown, fmt.Errorf("reviewing the rights of ServiceAccount %s/%s on the member: %w", account.Namespace, account.Name, err)
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
			return unknown, fmt.Errorf("listing bindings of ServiceAccount %s/%s on the member: %w", account.Namespace, account.Name, err)
		}
	}
	if slices.ContainsFunc(everywhere.Items, func(b rbacv1.ClusterRoleBinding) bool {
		return bindsAdministrator(b.RoleRef, b.Subjects, account.Namespace, account.Name)
	}) || slices.ContainsFunc(somewhere.Items, func(b rbacv1.RoleBinding) bool {
		return bindsAdministrator(b.RoleRef, b.Subjects, account.Namespace, account.Name)
	}) {
		return administrator, nil
	}
	return ordinary, nil
}

// clusterAdmin is the ClusterRole that Kubernetes creates.
const clusterAdmin = "cluster-admin"

// bindsAdministrator reports whether a binding grants an account all rights, for the cluster or a
// namespace, directly or by a group.
func bindsAdministrator(role rbacv1.RoleRef, subjects []rbacv1.Subject, namespace, name string) bool {
	if role.Kind != "ClusterRole" || role.Name != clusterAdmin {
		return false
	}
	return slices.ContainsFunc(subjects, func(subject rbacv1.Subject) bool {
		switch subject.Kind {
		case rbacv1.ServiceAccountKind:
			return subject.Namespace == namespace && subject.Name == name
		case rbacv1.UserKind:
			return subject.Name == authenticationv1beta1.UsernameIn(namespace, name)
		case rbacv1.GroupKind:
			return slices.Contains(groupsOf(namespace), subject.Name)
		}
		return false
	})
}

// groupsOf returns the groups of all accounts in a namespace.
func groupsOf(namespace string) []string {
	return []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"}
}
