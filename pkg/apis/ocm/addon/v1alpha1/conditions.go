// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Condition types of a ManagedClusterAddOn. Progressing is also one of an install progression.
const (
	// ConditionAvailable is True when the add-on works on the cluster.
	ConditionAvailable = "Available"
	// ConditionDegraded is True when the add-on works with restrictions.
	ConditionDegraded = "Degraded"
	// ConditionProgressing is True while the cluster does not have the current configurations.
	ConditionProgressing = "Progressing"
	// ConditionConfigured is True when status.configReferences are the current configurations, and
	// False while the rollout of an install strategy has not reached the cluster.
	ConditionConfigured = "Configured"
	// ConditionRegistrationApplied is True when the add-on's manager granted its agent the rights on
	// the hub. The manager writes it.
	ConditionRegistrationApplied = "RegistrationApplied"
	// ConditionManifestApplied is True when the add-on's manager created the ManifestWorks. The
	// manager writes it.
	ConditionManifestApplied = "ManifestApplied"
	// ConditionHostingManifestApplied is the same for the ManifestWorks on the hosting cluster.
	ConditionHostingManifestApplied = "HostingManifestApplied"
	// ConditionHookCompleted is True when the Jobs and Pods that run before the deletion have succeeded.
	ConditionHookCompleted = "HookManifestCompleted"
	// ConditionTokenInfrastructureReady is True when the hub has the account of which the add-on's
	// agent gets tokens. Its message has the account's UID. It is absent with another driver.
	ConditionTokenInfrastructureReady = "TokenInfrastructureReady"
	// ConditionTokenRefreshed is True when the cluster's agent renewed the token of the add-on.
	ConditionTokenRefreshed = "TokenRefreshed"
	// ConditionCertificateRotated is True when the cluster's agent renewed a certificate of the
	// add-on.
	ConditionCertificateRotated = "ClusterCertificateRotated"
)

// Reasons of Progressing.
const (
	// ReasonProgressing goes with True.
	ReasonProgressing = "Progressing"
	// ReasonCompleted goes with False: all configurations are applied.
	ReasonCompleted = "Completed"
	// ReasonFailed goes with False: a configuration could not be applied.
	ReasonFailed = "Failed"
	// ReasonConfigurationUnsupported goes with False: spec.configs has a kind that the add-on does
	// not support.
	ReasonConfigurationUnsupported = "ConfigurationUnsupported"
	// ReasonWaitingForManifestApplied goes with False: the manager has not created ManifestWorks.
	ReasonWaitingForManifestApplied = "WaitingForManifestApplied"
	// ReasonWaitingForHostingManifestApplied is the same for the hosting cluster.
	ReasonWaitingForHostingManifestApplied = "WaitingForHostingManifestApplied"
)

// Reasons of Configured.
const (
	// ReasonConfigurationsConfigured goes with True.
	ReasonConfigurationsConfigured = "ConfigurationsConfigured"
	// ReasonConfigurationsNotConfigured goes with False.
	ReasonConfigurationsNotConfigured = "ConfigurationsNotConfigured"
)

// Reasons of RegistrationApplied of add-ons with an AddOnTemplate.
const (
	// ReasonSetPermissionApplied goes with True.
	ReasonSetPermissionApplied = "SetPermissionApplied"
	// ReasonSetPermissionFailed goes with False; the message names the right that is missing.
	ReasonSetPermissionFailed = "SetPermissionFailed"
)

// Reasons of ManifestApplied, as managers of add-ons set them.
const (
	// ReasonManifestsApplied goes with True.
	ReasonManifestsApplied = "AddonManifestApplied"
	// ReasonManifestsApplyFailed goes with False: the cluster did not apply the ManifestWork.
	ReasonManifestsApplyFailed = "AddonManifestAppliedFailed"
	// ReasonManifestWorkApplyFailed goes with False: the hub could not create the ManifestWork.
	ReasonManifestWorkApplyFailed = "ManifestWorkApplyFailed"
)

// Reasons of HookManifestCompleted.
const (
	// ReasonHookCompleted goes with True.
	ReasonHookCompleted = "HookManifestIsCompleted"
	// ReasonHookNotCompleted goes with False.
	ReasonHookNotCompleted = "HookManifestIsNotCompleted"
)

