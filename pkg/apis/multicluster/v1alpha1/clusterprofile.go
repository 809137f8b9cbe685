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

	// LabelClusterSet is on a namespace whose profiles are one set of clusters,
	// with the set's name as value. An administrator writes it.
	LabelClusterSet = "multicluster.x-k8s.io/clusterset"

	// ClusterManager is spec.clusterManager.name of the profiles that fleetgate
	// publishes, unless the gateway is told another.
	ClusterManager = "fleetgate"

	// AccessProvider is the name of the access provider that leads through the
	// gateway.
	AccessProvider = "cluster-gateway"

	// AnnotationPublished is on a ClusterProfile, with what it has of its MemberCluster: names
	// of labels and of properties, as JSON. The gateway writes it, to know what others put there.
	AnnotationPublished = "fleetgate.io/published"

	// ExtensionExec is the name of the extension of an access provider that
	// client-go hands to an exec plugin as the cluster's configuration.
	ExtensionExec = "client.authentication.k8s.io/exec"
)

// ConditionControlPlaneHealthy is True while the member's API server is ready
// and its agent reports, False if either is known not to be, Unknown before.
const ConditionControlPlaneHealthy = "ControlPlaneHealthy"

// ConditionJoined says whether the member has joined, as its MemberCluster does.
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

// ClusterProfile is a cluster, as its manager publishes it to others.
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

	// spec says who manages the cluster.
	Spec ClusterProfileSpec `json:"spec"`

	// status is what the manager tells of the cluster.
	// +optional
	Status ClusterProfileStatus `json:"status,omitzero"`
}

// ClusterProfileSpec says who manages a cluster.
type ClusterProfileSpec struct {
	// displayName is a name for people. It need not be unique.
	// +optional
	DisplayName string `json:"displayName,omitempty"`

	// clusterManager is who writes this profile. It never changes.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="ClusterManager is immutable"
	ClusterManager ClusterManagerRef `json:"clusterManager"`
}

// ClusterManagerRef names the manager of a cluster.
type ClusterManagerRef struct {
	// name is the manager's, and the value of the profile's label
	// x-k8s.io/cluster-manager.
	Name string `json:"name"`
}

// ClusterProfileStatus is what the manager tells of a cluster.
type ClusterProfileStatus struct {
	// conditions are about the cluster: ControlPlaneHealthy and Joined.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// version is what the cluster runs.
	// +optional
	Version ClusterVersion `json:"version,omitzero"`

	// properties are facts about the cluster, by name.
	// +optional
	// +listType=map
	// +listMapKey=name
	Properties []Property `json:"properties,omitempty"`

	// accessProviders are ways to reach the cluster, each under a name that a
	// client looks for.
	// +optional
	// +listType=map
	// +listMapKey=name
	AccessProviders []AccessProviderStatus `json:"accessProviders,omitempty"`

	// credentialProviders is the former name of accessProviders. fleetgate does
	// not write it.
	// +optional
	// +listType=map
	// +listMapKey=name
	CredentialProviders []AccessProviderStatus `json:"credentialProviders,omitempty"`
}

// ClusterVersion is what a cluster runs.
type ClusterVersion struct {
	// kubernetes is the version of the API server. Empty means unknown.
	// +optional
	Kubernetes string `json:"kubernetes,omitempty"`
}

// Property is a fact about a cluster.
type Property struct {
	// name is what the fact is about.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// value is the fact.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value"`

	// lastObservedTime is when it was observed. Empty means unknown.
	// +optional
	LastObservedTime *metav1.Time `json:"lastObservedTime,omitempty"`
}

// AccessProviderStatus is a way to reach a cluster.
type AccessProviderStatus struct {
	// name is what a client looks for.
	Name string `json:"name"`

	// cluster is where the cluster's API server is and how to verify it, in the
	// form of a kubeconfig. It holds no credential.
	// +optional
	Cluster clientcmdv1.Cluster `json:"cluster,omitzero"`
}

// ClusterProfileList is a list of ClusterProfiles.
//
// +kubebuilder:object:root=true
type ClusterProfileList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the profiles.
	Items []ClusterProfile `json:"items"`
}
