// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package managedcluster

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

const (
	// RolePrefix begins the names of the roles of clusters, and of their bindings.
	RolePrefix = "open-cluster-management:managedcluster:"
	// registrationRole lets agents register in their namespaces, and workRole lets them apply
	// works.
	registrationRole = RolePrefix + "registration"
	workRole         = RolePrefix + "work"
	// scoreRole lets fleetgate's agent write its scores. It is no role of Open Cluster Management.
	scoreRole = "fleetgate:member-scores"
	// workFinalizer keeps the binding to workRole until no work is left: otherwise a deleted
	// namespace would lose its bindings before the agent has cleaned up.
	workFinalizer = clusterv1.GroupName + "/manifest-work-cleanup"
)

// refuseName says why a cluster of the name can have no namespace, and nil if it can.
func refuseName(name string) *refusal.Refusal {
	if len(validation.IsDNS1123Label(name)) > 0 {
		return refusal.New(clusterv1.ReasonNamespaceTaken,
			"no namespace can have the name %q: delete this ManagedCluster and let the cluster join by a name of at most 63 lower-case letters, digits and hyphens", name)
	}
	reserved := name == metav1.NamespaceDefault || slices.ContainsFunc([]string{"kube-", "fleet-", "open-cluster-management"}, func(prefix string) bool {
		return strings.HasPrefix(name, prefix)
	})
	if reserved {
		return refusal.New(clusterv1.ReasonNamespaceTaken,
			"namespace %q is not for clusters: delete this ManagedCluster and let the cluster join by another name", name)
	}
	if role := RolePrefix + name; isSharedRole(role) {
		return refusal.New(clusterv1.ReasonNamespaceTaken,
			"ClusterRole %q is that of all clusters: delete this ManagedCluster and let the cluster join by another name than %q", role, name)
	}
	return nil
}

// isSharedRole is true for the roles that all clusters share. A cluster named work would otherwise
// own one of them, and its binding would grant it on the whole hub.
func isSharedRole(role string) bool { return role == registrationRole || role == workRole }

// refuseNamespace says why an existing namespace is not the cluster's, and nil if it is.
func refuseNamespace(namespace *metav1.PartialObjectMetadata) *refusal.Refusal {
	switch name := namespace.Name; {
	case namespace.Labels[clusterv1.ClusterNameLabel] != name:
		return refusal.New(clusterv1.ReasonNamespaceTaken,
			"namespace %q existed before the cluster: if the cluster's agent can have it with its contents, label it %s=%s; otherwise join the cluster with another name",
			name, clusterv1.ClusterNameLabel, name)
	case namespace.DeletionTimestamp != nil:
		return refusal.New(clusterv1.ReasonNamespaceTaken, "namespace %q is being deleted; it is re-created once the deletion is complete", name)
	}
	return nil
}

// clusterLabels mark what the hub created for a cluster.
func clusterLabels(cluster string) map[string]string {
	return map[string]string{clusterv1.ClusterNameLabel: cluster}
}

// Subjects are the subjects of a cluster's permissions.
type Subjects struct {
	// Agents have all of them.
	Agents []rbacv1.Subject
	// Certified have only those outside of the cluster's namespace.
	Certified []rbacv1.Subject
	// Scorers may write the scores of fleetgate's agent in the cluster's namespace.
	Scorers []rbacv1.Subject
	// Reporters may read the ManagedCluster, and write the status of namespaces that sets want.
	Reporters []rbacv1.Subject
}

func (s Subjects) all() []rbacv1.Subject { return slices.Concat(s.Agents, s.Certified) }

// Klusterlets are the groups of a cluster's klusterlets: of those with certificates, and of those
// with other credentials.
func Klusterlets(cluster string) []rbacv1.Subject {
	group := func(name string) rbacv1.Subject {
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name}
	}
	return []rbacv1.Subject{group(clusterv1.UserPrefix + cluster), group("open-cluster-management:" + cluster)}
}

// clusterRole is the permissions of a cluster's agents outside of its namespace. A denied one may
// still read its ManagedCluster.
func clusterRole(cluster string, accepted bool) *rbacv1.ClusterRole {
	own := []string{cluster}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: RolePrefix + cluster, Labels: clusterLabels(cluster)}}
	if !accepted {
		role.Rules = []rbacv1.PolicyRule{
			{APIGroups: []string{clusterv1.GroupName}, Resources: []string{"managedclusters"}, ResourceNames: own, Verbs: []string{"get", "list", "watch"}},
		}
		return role
	}
	role.Rules = []rbacv1.PolicyRule{
		{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create", "get", "list", "watch"}},
		{APIGroups: []string{"register.open-cluster-management.io"}, Resources: []string{"managedclusters/clientcertificates"}, Verbs: []string{"renew"}},
		{APIGroups: []string{clusterv1.GroupName}, Resources: []string{"managedclusters"}, ResourceNames: own, Verbs: []string{"get", "list", "update", "watch"}},
		{APIGroups: []string{clusterv1.GroupName}, Resources: []string{"managedclusters/status"}, ResourceNames: own, Verbs: []string{"patch", "update"}},
	}
	return role
}

