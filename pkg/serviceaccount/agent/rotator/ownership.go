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

// ownership is whose a ServiceAccount on the member is. Only what is written on the
// member tells: whoever makes a ManagedServiceAccount on the hub chooses its name.
type ownership int

const (
	// foreign was not made for a ManagedServiceAccount.
	foreign ownership = iota
	// another agent's: this member belongs to a second hub.
	another
	// former is this agent's, for a ManagedServiceAccount that is gone.
	former
	// unmarked has the label only, as other products write it, or a mark that a Work
	// has brought.
	unmarked
	// held was held by another product's agent for this very ManagedServiceAccount when
	// this agent looked.
	held
	// given is this very ManagedServiceAccount's because an administrator of the member
	// says so.
	given
	// own was made for this very ManagedServiceAccount.
	own
)

// ownershipOf reads what a ServiceAccount says of itself. Label or annotation may
// have been taken off by somebody: either one is enough to know it again.
func ownershipOf(account *corev1.ServiceAccount, agent string, uid types.UID) ownership {
	madeFor, marked := account.Annotations[authenticationv1beta1.AnnotationMadeFor]
	by, of, _ := strings.Cut(madeFor, "/")
	// Nothing owns what the agent makes: what a Work brings has an owner.
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
		return held
	case isManaged(account):
		return unmarked
	}
	return foreign
}

// annotationOf returns an annotation, or that with its previous key if the account has none with
// the new one. Remove after the next release.
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

// rights is what the member allows an account, as far as a takeover has to know.
type rights int

const (
	// unknown is what the agent may not look at.
	unknown rights = iota
	ordinary
	// administrator is cluster-admin, on the cluster or in a namespace of it.
	administrator
)

// takeover is what is done about an account that was not made for the
// ManagedServiceAccount that asks for it.
type takeover int

const (
	// refuse leaves the account alone until somebody acts on the member.
	refuse takeover = iota
	// record notes that the former agent holds the account, and waits for its end.
	record
	// await is for the end of the former agent.
	await
	// take makes the account this agent's.
	take
)

// decideTakeover says whether an account may be taken over. adopt is whether the agent
// was asked to, holderRuns whether the agent of the other product runs.
func decideTakeover(whose ownership, adopt, holderRuns bool, may rights) takeover {
	switch {
	case whose == held && holderRuns:
		return await
	case whose == held && may == ordinary:
		return take
	case whose == unmarked && adopt && holderRuns:
		return record
	}
	return refuse
}

// clusterAdmin is the ClusterRole that Kubernetes itself makes.
const clusterAdmin = "cluster-admin"

// bindsAdministrator reports whether a binding gives an account all rights, on the
// cluster or in a namespace, by its name or by a group that it is in.
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

// groupsOf are the groups of every account in a namespace.
func groupsOf(namespace string) []string {
	return []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"}
}
