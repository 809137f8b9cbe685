// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// Condition types of a ManagedCluster.
const (
	// ConditionHubAccepted is True when the hub has accepted the cluster.
	ConditionHubAccepted = "HubAcceptedManagedCluster"
	// ConditionJoined is True when the agent has reported. The agent writes it.
	ConditionJoined = "ManagedClusterJoined"
	// ConditionAvailable is True when the cluster's API server responds. The agent writes it; the
	// hub writes it while the agent is disconnected.
	ConditionAvailable = "ManagedClusterConditionAvailable"
	// ConditionClockSynced is True when the agent's clock is close to the hub's.
	ConditionClockSynced = "ManagedClusterConditionClockSynced"
	// ConditionDeleting is False while something prevents the deletion of the cluster, and True
	// when nothing does.
	ConditionDeleting = "Deleting"
)

// Reasons of HubAcceptedManagedCluster.
const (
	// ReasonAccepted goes with True.
	ReasonAccepted = "HubClusterAdminAccepted"
	// ReasonDenied goes with False: hubAcceptsClient was reset.
	ReasonDenied = "HubClusterAdminDenied"
	// ReasonNamespaceTaken goes with False: the cluster's name is not valid for a cluster's
	// namespace, or the namespace belongs to something else.
	ReasonNamespaceTaken = "NamespaceTaken"
	// ReasonError: the hub could not grant the cluster its rights; the message is the cause. The
	// hub retries.
	ReasonError = "Error"
)

// Reasons of ManagedClusterJoined.
const (
	// ReasonJoined goes with True.
	ReasonJoined = "ManagedClusterJoined"
)

// Reasons of ManagedClusterConditionAvailable.
const (
	// ReasonAvailable goes with True.
	ReasonAvailable = "ManagedClusterAvailable"
	// ReasonKubeAPIServerUnavailable goes with False.
	ReasonKubeAPIServerUnavailable = "ManagedClusterKubeAPIServerUnavailable"
	// ReasonLeaseUpdateStopped goes with Unknown.
	ReasonLeaseUpdateStopped = "ManagedClusterLeaseUpdateStopped"
)

// Reasons of ManagedClusterConditionClockSynced.
const (
	// ReasonClockSynced goes with True.
	ReasonClockSynced = "ManagedClusterClockSynced"
	// ReasonClockOutOfSync goes with False.
	ReasonClockOutOfSync = "ManagedClusterClockOutOfSync"
)

// Reasons of Deleting.
const (
	// ReasonResourceRemaining goes with False: the cluster's namespace still contains resources.
	ReasonResourceRemaining = "ResourceRemaining"
	// ReasonNoResource goes with True: no resources are left.
	ReasonNoResource = "NoResource"
	// ReasonDeletingError goes with False: the hub could not list or delete the resources.
	ReasonDeletingError = "DeletingError"
)

// ConditionNamespaceAvailable of a managed namespace is True when the namespace exists on the
// cluster and the agent can label it. The agent writes it.
const ConditionNamespaceAvailable = "NamespaceAvailable"

// Reasons of NamespaceAvailable.
const (
	// ReasonNamespaceApplied goes with True.
	ReasonNamespaceApplied = "NamespaceApplied"
	// ReasonNamespaceApplyFailed goes with False; the message says why.
	ReasonNamespaceApplyFailed = "NamespaceApplyFailed"
)
