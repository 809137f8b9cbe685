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
