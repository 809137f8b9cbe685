// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Labels of objects that belong to an add-on.
const (
	// AddOnNameLabel is on ManifestWorks and other objects of an add-on. Its value is the name of
	// the add-on.
	AddOnNameLabel = "open-cluster-management.io/addon-name"
	// AddOnNamespaceLabel is on ManifestWorks in the namespace of another cluster, which hosts the
	// agent of the add-on. Its value is the namespace of the ManagedClusterAddOn.
	AddOnNamespaceLabel = "open-cluster-management.io/addon-namespace"
	// BuiltInLabel is on ManagedClusterAddOns that show a feature of fleetgate's agent. Its value is
	// true.
	BuiltInLabel = "fleetgate.io/built-in"
	// TokenInfrastructureLabel is on the account of which an add-on's agent gets tokens, and on the
	// Role and RoleBinding for them. Its value is true.
	TokenInfrastructureLabel = GroupName + "/token-infrastructure"
	// TokenAddOnLabel is on the same objects. Its value is the name of the add-on.
	TokenAddOnLabel = GroupName + "/name"
	// AgentLabel is on Secrets that fleetgate's agent writes for agents of add-ons on the member. Its
	// value is the namespace of fleetgate's agent.
	AgentLabel = "fleetgate.io/agent"
)

// Suffixes of names in the cluster's namespace on the hub; the name of the add-on precedes them.
const (
	// TokenAccountSuffix ends the name of the account of which an add-on's agent gets tokens.
	TokenAccountSuffix = "-agent"
	// TokenRoleSuffix ends the names of the Role and RoleBinding for these tokens.
	TokenRoleSuffix = "-token-role"
)

// Annotations.
const (
	// LifecycleAnnotation on a ClusterManagementAddOn says who manages it. If unset, or with the
	// value addon-manager, the hub does. Any other value leaves it to the add-on's own manager.
	LifecycleAnnotation = GroupName + "/lifecycle"
	// LifecycleHub is the value for add-ons that the hub manages.
	LifecycleHub = "addon-manager"
	// LifecycleSelf is the value for add-ons with a manager of their own.
	LifecycleSelf = "self"
	// HostingClusterAnnotation on a ManagedClusterAddOn is the cluster that runs the add-on's
	// agent, if it is another one.
	HostingClusterAnnotation = GroupName + "/hosting-cluster-name"
	// AnnotationPrefix is the prefix of the annotations that a ManagedClusterAddOn gets from its
	// ManagedCluster.
	AnnotationPrefix = GroupName + "/"
	// CopiedAnnotation is on a ManagedClusterAddOn. Its value is the annotations that it got
	// from its ManagedCluster, separated by commas. They are removed when the ManagedCluster
	// loses them.
	CopiedAnnotation = "fleetgate.io/copied-annotations"
)

// CleanupFinalizer keeps a ClusterManagementAddOn until its ManagedClusterAddOns are gone.
const CleanupFinalizer = "fleetgate.io/addon-cleanup"

// DefaultInstallNamespace is the namespace of an add-on's agent on the cluster, if none is set.
const DefaultInstallNamespace = "open-cluster-management-agent-addon"
