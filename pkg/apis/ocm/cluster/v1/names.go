// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// Labels.
const (
	// ClusterNameLabel, on whatever is made for a cluster and on requests for
	// certificates, names the cluster.
	ClusterNameLabel = "open-cluster-management.io/cluster-name"
	// ClusterSetLabel, on a ManagedCluster, is the set that the cluster is in.
	ClusterSetLabel = GroupName + "/clusterset"
	// AddOnLabelPrefix begins the labels of a ManagedCluster that tell of its add-ons, before an
	// add-on's name: available, unhealthy or unreachable.
	AddOnLabelPrefix = "feature.open-cluster-management.io/addon-"
	// ManagedNamespaceLabelPrefix begins the label of a managed namespace on a cluster. What tells
	// the hub from others comes behind it, and its value is whether sets want the namespace still.
	ManagedNamespaceLabelPrefix = "clusterset.open-cluster-management.io/"
)

// Users and groups of clusters' agents that have certificates.
const (
	// UserPrefix begins the names of agents as users, UserPrefix + cluster + ":" + agent, and of
	// the group of each cluster, UserPrefix + cluster.
	UserPrefix = "system:open-cluster-management:"
	// AgentsGroup is the group of the agents of all clusters.
	AgentsGroup = UserPrefix + "managed-clusters"
)

// Annotations.
const (
	// CleanupPriorityAnnotation, on what is in a cluster's namespace, orders how it goes
	// when the cluster does: 0 to 100, the smallest first. Without it, 0.
	CleanupPriorityAnnotation = "open-cluster-management.io/cleanup-priority"
	// AutomaticallyAcceptedAnnotation, on a ManagedCluster, is when the hub accepted it by
	// itself, so that it does so once only.
	AutomaticallyAcceptedAnnotation = "open-cluster-management.io/automatically-accepted-on"
	// AgentAnnotationPrefix begins the annotations of a ManagedCluster that its agent writes.
	AgentAnnotationPrefix = "agent.open-cluster-management.io/"
	// SkipClockSyncCheckAnnotation, on a ManagedCluster, with the value true, has its clock
	// not compared with the hub's.
	SkipClockSyncCheckAnnotation = "registration.open-cluster-management.io/skip-clock-sync-check"
)

// Finalizers of a ManagedCluster.
const (
	// ResourceCleanupFinalizer holds it until its rights are taken away.
	ResourceCleanupFinalizer = GroupName + "/api-resource-cleanup"
	// GarbageFinalizer holds it until what was made in its namespace is gone.
	GarbageFinalizer = GroupName + "/resource-cleanup"
)

// Taints that the hub gives and takes, with the effect NoSelect.
const (
	// TaintUnavailable is on clusters whose API server does not answer their agent.
	TaintUnavailable = GroupName + "/unavailable"
	// TaintUnreachable is on clusters that the hub does not hear of.
	TaintUnreachable = GroupName + "/unreachable"
)

// ClusterLease is the name of the Lease that the agent of a cluster renews, in the cluster's
// namespace.
const ClusterLease = "managed-cluster-lease"

// ReservedClaims are the names of ClusterClaims that every cluster is to have. They are told
// before all others, of which there may be too many.
func ReservedClaims() []string {
	return []string{
		"id.k8s.io", "kubeversion.open-cluster-management.io", "platform.open-cluster-management.io", "product.open-cluster-management.io",
	}
}
