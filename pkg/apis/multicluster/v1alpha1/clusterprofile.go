// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
)

const (
	// LabelClusterManager is on every ClusterProfile, with the name of its
	// manager as value. The manager writes it.
	LabelClusterManager = "x-k8s.io/cluster-manager"

	// LabelClusterSet is on a namespace whose profiles form a set of clusters, with the name of the
	// set as value. An administrator writes it.
	LabelClusterSet = "multicluster.x-k8s.io/clusterset"

	// ClusterManager is spec.clusterManager.name of the profiles that fleetgate publishes, unless
	// the gateway is configured otherwise.
	ClusterManager = "fleetgate"

	// AccessProvider is the name of the access provider for access through the gateway.
	AccessProvider = "cluster-gateway"

	// AnnotationPublished is on a ClusterProfile. Its value is JSON: the names of labels and
	// properties that the gateway copied from the MemberCluster. The gateway writes it, so that it
	// does not change those of other writers.
	AnnotationPublished = "fleetgate.io/published"

	// ExtensionExec is the name of the extension of an access provider that client-go passes to an
	// exec plugin as the cluster's configuration.
	ExtensionExec = "client.authentication.k8s.io/exec"
)

// ConditionControlPlaneHealthy is True while the member's API server is ready and its agent
// reports. It is False if either is known to fail, and Unknown before the first report.
const ConditionControlPlaneHealthy = "ControlPlaneHealthy"

// ConditionJoined is copied from the condition of the MemberCluster.
const ConditionJoined = "Joined"

// Reasons of ControlPlaneHealthy.
const (
	// ReasonAgentReportedNoStatus goes with Unknown.
	ReasonAgentReportedNoStatus = "MemberAgentReportedNoStatus"
	// ReasonAgentReportedNoHealthInfo goes with Unknown.
	ReasonAgentReportedNoHealthInfo = "MemberAgentReportedNoHealthInfo"
	// ReasonAgentHeartbeatLost goes with False.
	ReasonAgentHeartbeatLost = "MemberAgentHeartbeatLost"
	// ReasonAPIServerUnhealthy goes with False.
	ReasonAPIServerUnhealthy = "MemberClusterAPIServerUnhealthy"
	// ReasonTunnelDown goes with False.
	ReasonTunnelDown = "MemberClusterTunnelDown"
	// ReasonAPIServerHealthy goes with True.
	ReasonAPIServerHealthy = "MemberClusterAPIServerHealthy"
)

// ClusterProfile is a cluster that its manager publishes to other clients.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Manager",type=string,JSONPath=`.spec.clusterManager.name`
// +kubebuilder:printcolumn:name="Joined",type=string,JSONPath=`.status.conditions[?(@.type=="Joined")].status`
// +kubebuilder:printcolumn:name="Healthy",type=string,JSONPath=`.status.conditions[?(@.type=="ControlPlaneHealthy")].status`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version.kubernetes`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="ControlPlaneHealthy")].reason`
type ClusterProfile struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec identifies the manager of the cluster.
	Spec ClusterProfileSpec `json:"spec"`

	// status is what the manager reports about the cluster.
	// +optional
	Status ClusterProfileStatus `json:"status,omitzero"`
}

// ClusterProfileSpec identifies the manager of a cluster.
type ClusterProfileSpec struct {
	// displayName is a name for people; need not be unique.
	// +optional
	DisplayName string `json:"displayName,omitempty"`

	// clusterManager is the writer of this profile. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="ClusterManager is immutable"
	ClusterManager ClusterManagerRef `json:"clusterManager"`
}

// ClusterManagerRef identifies the manager of a cluster.
type ClusterManagerRef struct {
	// name of the manager, and value of the profile's label x-k8s.io/cluster-manager.
	Name string `json:"name"`
}

// ClusterProfileStatus is what the manager reports about a cluster.
type ClusterProfileStatus struct {
	// conditions are ControlPlaneHealthy and Joined.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// version of the cluster.
	// +optional
	Version ClusterVersion `json:"version,omitzero"`

	// properties of the cluster, by name.
	// +optional
	// +listType=map
	// +listMapKey=name
	Properties []Property `json:"properties,omitempty"`

	// accessProviders are ways to access the cluster. Clients look for a name.
	// +optional
	// +listType=map
	// +listMapKey=name
	AccessProviders []AccessProviderStatus `json:"accessProviders,omitempty"`

	// credentialProviders is the former name of accessProviders. fleetgate does not write it.
	// +optional
	// +listType=map
	// +listMapKey=name
	CredentialProviders []AccessProviderStatus `json:"credentialProviders,omitempty"`
}

// ClusterVersion is the version of a cluster.
type ClusterVersion struct {
	// kubernetes is the version of the API server. If unset, unknown.
	// +optional
	Kubernetes string `json:"kubernetes,omitempty"`
}

// Property is a property of a cluster.
type Property struct {
	// name of the property.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// value of the property.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value"`

	// lastObservedTime is when the value was observed. If unset, unknown.
	// +optional
	LastObservedTime *metav1.Time `json:"lastObservedTime,omitempty"`
}

// AccessProviderStatus is a way to access a cluster.
type AccessProviderStatus struct {
	// name of the access provider.
	Name string `json:"name"`

	// cluster is the address of the cluster's API server and how to verify it, as in a kubeconfig.
	// It has no credential.
	// +optional
	Cluster clientcmdv1.Cluster `json:"cluster,omitzero"`
}

// ClusterProfileList is a list of ClusterProfiles.
//
// +kubebuilder:object:root=true
type ClusterProfileList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterProfile `json:"items"`
}
