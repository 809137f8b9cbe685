// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/identity"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// ClusterRoleName is the name of the ClusterRole, and of its binding, with the cluster-scoped rights of
// one member's identity.
func ClusterRoleName(member string) string { return "fleetgate-member-" + member }

// clusterRights says whether a member's agent needs rights outside of its namespace.
type clusterRights int

const (
	// rightsUnknown: no agent has reported, or the agent has not yet shown that it works without these
	// rights, or it is another product's.
	rightsUnknown clusterRights = iota
	rightsNeeded
	rightsUseless
)

// clusterRightsOf reads the agent's report. An agent reports all its properties at the same time, so
// older ones are from a previous agent.
func clusterRightsOf(reported map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue) clusterRights {
	version, ours := reported[clusterv1beta1.PropertyAgentVersion]
	if !ours {
		return rightsUnknown
	}
	right, found := reported[clusterv1beta1.PropertyTunnelRight]
	switch {
	case !found || right.ObservationTime.Before(&version.ObservationTime):
		return rightsNeeded
	case right.Value == clusterv1beta1.TunnelRightNamespace:
		return rightsUseless
	}
	return rightsUnknown
}

// QuotaName is the name of the ResourceQuota in a member's namespace.
const QuotaName = "fleetgate-agent"

// hardLimits limit the objects in a member's namespace. A member has a Secret for each of its
// ManagedServiceAccounts, one ConfigMap that the hub's Kubernetes creates, and one or two Leases.
func hardLimits() corev1.ResourceList {
	return corev1.ResourceList{
		"count/secrets":                    resource.MustParse("2000"),
		"count/configmaps":                 resource.MustParse("100"),
		"count/leases.coordination.k8s.io": resource.MustParse("100"),
	}
}

// refuseName rejects a member's name that is not valid in its namespace's name. The limit results from
// the 63 characters of a namespace's name.
func refuseName(seats identity.Seats, member string) *refusal.Refusal {
	if len(member) > seats.MaxName() {
		return refusal.New(clusterv1beta1.ReasonMemberClusterNameTooLong,
			"the name has %d characters, a member's name may have at most %d: delete this MemberCluster and create it with a shorter name",
			len(member), seats.MaxName())
	}
	if len(validation.IsDNS1123Label(member)) > 0 {
		return refusal.New(ReasonNameInvalid,
			"the name must be a DNS label (lower-case letters, digits and '-') since it becomes part of a namespace's name: "+
				"delete this MemberCluster and create it with another name")
	}
	return nil
}

// refuseIdentity rejects an identity to which no rights can be granted, by the rules for the subjects
// of a RoleBinding.
func refuseIdentity(identity rbacv1.Subject) *refusal.Refusal {
	invalid := func(sentence string) *refusal.Refusal { return refusal.New(ReasonIdentityInvalid, "%s", sentence) }
	switch {
	case identity.Kind != rbacv1.UserKind && identity.Kind != rbacv1.GroupKind && identity.Kind != rbacv1.ServiceAccountKind:
		return invalid(fmt.Sprintf("spec.identity.kind is %q: make it User, Group or ServiceAccount", identity.Kind))
	case identity.Name == "":
		return invalid("spec.identity.name is empty: name the user, group or service account of the member's agent")
	case identity.Kind == rbacv1.ServiceAccountKind && identity.Namespace == "":
		return invalid("spec.identity is a ServiceAccount without a namespace: say in which namespace of the hub it is")
	}
	return nil
}

// refuseNamespace rejects a namespace that cannot serve the member.
func refuseNamespace(mc *clusterv1beta1.MemberCluster, namespace *corev1.Namespace) *refusal.Refusal {
	if !metav1.IsControlledBy(namespace, mc) {
		return refusal.New(ReasonNamespaceConflict,
			"namespace %q exists and does not belong to this MemberCluster: delete that namespace, or use another name for the member",
			namespace.Name)
	}
	if !namespace.DeletionTimestamp.IsZero() {
		return refusal.New(ReasonNamespaceConflict,
			"namespace %q is being deleted; it is re-created once the deletion is complete", namespace.Name)
	}
	return nil
}

// subjectOf sets the API group of an identity's kind, as the API server does by default, so that a
// comparison with the stored subject finds no difference.
func subjectOf(identity rbacv1.Subject) rbacv1.Subject {
	identity.APIGroup = rbacv1.GroupName
	if identity.Kind == rbacv1.ServiceAccountKind {
		identity.APIGroup = ""
	}
	return identity
}

// identityChange reports that other subjects than before have a member's rights on the hub. It is empty
// if nobody had them or nothing changed. Administrators have to see this, because such a subject can
// read the member's placed resources.
func identityChange(before, now []rbacv1.Subject) string {
	if len(before) == 0 || equality.Semantic.DeepEqual(before, now) {
		return ""
	}
	return fmt.Sprintf("The identity of the member's agent changed from %s to %s, which has the member's rights on the hub now. "+
		"Restore spec.identity if this was not intended", namesOf(before), namesOf(now))
}

func namesOf(subjects []rbacv1.Subject) string {
	names := make([]string, len(subjects))
	for i, s := range subjects {
		names[i] = fmt.Sprintf("%s %q", s.Kind, s.Name)
		if s.Namespace != "" {
			names[i] = fmt.Sprintf("%s %q", s.Kind, s.Namespace+"/"+s.Name)
		}
	}
	return strings.Join(names, ", ")
}

func (r *Reconciler) objectMeta(member, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: r.Seats.Namespace(member)}
}

// label marks an object that the hub created for the member.
func label(meta *metav1.ObjectMeta, member string) {
	metav1.SetMetaDataLabel(meta, clusterv1beta1.LabelMember, member)
}
