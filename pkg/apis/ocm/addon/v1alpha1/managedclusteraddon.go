// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ManagedClusterAddOn is an add-on of the cluster whose name is its namespace. It has the name of
// its ClusterManagementAddOn.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=mca;mcas
// +kubebuilder:storageversion
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
	// installNamespace is the namespace of the add-on's agent on the cluster. Default
	// open-cluster-management-agent-addon.
	// +kubebuilder:default=open-cluster-management-agent-addon
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +optional
	InstallNamespace string `json:"installNamespace,omitempty"`
	// configs replace, for this cluster, the other configurations of the same kind.
	// +optional
	Configs []AddOnConfig `json:"configs,omitempty"`
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
	RelatedObjects []ObjectReference `json:"relatedObjects,omitempty"`
	// addOnMeta describes the add-on to people.
	// +optional
	AddOnMeta AddOnMeta `json:"addOnMeta,omitzero"`
	// addOnConfiguration is replaced by configReferences.
	// +optional
	AddOnConfiguration ConfigCoordinates `json:"addOnConfiguration,omitzero"`
	// supportedConfigs are the kinds of configurations that spec.configs can have. The add-on's
	// manager writes it.
	// +listType=map
	// +listMapKey=group
	// +listMapKey=resource
	// +optional
	SupportedConfigs []ConfigGroupResource `json:"supportedConfigs,omitempty"`
	// configReferences are the configurations of the cluster.
	// +optional
	ConfigReferences []ConfigReference `json:"configReferences,omitempty"`
	// registrations are the identities on the hub that the add-on's agent requests. The add-on's
	// manager writes it.
	// +optional
	Registrations []RegistrationConfig `json:"registrations,omitempty"`
	// healthCheck is how condition Available is found. The add-on's manager writes it.
	// +optional
	HealthCheck HealthCheck `json:"healthCheck,omitzero"`
	// kubeClientDriver is how the agent authenticates to the hub: with a certificate (csr) or with a
	// token. The cluster's agent writes it.
	// +optional
	KubeClientDriver KubeClientDriver `json:"kubeClientDriver,omitempty"`
}

// KubeClientDriver is how an add-on's agent authenticates to the hub.
//
// +kubebuilder:validation:Enum=csr;token
type KubeClientDriver string

const (
	// DriverCSR is a client certificate.
	DriverCSR KubeClientDriver = "csr"
	// DriverToken is a token of a ServiceAccount on the hub.
	DriverToken KubeClientDriver = "token"
)

// ObjectReference names an object.
type ObjectReference struct {
	// group is the API group.
	// +required
	Group string `json:"group"`
	// resource is the plural name of the kind.
	// +required
	Resource string `json:"resource"`
	// namespace of the object. Empty for a cluster-scoped one.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	// +required
	Name string `json:"name"`
}

// ConfigReference is a configuration of an add-on of a cluster.
type ConfigReference struct {
	ConfigGroupResource `json:",inline"`
	ConfigReferent      `json:",inline"`
	// lastObservedGeneration is the generation of the configuration that the add-on uses.
	// +optional
	LastObservedGeneration int64 `json:"lastObservedGeneration,omitempty"`
	// desiredConfig is the configuration that the cluster should have.
	// +optional
	DesiredConfig *ConfigSpecHash `json:"desiredConfig,omitempty"`
	// lastAppliedConfig is the last configuration that the cluster had.
	// +optional
	LastAppliedConfig *ConfigSpecHash `json:"lastAppliedConfig,omitempty"`
}

// RegistrationConfig is an identity on the hub that an add-on's agent requests.
type RegistrationConfig struct {
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
	// organizationUnit are the organizational units.
	// +optional
	OrganizationUnits []string `json:"organizationUnit,omitempty"`
}

// HealthCheckMode is how condition Available is found.
//
// +kubebuilder:validation:Enum=Lease;Customized
type HealthCheckMode string

const (
	// HealthCheckLease is by the Lease that the add-on's agent renews on the cluster.
	HealthCheckLease HealthCheckMode = "Lease"
	// HealthCheckCustomized leaves it to the add-on's manager.
	HealthCheckCustomized HealthCheckMode = "Customized"
)

// HealthCheck is how condition Available is found.
type HealthCheck struct {
	// mode is Lease, for the Lease that the add-on's agent renews on the cluster, or Customized, if
	// the add-on's manager writes the condition. Default Lease.
	// +kubebuilder:default=Lease
	// +optional
	Mode HealthCheckMode `json:"mode,omitempty"`
}

// ManagedClusterAddOnList is a list of ManagedClusterAddOns.
//
// +kubebuilder:object:root=true
type ManagedClusterAddOnList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ManagedClusterAddOn `json:"items"`
}
