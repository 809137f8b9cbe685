// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
)

// AddOnTemplate is the manifests and the rights of an add-on without a manager of its own.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="ADDON NAME",type="string",JSONPath=`.spec.addonName`
type AddOnTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the template.
	// +required
	Spec AddOnTemplateSpec `json:"spec"`
}

// AddOnTemplateSpec is a template.
type AddOnTemplateSpec struct {
	// addonName is the name of the add-on.
	// +required
	AddonName string `json:"addonName"`
	// agentSpec is the spec of the ManifestWork for each cluster.
	// +required
	AgentSpec workv1.ManifestWorkSpec `json:"agentSpec"`
	// registration are the identities on the hub that the add-on's agent gets.
	// +optional
	Registration []RegistrationSpec `json:"registration,omitempty"`
}

// Types of registrations.
const (
	// RegistrationKubeClient is an identity for the hub's API server.
	RegistrationKubeClient = "KubeClient"
	// RegistrationCustomSigner is a certificate of another signer.
	RegistrationCustomSigner = "CustomSigner"
)

// RegistrationSpec is an identity on the hub.
type RegistrationSpec struct {
	// type is KubeClient, for the hub's API server, or CustomSigner, for another signer.
	// +kubebuilder:validation:Enum=KubeClient;CustomSigner
	// +required
	Type string `json:"type"`
	// kubeClient is for type KubeClient.
	// +optional
	KubeClient *KubeClientRegistrationConfig `json:"kubeClient,omitempty"`
	// customSigner is for type CustomSigner.
	// +optional
	CustomSigner *CustomSignerRegistrationConfig `json:"customSigner,omitempty"`
}

// KubeClientRegistrationConfig is the rights of an identity for the hub's API server.
type KubeClientRegistrationConfig struct {
	// hubPermissions are the rights on the hub.
	// +optional
	HubPermissions []HubPermissionConfig `json:"hubPermissions,omitempty"`
}

// Types of permissions.
const (
	// PermissionCurrentCluster is a right in the cluster's namespace.
	PermissionCurrentCluster = "CurrentCluster"
	// PermissionSingleNamespace is a right in one namespace.
	PermissionSingleNamespace = "SingleNamespace"
)

// HubPermissionConfig is a right on the hub.
type HubPermissionConfig struct {
	// type is CurrentCluster, for the cluster's namespace, or SingleNamespace.
	// +kubebuilder:validation:Enum=CurrentCluster;SingleNamespace
	// +required
	Type string `json:"type"`
	// currentCluster is for type CurrentCluster.
	// +optional
	CurrentCluster *CurrentClusterBindingConfig `json:"currentCluster,omitempty"`
	// singleNamespace is for type SingleNamespace.
	// +optional
	SingleNamespace *SingleNamespaceBindingConfig `json:"singleNamespace,omitempty"`
}

// CurrentClusterBindingConfig is a right in the cluster's namespace.
type CurrentClusterBindingConfig struct {
	// clusterRoleName is the ClusterRole that is bound in the cluster's namespace.
	// +required
	ClusterRoleName string `json:"clusterRoleName"`
}

// SingleNamespaceBindingConfig is a right in one namespace.
type SingleNamespaceBindingConfig struct {
	// namespace on the hub.
	// +required
	Namespace string `json:"namespace"`
	// roleRef is the Role or ClusterRole that is bound there.
	// +required
	RoleRef RoleRef `json:"roleRef"`
}

// RoleRef names a Role or a ClusterRole.
//
// +structType=atomic
type RoleRef struct {
	// apiGroup of the role.
	// +required
	APIGroup string `json:"apiGroup"`
	// kind is Role or ClusterRole.
	// +required
	Kind string `json:"kind"`
	// name of the role.
	// +required
	Name string `json:"name"`
}

// CustomSignerRegistrationConfig is a certificate of another signer.
type CustomSignerRegistrationConfig struct {
	// signerName is the signer of the certificate.
	// +kubebuilder:validation:MinLength=5
	// +kubebuilder:validation:MaxLength=571
	// +kubebuilder:validation:Pattern=`^([a-z0-9][a-z0-9-]*[a-z0-9]\.)+[a-z]+\/[a-z0-9-\.]+$`
	// +required
	SignerName string `json:"signerName"`
	// subject of the certificate. If unset, the default one of the add-on, cluster and agent.
	// +optional
	Subject *Subject `json:"subject,omitempty"`
	// signingCA is the Secret with the certificate authority that signs.
	// +required
	SigningCA SigningCARef `json:"signingCA"`
}

// SigningCARef names a Secret.
type SigningCARef struct {
	// namespace of the Secret. If unset, open-cluster-management-hub.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the Secret.
	// +required
	Name string `json:"name"`
}

// AddOnTemplateList is a list of AddOnTemplates.
//
// +kubebuilder:object:root=true
type AddOnTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AddOnTemplate `json:"items"`
}
