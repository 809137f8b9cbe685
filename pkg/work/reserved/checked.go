// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package reserved

import "k8s.io/apimachinery/pkg/runtime/schema"

// checkedGroups are groups of which every kind is checked.
var checkedGroups = map[string]bool{
	"placement.kubernetes-fleet.io":   true,
	"work.open-cluster-management.io": true,
}

// checkedKinds are further kinds that are checked.
var checkedKinds = map[schema.GroupKind]bool{
	{Group: "cluster.kubernetes-fleet.io", Kind: "MemberCluster"}:                   true,
	{Group: "fleet.azure.com", Kind: "MemberCluster"}:                               true,
	{Group: "cluster.open-cluster-management.io", Kind: "ManagedCluster"}:           true,
	{Group: "cluster.open-cluster-management.io", Kind: "ManagedClusterSetBinding"}: true,
	{Group: "fleet.cattle.io", Kind: "Cluster"}:                                     true,
	{Group: "admission.fleetgate.io", Kind: "ImmutabilityPolicy"}:                   true,
	// A ClusterTrustBundle needs the verb attest on its signer.
	{Group: "certificates.k8s.io", Kind: "ClusterTrustBundle"}: true,
	// OpenShift serves roles and bindings in a second group.
	{Group: "authorization.openshift.io", Kind: "Role"}:               true,
	{Group: "authorization.openshift.io", Kind: "ClusterRole"}:        true,
	{Group: "authorization.openshift.io", Kind: "RoleBinding"}:        true,
	{Group: "authorization.openshift.io", Kind: "ClusterRoleBinding"}: true,
}

// ChecksWriter reports whether an API server that serves the kind checks more than RBAC of the user who
// writes an object of it: what a placement on a hub delivers, for example. On a member that is itself a
// hub the agent writes the object, so that check is about the agent, which may do everything. Roles and
// bindings of RBAC are not among them: package author asks for the verbs escalate and bind.
func ChecksWriter(kind schema.GroupKind) bool { return checkedGroups[kind.Group] || checkedKinds[kind] }
