// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
)

// ManagedClusterAddOn is an add-on of the cluster whose name is its namespace. It has the name of
// its ClusterManagementAddOn.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=mca;mcas
// +kubebuilder:unservedversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Available",type="string",JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Degraded",type="string",JSONPath=`.status.conditions[?(@.type=="Degraded")].status`
// +kubebuilder:printcolumn:name="Progressing",type="string",JSONPath=`.status.conditions[?(@.type=="Progressing")].status`
type ManagedClusterAddOn struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec ManagedClusterAddOnSpec `json:"spec"`
	// status is the observed state. The hub, the add-on's manager and the cluster's agent write it.
	// +optional
	Status ManagedClusterAddOnStatus `json:"status,omitzero"`
}

// ManagedClusterAddOnSpec sets how an add-on is installed on a cluster.
type ManagedClusterAddOnSpec struct {
	// configs replace, for this cluster, the other configurations of the same kind.
	// +optional
	Configs []addonv1alpha1.AddOnConfig `json:"configs,omitempty"`
}

// ManagedClusterAddOnStatus is the observed state of an add-on of a cluster.
type ManagedClusterAddOnStatus struct {
	// namespace of the add-on's agent on the cluster.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// conditions are Available, Degraded, Progressing, Configured and those of the add-on's manager.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// relatedObjects are objects that belong to the add-on.
	// +optional
	RelatedObjects []addonv1alpha1.ObjectReference `json:"relatedObjects,omitempty"`
	// addOnMeta describes the add-on to people.
	// +optional
	AddOnMeta addonv1alpha1.AddOnMeta `json:"addOnMeta,omitzero"`
	// supportedConfigs are the kinds of configurations that spec.configs can have. The add-on's
	// manager writes it.
	// +listType=map
	// +listMapKey=group
	// +listMapKey=resource
	// +optional
	SupportedConfigs []addonv1alpha1.ConfigGroupResource `json:"supportedConfigs,omitempty"`
	// configReferences are the configurations of the cluster.
	// +optional
	ConfigReferences []ConfigReference `json:"configReferences,omitempty"`
	// registrations are the identities on the hub that the add-on's agent requests. The add-on's
	// manager writes it.
	// +optional
	Registrations []RegistrationConfig `json:"registrations,omitempty"`
	// healthCheck is how condition Available is found. The add-on's manager writes it.
	// +optional
	HealthCheck addonv1alpha1.HealthCheck `json:"healthCheck,omitzero"`
}

// ConfigReference is a configuration of an add-on of a cluster.
type ConfigReference struct {
	addonv1alpha1.ConfigGroupResource `json:",inline"`
	// lastObservedGeneration is the generation of the configuration that the add-on uses.
	// +optional
	LastObservedGeneration int64 `json:"lastObservedGeneration,omitempty"`
	// desiredConfig is the configuration that the cluster should have.
	// +optional
	DesiredConfig *addonv1alpha1.ConfigSpecHash `json:"desiredConfig,omitempty"`
	// lastAppliedConfig is the last configuration that the cluster had.
	// +optional
	LastAppliedConfig *addonv1alpha1.ConfigSpecHash `json:"lastAppliedConfig,omitempty"`
}

// RegistrationType is what an identity is for.
//
// +kubebuilder:validation:Enum=kubeClient;customSigner
type RegistrationType string

const (
	// KubeClient is an identity for the hub's API server.
	KubeClient RegistrationType = "kubeClient"
	// CustomSigner is a certificate of another signer.
	CustomSigner RegistrationType = "customSigner"
)

// RegistrationConfig is an identity on the hub that an add-on's agent requests.
type RegistrationConfig struct {
	// type is kubeClient, for the hub's API server, or customSigner, for another signer.
	// +required
	Type RegistrationType `json:"type"`
	// kubeClient is for type kubeClient.
	// +optional
	KubeClient *KubeClientConfig `json:"kubeClient,omitempty"`
	// customSigner is for type customSigner.
	// +optional
	CustomSigner *CustomSignerConfig `json:"customSigner,omitempty"`
}

// KubeClientConfig is an identity for the hub's API server.
type KubeClientConfig struct {
	// subject of the identity. If unset, the default one of the add-on, cluster and agent.
	// +optional
	Subject KubeClientSubject `json:"subject,omitzero"`
	// driver is how the agent authenticates to the hub: with a certificate (csr) or with a token. The
	// cluster's agent writes it.
	// +optional
	Driver addonv1alpha1.KubeClientDriver `json:"driver,omitempty"`
}

// KubeClientSubject is the subject of an identity for the hub's API server.
type KubeClientSubject struct {
	// user is the name of the user.
	// +optional
	User string `json:"user,omitempty"`
	// groups of the user.
	// +optional
	Groups []string `json:"groups,omitempty"`
}

// CustomSignerConfig is a certificate of another signer.
type CustomSignerConfig struct {
	// signerName is the signer of the certificate.
	// +kubebuilder:validation:MinLength=5
	// +kubebuilder:validation:MaxLength=571
	// +kubebuilder:validation:Pattern=`^([a-z0-9][a-z0-9-]*[a-z0-9]\.)+[a-z]+\/[a-z0-9-\.]+$`
	// +required
	SignerName string `json:"signerName"`
	// subject of the certificate. If unset, the default one of the add-on, cluster and agent.
	// +optional
	Subject Subject `json:"subject,omitzero"`
}

// Subject is the subject of a certificate.
type Subject struct {
	// user is the common name.
	// +optional
	User string `json:"user,omitempty"`
	// groups are the organizations.
	// +optional
	Groups []string `json:"groups,omitempty"`
	// organizationUnits are the organizational units.
	// +optional
	OrganizationUnits []string `json:"organizationUnits,omitempty"`
}

// ManagedClusterAddOnList is a list of ManagedClusterAddOns.
//
// +kubebuilder:object:root=true
type ManagedClusterAddOnList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ManagedClusterAddOn `json:"items"`
}
