// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AddOnDeploymentConfig sets how the agents of add-ons run on clusters.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:storageversion
type AddOnDeploymentConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the configuration.
	// +required
	Spec AddOnDeploymentConfigSpec `json:"spec"`
}

// AddOnDeploymentConfigSpec is the configuration.
type AddOnDeploymentConfigSpec struct {
	// customizedVariables are values by name, for the templates of an add-on.
	// +listType=map
	// +listMapKey=name
	// +optional
	CustomizedVariables []CustomizedVariable `json:"customizedVariables,omitempty"`
	// nodePlacement chooses the nodes.
	// +optional
	NodePlacement *NodePlacement `json:"nodePlacement,omitempty"`
	// registries replace the registries of images.
	// +optional
	Registries []ImageMirror `json:"registries,omitempty"`
	// proxyConfig is the HTTP proxy.
	// +optional
	ProxyConfig ProxyConfig `json:"proxyConfig,omitzero"`
	// agentInstallNamespace is the namespace of the agent on the cluster. Default
	// open-cluster-management-agent-addon.
	// +kubebuilder:default=open-cluster-management-agent-addon
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	// +optional
	AgentInstallNamespace string `json:"agentInstallNamespace,omitempty"`
	// resourceRequirements are the requests and limits of containers. The last one that matches a
	// container counts.
	// +listType=map
	// +listMapKey=containerID
	// +optional
	ResourceRequirements []ContainerResourceRequirements `json:"resourceRequirements,omitempty"`
}

// CustomizedVariable is a value with a name.
type CustomizedVariable struct {
	// name of the variable.
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[a-zA-Z_][_a-zA-Z0-9]*$`
	// +required
	Name string `json:"name"`
	// value of the variable.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Value string `json:"value,omitempty"`
}

// NodePlacement chooses nodes.
type NodePlacement struct {
	// nodeSelector are labels of the nodes.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// tolerations for taints of the nodes.
	// +optional
	Tolerations []Toleration `json:"tolerations,omitempty"`
}

// Toleration is a toleration of Pods. All fields are those of Kubernetes.
type Toleration struct {
	// key of the taint. If empty, all keys; then operator must be Exists.
	// +optional
	Key string `json:"key,omitempty"`
	// operator is Exists or Equal. Default Equal.
	// +optional
	Operator string `json:"operator,omitempty"`
	// value of the taint, for operator Equal.
	// +optional
	Value string `json:"value,omitempty"`
	// effect of the taint: NoSchedule, PreferNoSchedule or NoExecute. If empty, all effects.
	// +optional
	Effect string `json:"effect,omitempty"`
	// tolerationSeconds is how long a Pod stays on a node with effect NoExecute. If unset,
	// indefinitely.
	// +optional
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty"`
}

// ImageMirror replaces the registry of images.
type ImageMirror struct {
	// source is the prefix of the images that are replaced. If empty, all images.
	// +optional
	Source string `json:"source,omitempty"`
	// mirror replaces source.
	// +required
	Mirror string `json:"mirror"`
}

// ProxyConfig is an HTTP proxy.
type ProxyConfig struct {
	// httpProxy is the URL of the proxy for HTTP.
	// +optional
	HTTPProxy string `json:"httpProxy,omitempty"`
	// httpsProxy is the URL of the proxy for HTTPS.
	// +optional
	HTTPSProxy string `json:"httpsProxy,omitempty"`
	// caBundle are the certificates (PEM) that verify an HTTPS proxy.
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
	// noProxy are the hosts, separated by commas, that are reached directly.
	// +optional
	NoProxy string `json:"noProxy,omitempty"`
}

// ContainerResourceRequirements are the requests and limits of containers.
type ContainerResourceRequirements struct {
	// containerID is the resource of the workload, its name and the container's name, separated by
	// colons. Each part can be *.
	// +kubebuilder:validation:Pattern=`^(deployments|daemonsets|statefulsets|replicasets|jobs|cronjobs|pods|\*):.+:.+$`
	// +required
	ContainerID string `json:"containerID"`
	// resources are the requests and limits.
	// +required
	Resources corev1.ResourceRequirements `json:"resources"`
}

// AddOnDeploymentConfigList is a list of AddOnDeploymentConfigs.
//
// +kubebuilder:object:root=true
type AddOnDeploymentConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AddOnDeploymentConfig `json:"items"`
}
