// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// Labels.
const (
	// ClusterNameLabel is on objects that the hub creates for a cluster and on its certificate
	// requests. Its value is the name of the cluster.
	ClusterNameLabel = "open-cluster-management.io/cluster-name"
	// ClusterSetLabel is on a ManagedCluster. Its value is the set of the cluster.
	ClusterSetLabel = GroupName + "/clusterset"
	// AddOnLabelPrefix, followed by the name of an add-on, is a label of a ManagedCluster. Its
	// value is the state of the add-on: available, unhealthy or unreachable.
	AddOnLabelPrefix = "feature.open-cluster-management.io/addon-"
	// ManagedNamespaceLabelPrefix, followed by an identifier of the hub, is a label of a managed
	// namespace on a cluster. Its value is whether a set still requires the namespace.
	ManagedNamespaceLabelPrefix = "clusterset.open-cluster-management.io/"
)

// Users and groups of agents with certificates.
const (
	// UserPrefix is the prefix of the usernames of agents, UserPrefix + cluster + ":" + agent, and
	// of the group of each cluster, UserPrefix + cluster.
	UserPrefix = "system:open-cluster-management:"
	// AgentsGroup is the group of the agents of all clusters.
	AgentsGroup = UserPrefix + "managed-clusters"
)

// Annotations.
const (
	// CleanupPriorityAnnotation, on an object in a cluster's namespace, is its position in the
	// order of deletion when the cluster is deleted: 0 to 100, smallest first. If unset, 0.
	CleanupPriorityAnnotation = "open-cluster-management.io/cleanup-priority"
	// AutomaticallyAcceptedAnnotation, on a ManagedCluster, is when the hub accepted it
	// automatically. The hub does so only once.
	AutomaticallyAcceptedAnnotation = "open-cluster-management.io/automatically-accepted-on"
	// AgentAnnotationPrefix is the prefix of the annotations of a ManagedCluster that its agent
	// writes.
	AgentAnnotationPrefix = "agent.open-cluster-management.io/"
	// SkipClockSyncCheckAnnotation, with the value true on a ManagedCluster, disables the
	// comparison of its clock with the hub's.
	SkipClockSyncCheckAnnotation = "registration.open-cluster-management.io/skip-clock-sync-check"
)

// Finalizers of a ManagedCluster.
const (
	// ResourceCleanupFinalizer keeps it until its rights are revoked.
	ResourceCleanupFinalizer = GroupName + "/api-resource-cleanup"
	// GarbageFinalizer keeps it until the objects that were created in its namespace are gone.
	GarbageFinalizer = GroupName + "/resource-cleanup"
)

// Taints that the hub adds and removes, with the effect NoSelect.
const (
	// TaintUnavailable is on clusters whose API server does not respond to their agent.
	TaintUnavailable = GroupName + "/unavailable"
	// TaintUnreachable is on clusters without a heartbeat.
	TaintUnreachable = GroupName + "/unreachable"
)

// ClusterLease is the name of the Lease that a cluster's agent renews, in the cluster's namespace.
const ClusterLease = "managed-cluster-lease"

// ReservedClaims returns the names of ClusterClaims that every cluster should have. They are
// reported first, because the number of claims is limited.
func ReservedClaims() []string {
	return []string{
		"id.k8s.io", "kubeversion.open-cluster-management.io", "platform.open-cluster-management.io", "product.open-cluster-management.io",
	}
}
