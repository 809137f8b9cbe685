// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ManagedCluster is a cluster of the fleet, or one that requests to join.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=mcl;mcls
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Hub Accepted",type="boolean",JSONPath=`.spec.hubAcceptsClient`
// +kubebuilder:printcolumn:name="Managed Cluster URLs",type="string",JSONPath=`.spec.managedClusterClientConfigs[*].url`
// +kubebuilder:printcolumn:name="Joined",type="string",JSONPath=`.status.conditions[?(@.type=="ManagedClusterJoined")].status`
// +kubebuilder:printcolumn:name="Available",type="string",JSONPath=`.status.conditions[?(@.type=="ManagedClusterConditionAvailable")].status`
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=`.metadata.creationTimestamp`
type ManagedCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state, and the addresses of the cluster.
	// +optional
	Spec ManagedClusterSpec `json:"spec"`

	// status is the observed state, from the agent and the hub.
	// +optional
	Status ManagedClusterStatus `json:"status,omitzero"`
}

// ManagedClusterSpec is the desired state of a cluster. It is written even if empty, because its
// defaults apply only if it is present.
type ManagedClusterSpec struct {
	// managedClusterClientConfigs are addresses of the cluster's API server.
	// +optional
	ManagedClusterClientConfigs []ClientConfig `json:"managedClusterClientConfigs,omitempty"`

	// hubAcceptsClient accepts the cluster: the hub creates its namespace and grants its rights.
	// Setting it needs the right to update managedclusters/accept of
	// register.open-cluster-management.io.
	// +optional
	HubAcceptsClient bool `json:"hubAcceptsClient"`

	// leaseDurationSeconds is the interval in seconds at which the agent renews its Lease. A
	// cluster whose Lease is five intervals old counts as unreachable. Default 60.
	// +kubebuilder:default=60
	// +optional
	LeaseDurationSeconds int32 `json:"leaseDurationSeconds,omitempty"`

	// taints exclude placements that do not tolerate them.
	// +optional
	Taints []Taint `json:"taints,omitempty"`
}

// ClientConfig is an address of a cluster's API server.
type ClientConfig struct {
	// url begins with https.
	URL string `json:"url"`

	// caBundle is the PEM CA certificates of the address. If unset, those of the client's system.
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
}

// TaintEffect is what a taint does to placements that do not tolerate it.
//
// +kubebuilder:validation:Enum=NoSelect;PreferNoSelect;NoSelectIfNew
type TaintEffect string

const (
	// TaintEffectNoSelect removes the cluster from them.
	TaintEffectNoSelect TaintEffect = "NoSelect"
	// TaintEffectPreferNoSelect makes them prefer other clusters.
	TaintEffectPreferNoSelect TaintEffect = "PreferNoSelect"
	// TaintEffectNoSelectIfNew keeps the cluster only for those that already selected it.
	TaintEffectNoSelectIfNew TaintEffect = "NoSelectIfNew"
)

// Taint excludes placements that do not tolerate it.
type Taint struct {
	// key is the name of the taint.
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`
	// +kubebuilder:validation:MaxLength=316
	Key string `json:"key"`
	// value distinguishes taints with the same key.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Value string `json:"value,omitempty"`
	// effect is NoSelect, PreferNoSelect or NoSelectIfNew.
	Effect TaintEffect `json:"effect"`
	// timeAdded is when the taint was added. The hub writes it.
	// +nullable
	// +optional
	TimeAdded metav1.Time `json:"timeAdded,omitzero"`
}

// ManagedClusterStatus is the observed state of a cluster.
type ManagedClusterStatus struct {
	// conditions, each written by the hub, the agent or an add-on.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// capacity is the sum over all nodes, plus resources that other writers add.
	// +optional
	Capacity ResourceList `json:"capacity,omitempty"`

	// allocatable is the sum over the nodes that accept Pods.
	// +optional
	Allocatable ResourceList `json:"allocatable,omitempty"`

	// version of the cluster's API server.
	// +optional
	Version ManagedClusterVersion `json:"version,omitzero"`

	// clusterClaims are the ClusterClaims of the cluster.
	// +optional
	ClusterClaims []ManagedClusterClaim `json:"clusterClaims,omitempty"`

	// managedNamespaces are the namespaces that the cluster's sets require on it.
	// +listType=map
	// +listMapKey=clusterSet
	// +listMapKey=name
	// +optional
	ManagedNamespaces []ClusterSetManagedNamespaceStatus `json:"managedNamespaces,omitempty"`
}

// ResourceList is quantities by resource name.
type ResourceList map[corev1.ResourceName]resource.Quantity

// ManagedClusterVersion is the version of a cluster.
type ManagedClusterVersion struct {
	// kubernetes is the version that the API server reports.
	// +optional
	Kubernetes string `json:"kubernetes,omitempty"`
}

// ManagedClusterClaim is the hub's copy of a ClusterClaim.
type ManagedClusterClaim struct {
	// name of the ClusterClaim.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`
	// value of the ClusterClaim.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Value string `json:"value,omitempty"`
}

// ClusterSetManagedNamespaceStatus is the status of a namespace that a set requires on the cluster.
type ClusterSetManagedNamespaceStatus struct {
	// name of the namespace on the cluster.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// clusterSet is the name of the set that requires it.
	ClusterSet string `json:"clusterSet"`

	// conditions that the agent writes.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ManagedClusterList is a list of ManagedClusters.
//
// +kubebuilder:object:root=true
type ManagedClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ManagedCluster `json:"items"`
}
