// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"

// Labels of objects that belong to an add-on.
const (
	// AddOnNameLabel is on ManifestWorks and other objects of an add-on. Its value is the name of
	// the add-on.
	AddOnNameLabel = "open-cluster-management.io/addon-name"
	// AddOnNamespaceLabel is on ManifestWorks in the namespace of another cluster, which hosts the
	// agent of the add-on. Its value is the namespace of the ManagedClusterAddOn.
	AddOnNamespaceLabel = "open-cluster-management.io/addon-namespace"
	// TemplateLabel is on RoleBindings that the hub creates for the agents of add-ons with an
	// AddOnTemplate. Its value is empty.
	TemplateLabel = "open-cluster-management.io/addon-template-name"
	// PreDeleteLabel is a deprecated form of PreDeleteAnnotation.
	PreDeleteLabel = "open-cluster-management.io/addon-pre-delete"
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

// TokenSubject is whom the agent of an add-on authenticates as with a token. An agent of the cluster reports it
// to the add-on's manager, which keeps it and grants it the agent's rights.
func TokenSubject(cluster, addOn string) Subject {
	return Subject{User: authenticationv1beta1.UsernameIn(cluster, addOn+TokenAccountSuffix)}
}

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
	// AssignedAnnotation is on the namespace of a cluster that the hub assigned to the member of that
	// name. Its value is the add-on for which it did.
	AssignedAnnotation = "fleetgate.io/assigned-for"
	// PreDeleteAnnotation is on Jobs and Pods of a template that run before the add-on is deleted.
	PreDeleteAnnotation = GroupName + "/addon-pre-delete"
	// OrphanAnnotation is on manifests of a template that stay on the cluster without the add-on.
	OrphanAnnotation = GroupName + "/deletion-orphan"
	// ImageRegistriesAnnotation on a ManagedCluster is JSON with a list of registries, like that of an
	// AddOnDeploymentConfig.
	ImageRegistriesAnnotation = "open-cluster-management.io/image-registries"
	// CopiedAnnotation is on a ManagedClusterAddOn. Its value is the annotations that it got
	// from its ManagedCluster, separated by commas. They are removed when the ManagedCluster
	// loses them.
	CopiedAnnotation = "fleetgate.io/copied-annotations"
)

// PreDeleteFinalizer keeps a ManagedClusterAddOn until its Jobs and Pods with PreDeleteAnnotation have
// succeeded.
const PreDeleteFinalizer = GroupName + "/addon-pre-delete"

// HubNamespace is where Secrets of signing authorities are by default, and the account with whose rights
// the hub serves AddOnTemplates.
const (
	HubNamespace   = "open-cluster-management-hub"
	ManagerAccount = "addon-manager-controller-sa"
)

// The add-on that makes a cluster with a klusterlet a member.
const (
	// FleetgateAgent is its name.
	FleetgateAgent = "fleetgate-agent"
	// FleetgateAgentNamespace is the namespace of the agent on the cluster. It contains nothing else,
	// because it is deleted with the add-on.
	FleetgateAgentNamespace = "fleetgate-agent"
	// FleetgateAgentAccounts is the namespace for accounts of ManagedServiceAccounts on the cluster,
	// where an agent of Open Cluster Management may use the default one.
	FleetgateAgentAccounts = "fleetgate-agent-accounts"
	// ManagedClusterAnnotation is on a Cluster of fleet.cattle.io. Its value is the UID of the
	// ManagedCluster for which the add-on created it. The hub writes it.
	ManagedClusterAnnotation = "fleetgate.io/managed-cluster-uid"
	// AgentMemberAnnotation is on a ManagedCluster with a klusterlet. Its value is the UID of the
	// MemberCluster whose agent the add-on delivered. The hub writes it, and no klusterlet can.
	AgentMemberAnnotation = "fleetgate.io/agent-member-uid"
	// AgentVersionAnnotation is on the ManifestWork of the add-on. Its value identifies what its manifests
	// were rendered from, and their content. The hub writes it.
	AgentVersionAnnotation = "fleetgate.io/agent-version"
)

// CleanupFinalizer keeps a ClusterManagementAddOn whose template runs something before the deletion until
// its ManagedClusterAddOns are gone, and a ManagedClusterAddOn of FleetgateAgent until its member and its
// agent are.
const CleanupFinalizer = "fleetgate.io/addon-cleanup"

// DefaultInstallNamespace is the namespace of an add-on's agent on the cluster, if none is set.
const DefaultInstallNamespace = "open-cluster-management-agent-addon"
