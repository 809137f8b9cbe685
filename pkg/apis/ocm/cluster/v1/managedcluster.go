// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ManagedCluster is a cluster of the fleet, or one that wants to be.
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

	// spec is what the hub's administrators want with the cluster, and how it is reached.
	// +optional
	Spec ManagedClusterSpec `json:"spec"`

	// status is what the cluster says of itself, and the hub of the cluster.
	// +optional
	Status ManagedClusterStatus `json:"status,omitzero"`
}

// ManagedClusterSpec is what is wanted with a cluster. Its defaults need it to be there,
// which is why it is written when it is empty, too.
type ManagedClusterSpec struct {
	// managedClusterClientConfigs are addresses of the cluster's API server.
	// +optional
	ManagedClusterClientConfigs []ClientConfig `json:"managedClusterClientConfigs,omitempty"`

	// hubAcceptsClient lets the cluster in: it gets its namespace and its rights. Setting
	// it needs the right to update managedclusters/accept of register.open-cluster-management.io.
	// +optional
	HubAcceptsClient bool `json:"hubAcceptsClient"`

	// leaseDurationSeconds is how often the agent renews its Lease, in seconds. A cluster
	// whose Lease was not renewed for five times as long counts as gone. It defaults to 60.
	// +kubebuilder:default=60
	// +optional
	LeaseDurationSeconds int32 `json:"leaseDurationSeconds,omitempty"`

	// taints keep placements away that do not tolerate them.
	// +optional
	Taints []Taint `json:"taints,omitempty"`
}

// ClientConfig is an address of a cluster's API server.
type ClientConfig struct {
	// url begins with https.
	URL string `json:"url"`

	// caBundle is the authorities, in PEM, that sign for the address. Empty: those that the
	// client's system trusts.
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
}

// TaintEffect is what a taint does to placements that do not tolerate it.
//
// +kubebuilder:validation:Enum=NoSelect;PreferNoSelect;NoSelectIfNew
type TaintEffect string

const (
	// TaintEffectNoSelect takes the cluster away from them.
	TaintEffectNoSelect TaintEffect = "NoSelect"
	// TaintEffectPreferNoSelect has them prefer others.
	TaintEffectPreferNoSelect TaintEffect = "PreferNoSelect"
	// TaintEffectNoSelectIfNew leaves the cluster to those that have chosen it already.
	TaintEffectNoSelectIfNew TaintEffect = "NoSelectIfNew"
)

// Taint keeps placements away that do not tolerate it.
type Taint struct {
	// key is the taint's name.
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`
	// +kubebuilder:validation:MaxLength=316
	Key string `json:"key"`
	// value tells taints of one key apart.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Value string `json:"value,omitempty"`
	// effect is NoSelect, PreferNoSelect or NoSelectIfNew.
	Effect TaintEffect `json:"effect"`
	// timeAdded is when the taint came. The hub writes it.
	// +nullable
	// +optional
	TimeAdded metav1.Time `json:"timeAdded,omitzero"`
}

// ManagedClusterStatus is what is known of a cluster.
type ManagedClusterStatus struct {
	// conditions are written by the hub, by the agent and by add-ons, one each.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// capacity is the sum of all nodes, beside what others put there.
	// +optional
	Capacity ResourceList `json:"capacity,omitempty"`

	// allocatable is the sum of the nodes that take Pods.
	// +optional
	Allocatable ResourceList `json:"allocatable,omitempty"`

	// version is of the cluster's API server.
	// +optional
	Version ManagedClusterVersion `json:"version,omitzero"`

	// clusterClaims are what the cluster says of itself, by name: its ClusterClaims.
	// +optional
	ClusterClaims []ManagedClusterClaim `json:"clusterClaims,omitempty"`

	// managedNamespaces are those that the cluster's sets want on it.
	// +listType=map
	// +listMapKey=clusterSet
	// +listMapKey=name
	// +optional
	ManagedNamespaces []ClusterSetManagedNamespaceStatus `json:"managedNamespaces,omitempty"`
}

// ResourceList is amounts by the names of resources.
type ResourceList map[corev1.ResourceName]resource.Quantity

// ManagedClusterVersion is the version of a cluster.
type ManagedClusterVersion struct {
	// kubernetes is the version of the API server, as it says it.
	// +optional
	Kubernetes string `json:"kubernetes,omitempty"`
}

// ManagedClusterClaim is a ClusterClaim as the hub has it.
type ManagedClusterClaim struct {
	// name is the ClusterClaim's.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`
	// value is the ClusterClaim's.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Value string `json:"value,omitempty"`
}

// ClusterSetManagedNamespaceStatus is a namespace that a set wants on the cluster, and what
// became of it.
type ClusterSetManagedNamespaceStatus struct {
	// name is the namespace's, on the cluster.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// clusterSet is the name of the set that wants it.
	ClusterSet string `json:"clusterSet"`

	// conditions are the agent's.
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

	// items are the clusters.
	Items []ManagedCluster `json:"items"`
}