func clusterRoleBinding(cluster string, agents []rbacv1.Subject) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: RolePrefix + cluster, Labels: clusterLabels(cluster)},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: RolePrefix + cluster},
		Subjects:   agents,
	}
}

// reportName is the name of the role, and of its binding, for reporters of our member that are not
// its account. Its prefix is that of all roles which the gateway may bind to members' identities.
func reportName(cluster string) string { return "fleetgate-member-" + cluster + ":report" }

// reportRole has fewer permissions than an agent's. The API server's policy recognises agents by
// the permission to report, which nothing else requires: nobody has one without the other.
func reportRole(cluster string, accepted bool) *rbacv1.ClusterRole {
	own := []string{cluster}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: reportName(cluster), Labels: clusterLabels(cluster)}}
	role.Rules = []rbacv1.PolicyRule{
		{APIGroups: []string{clusterv1.GroupName}, Resources: []string{"managedclusters"}, ResourceNames: own, Verbs: []string{"get", "list", "watch"}},
	}
	if accepted {
		role.Rules = append(role.Rules,
			rbacv1.PolicyRule{APIGroups: []string{clusterv1.GroupName}, Resources: []string{"managedclusters/status"}, ResourceNames: own, Verbs: []string{"patch", "update"}},
			rbacv1.PolicyRule{APIGroups: []string{"register.open-cluster-management.io"}, Resources: []string{"managedclusters/report"}, ResourceNames: own, Verbs: []string{"update"}})
	}
	return role
}

func reportBinding(cluster string, reporters []rbacv1.Subject) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: reportName(cluster), Labels: clusterLabels(cluster)},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: reportName(cluster)},
		Subjects:   reporters,
	}
}

func registrationBinding(cluster string, agents []rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: RolePrefix + cluster + ":registration", Labels: clusterLabels(cluster)},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: registrationRole},
		Subjects:   agents,
	}
}

func scoreBinding(cluster string, scorers []rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: RolePrefix + cluster + ":scores", Labels: clusterLabels(cluster)},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: scoreRole},
		Subjects:   scorers,
	}
}

func workBinding(cluster string, agents []rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster, Name: RolePrefix + cluster + ":work", Labels: clusterLabels(cluster), Finalizers: []string{workFinalizer},
		},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: workRole},
		Subjects: agents,
	}
}

// Roles are those that the bindings of all clusters refer to.
func Roles() []*rbacv1.ClusterRole {
	// The label exists, and names no cluster.
	shared := func(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: clusterLabels("")}, Rules: rules}
	}
	const addOns, works = "addon.open-cluster-management.io", "work.open-cluster-management.io"
	return []*rbacv1.ClusterRole{
		shared(registrationRole,
			rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "list", "watch", "update"}},
			rbacv1.PolicyRule{APIGroups: []string{addOns}, Resources: []string{"managedclusteraddons"}, Verbs: []string{"get", "list", "watch"}},
			rbacv1.PolicyRule{APIGroups: []string{addOns}, Resources: []string{"managedclusteraddons/status"}, Verbs: []string{"patch", "update"}},
			rbacv1.PolicyRule{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create"}}),
		shared(workRole,
			rbacv1.PolicyRule{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch", "update"}},
			rbacv1.PolicyRule{APIGroups: []string{works}, Resources: []string{"manifestworks"}, Verbs: []string{"get", "list", "watch", "update", "patch"}},
			rbacv1.PolicyRule{APIGroups: []string{works}, Resources: []string{"manifestworks/status"}, Verbs: []string{"patch", "update"}}),
		shared(scoreRole,
			rbacv1.PolicyRule{APIGroups: []string{clusterv1.GroupName}, Resources: []string{"addonplacementscores"}, ResourceNames: []string{clusterv1alpha1.ResourceUsageScore}, Verbs: []string{"create", "delete", "get", "patch"}},
			rbacv1.PolicyRule{APIGroups: []string{clusterv1.GroupName}, Resources: []string{"addonplacementscores/status"}, ResourceNames: []string{clusterv1alpha1.ResourceUsageScore}, Verbs: []string{"patch"}}),
	}
}