// Reasons of Available of add-ons with an AddOnTemplate.
const (
	// ReasonProbeAvailable goes with True.
	ReasonProbeAvailable = "ProbeAvailable"
	// ReasonProbeUnavailable goes with False: a workload is not ready.
	ReasonProbeUnavailable = "ProbeUnavailable"
	// ReasonNoProbeResult goes with Unknown: the cluster has not reported the state of the workloads.
	ReasonNoProbeResult = "NoProbeResult"
	// ReasonWorkNotFound goes with Unknown: there is no ManifestWork.
	ReasonWorkNotFound = "WorkNotFound"
	// ReasonWorkNotApplied goes with Unknown or False: the cluster does not have what the ManifestWork
	// has.
	ReasonWorkNotApplied = "WorkNotApplied"
)

// Reasons of Available of add-ons with a Lease.
const (
	// ReasonLeaseUpdated goes with True.
	ReasonLeaseUpdated = "ManagedClusterAddOnLeaseUpdated"
	// ReasonLeaseUpdateStopped goes with False: the add-on's agent no longer renews its Lease.
	ReasonLeaseUpdateStopped = "ManagedClusterAddOnLeaseUpdateStopped"
	// ReasonLeaseNotFound goes with Unknown.
	ReasonLeaseNotFound = "ManagedClusterAddOnLeaseNotFound"
)

// Reasons of Available of add-ons that fleetgate's agent contains.
const (
	// ReasonFeatureAvailable goes with True.
	ReasonFeatureAvailable = "FeatureAvailable"
	// ReasonFeatureUnavailable goes with False; the message says why.
	ReasonFeatureUnavailable = "FeatureUnavailable"
)

// Reasons of Available of add-on FleetgateAgent. True is ReasonFeatureAvailable.
const (
	// ReasonAgentNotEnabled goes with False: the hub has no ClusterManagementAddOn of the name.
	ReasonAgentNotEnabled = "ClusterManagementAddOnNotFound"
	// ReasonClusterNotAccepted goes with False: the hub has not accepted the cluster.
	ReasonClusterNotAccepted = "ClusterNotAccepted"
	// ReasonNameNotAllowed goes with False: no member can have the name of the cluster.
	ReasonNameNotAllowed = "NameNotAllowed"
	// ReasonMemberExists goes with False: another member, or another Cluster, has the name.
	ReasonMemberExists = "MemberExists"
	// ReasonWaitingForKlusterlet goes with False: the cluster has not applied the ManifestWork.
	ReasonWaitingForKlusterlet = "WaitingForKlusterlet"
	// ReasonWaitingForAgent goes with False: the installed agent has not joined.
	ReasonWaitingForAgent = "WaitingForAgent"
	// ReasonAgentSilent goes with Unknown: the agent sends no heartbeats.
	ReasonAgentSilent = "AgentHeartbeatStopped"
	// ReasonAgentUnhealthy goes with False: the agent reports that its cluster is not healthy.
	ReasonAgentUnhealthy = "AgentUnhealthy"
	// ReasonAgentLeaving goes with False: the add-on is being removed.
	ReasonAgentLeaving = "Removing"
)

// Reasons of TokenInfrastructureReady.
const (
	// ReasonTokenInfrastructureReady goes with True.
	ReasonTokenInfrastructureReady = "TokenInfrastructureReady"
	// ReasonTokenInfrastructureApplyFailed goes with False; the message says why.
	ReasonTokenInfrastructureApplyFailed = "TokenInfrastructureApplyFailed"
)

// Reasons of TokenRefreshed.
const (
	// ReasonTokenRefreshed goes with True.
	ReasonTokenRefreshed = "AddonTokenRefreshed"
	// ReasonTokenCreationFailed goes with False; the message says why.
	ReasonTokenCreationFailed = "TokenCreationFailed"
)

// Reasons of ClusterCertificateRotated.
const (
	// ReasonCertificateUpdated goes with True.
	ReasonCertificateUpdated = "ClientCertificateUpdated"
	// ReasonCertificateUpdateFailed goes with False; the message says why.
	ReasonCertificateUpdateFailed = "ClientCertificateUpdateFailed"
)
