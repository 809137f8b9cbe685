// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rotator

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
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

// rights are the rights of an account on the member, as far as they matter for a takeover.
type rights int

const (
	// unknown means that the agent has no right to find out.
	unknown rights = iota
	ordinary
	// administrator means cluster-admin, for the cluster or for a namespace.
	administrator
)

// takeover is the decision about an account that was not created for the requesting
// ManagedServiceAccount.
type takeover int

const (
	// refuse leaves the account unchanged until a user acts on the member.
	refuse takeover = iota
	// record records that the former agent holds the account, and waits until that agent stops.
	record
	// await waits until the former agent stops.
	await
	// take makes this agent the owner of the account.
	take
)

// decideTakeover decides whether to take over an account. adopt is the agent's configuration;
// holderRuns reports whether the other product's agent runs.
func decideTakeover(whose ownership, adopt, holderRuns bool, may rights) takeover {
	switch {
	case whose == recorded && holderRuns:
		return await
	case whose == recorded && may == ordinary:
		return take
	case whose == unmarked && adopt && holderRuns:
		return record
	}
	return refuse
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
