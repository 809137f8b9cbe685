// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// Condition types of a ManagedCluster.
const (
	// ConditionHubAccepted is True when the hub has let the cluster in.
	ConditionHubAccepted = "HubAcceptedManagedCluster"
	// ConditionJoined is True when the agent has reported. The agent writes it.
	ConditionJoined = "ManagedClusterJoined"
	// ConditionAvailable is True when the cluster's API server answers. The agent writes
	// it; the hub does, once the agent is silent.
	ConditionAvailable = "ManagedClusterConditionAvailable"
	// ConditionClockSynced is True when the agent's clock is near the hub's.
	ConditionClockSynced = "ManagedClusterConditionClockSynced"
	// ConditionDeleting is False while something keeps a deleted cluster from going, and
	// True when it may.
	ConditionDeleting = "Deleting"
)

// Reasons of HubAcceptedManagedCluster.
const (
	// ReasonAccepted goes with True.
	ReasonAccepted = "HubClusterAdminAccepted"
	// ReasonDenied goes with False: hubAcceptsClient was taken back.
	ReasonDenied = "HubClusterAdminDenied"
	// ReasonNamespaceTaken goes with False: the cluster's name is no name for the namespace
	// of a cluster, or the namespace is somebody else's.
	ReasonNamespaceTaken = "NamespaceTaken"
	// ReasonError: the hub could not give the cluster its rights; the message says why. It tries
	// again.
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
	// ReasonResourceRemaining goes with False: something in the cluster's namespace is
	// still there.
	ReasonResourceRemaining = "ResourceRemaining"
	// ReasonNoResource goes with True: nothing is left.
	ReasonNoResource = "NoResource"
	// ReasonDeletingError goes with False: the hub could not find out, or not delete.
	ReasonDeletingError = "DeletingError"
)

// ConditionNamespaceAvailable, of a managed namespace, is True when the cluster has the namespace
// and its API server lets the agent label it. The agent writes it.
const ConditionNamespaceAvailable = "NamespaceAvailable"

// Reasons of NamespaceAvailable.
const (
	// ReasonNamespaceApplied goes with True.
	ReasonNamespaceApplied = "NamespaceApplied"
	// ReasonNamespaceApplyFailed goes with False; the message says why.
	ReasonNamespaceApplyFailed = "NamespaceApplyFailed"
)
