// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Condition types of a Cluster.
const (
	// ClusterConditionReady is True while the cluster is a healthy member. Its message is shown in
	// the column STATUS.
	ClusterConditionReady = "Ready"
	// ClusterConditionProcessed is an upstream condition. fleetgate does not set it.
	ClusterConditionProcessed = "Processed"
	// ClusterConditionImported is True once an agent is installed through spec.kubeConfigSecret.
	ClusterConditionImported = "Imported"
	// ClusterConditionLabelsAccepted is False if the hub dropped labels that the agent set at its
	// registration. The message names them. It is absent if the hub never dropped one.
	ClusterConditionLabelsAccepted = "LabelsAccepted"
	// ClusterConditionReconciled is an upstream condition. fleetgate does not set it.
	ClusterConditionReconciled = "Reconciled"
)

// ClusterStateWaitCheckIn is status.display.state of a cluster whose agent has not reported yet.
const ClusterStateWaitCheckIn = "WaitCheckIn"

// Cluster is the registration of a cluster: its identity and the settings of its agent. Placements
// and health are in its MemberCluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:JSONPath=`.status.display.readyBundles`,name="Bundles-Ready",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.display.readyNodes`,name="Nodes-Ready",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.display.sampleNode`,name="Sample-Node",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.agent.lastSeen`,name="Last-Seen",type=string,description="When the agent last reported: exactly, once it is silent; in steps of 15 minutes while it is heard."
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Ready")].message`,name="Status",type=string
type Cluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the identity of the cluster and the settings of its agent.
	// +optional
	Spec ClusterSpec `json:"spec,omitzero"`

	// status is the observed state.
	// +optional
	Status ClusterStatus `json:"status,omitzero"`
}

// ClusterSpec is the identity of a cluster and the settings of its agent. The settings apply when
// the hub installs the agent through kubeConfigSecret.
type ClusterSpec struct {
	// paused is ignored.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// clientID matches the requests of this cluster. If unset, none match; the hub sets it when it
	// imports the cluster.
	// +nullable
	// +optional
	ClientID string `json:"clientID,omitempty"`

	// kubeConfigSecret is a Secret with a kubeconfig under the key "value", with which the hub
	// installs the agent. If unset, the agent registers by itself.
	// +nullable
	// +optional
	KubeConfigSecret string `json:"kubeConfigSecret,omitempty"`

	// kubeConfigSecretNamespace must be unset or the Cluster's own namespace.
	// +nullable
	// +optional
	KubeConfigSecretNamespace string `json:"kubeConfigSecretNamespace,omitempty"`

	// redeployAgentGeneration makes the hub install the agent again if it differs from
	// status.agentDeployedGeneration.
	// +optional
	RedeployAgentGeneration int64 `json:"redeployAgentGeneration,omitempty"`

	// agentEnvVars are additional environment variables of the agent.
	// +nullable
	// +optional
	AgentEnvVars []corev1.EnvVar `json:"agentEnvVars,omitempty"`

	// agentNamespace is the agent's namespace on the cluster. If unset, fleet-system. An agent that the
	// hub has installed does not move.
	// +nullable
	// +optional
	AgentNamespace string `json:"agentNamespace,omitempty"`

	// privateRepoURL is the prefix of the agent's image names. If unset, none.
	// +nullable
	// +optional
	PrivateRepoURL string `json:"privateRepoURL,omitempty"`

	// templateValues are arbitrary values for templates. Ignored.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +nullable
	// +optional
	TemplateValues *runtime.RawExtension `json:"templateValues,omitempty"`

	// agentTolerations are tolerations of the agent's Pod, in addition to registration.agentTolerations
	// of the gateway. A change installs the agent again.
	// +nullable
	// +optional
	AgentTolerations []corev1.Toleration `json:"agentTolerations,omitempty"`

	// agentAffinity of the agent's Pod. If unset, that of the chart.
	// +nullable
	// +optional
	AgentAffinity *corev1.Affinity `json:"agentAffinity,omitempty"`

	// agentResources are the requests and limits of the agent's container. If unset, those of the
	// chart.
	// +nullable
	// +optional
	AgentResources *corev1.ResourceRequirements `json:"agentResources,omitempty"`

	// hostNetwork runs the agent in the host network, so that it can deliver the cluster's network
	// plugin. If unset, registration.agentHostNetwork of the gateway. A change installs the agent again.
	// +nullable
	// +optional
	HostNetwork *bool `json:"hostNetwork,omitempty"`

	// agentSchedulingCustomization is ignored.
	// +nullable
	// +optional
	AgentSchedulingCustomization *AgentSchedulingCustomization `json:"agentSchedulingCustomization,omitempty"`

	// agentPullSecrets are the Secrets to pull the agent's image. If unset, those of the chart.
	// +nullable
	// +optional
	AgentPullSecrets *[]corev1.LocalObjectReference `json:"agentPullSecrets,omitempty"`
}

// AgentSchedulingCustomization is the priority and disruption budget of an agent.
type AgentSchedulingCustomization struct {
	// priorityClass to create for the agent. If unset, none.
	// +optional
	PriorityClass *AgentPriorityClass `json:"priorityClass,omitempty"`

	// podDisruptionBudget to create for the agent. If unset, none.
	// +optional
	PodDisruptionBudget *AgentPodDisruptionBudget `json:"podDisruptionBudget,omitempty"`
}

// AgentPriorityClass is the PriorityClass of an agent.
type AgentPriorityClass struct {
	// value is the priority.
	// +optional
	Value int `json:"value,omitempty"`

	// preemptionPolicy is Never or PreemptLowerPriority. If unset, PreemptLowerPriority.
	// +optional
	PreemptionPolicy *corev1.PreemptionPolicy `json:"preemptionPolicy,omitempty"`
}

// AgentPodDisruptionBudget is the disruption budget of an agent. Set one field.
type AgentPodDisruptionBudget struct {
	// minAvailable is how many agents must stay available: a number or a percentage.
	// +optional
	MinAvailable string `json:"minAvailable,omitempty"`

	// maxUnavailable is how many agents can be unavailable: a number or a percentage.
	// +optional
	MaxUnavailable string `json:"maxUnavailable,omitempty"`
}

// ClusterStatus is the observed state of a cluster.
type ClusterStatus struct {
	// conditions of the registration and the agent.
	// +optional
	Conditions []GenericCondition `json:"conditions,omitempty"`

	// namespace is the member's namespace on the hub. Unset until it exists.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// summary counts deployments by state. fleetgate does not write it.
	// +optional
	Summary DeploymentSummary `json:"summary,omitzero"`

	// resourceCounts counts deployed resources by state. fleetgate does not write it.
	// +optional
	ResourceCounts ResourceCounts `json:"resourceCounts,omitzero"`

	// readyGitRepos is always 0: fleetgate deploys no Git repositories.
	// +optional
	ReadyGitRepos int `json:"readyGitRepos"`

	// desiredReadyGitRepos is always 0.
	// +optional
	DesiredReadyGitRepos int `json:"desiredReadyGitRepos"`

	// readyHelmOps is always 0: fleetgate deploys no Helm operations.
	// +optional
	ReadyHelmOps int `json:"readyHelmOps"`

	// desiredReadyHelmOps is always 0.
	// +optional
	DesiredReadyHelmOps int `json:"desiredReadyHelmOps"`

	// agentEnvVarsHash is the hash of spec.agentEnvVars and spec.agentPullSecrets of the last
	// installation.
	// +nullable
	// +optional
	AgentEnvVarsHash string `json:"agentEnvVarsHash,omitempty"`

	// agentPrivateRepoURL is the spec.privateRepoURL of the last installation.
	// +nullable
	// +optional
	AgentPrivateRepoURL string `json:"agentPrivateRepoURL,omitempty"`

	// agentHostNetwork is whether the last installation uses the host network.
	// +nullable
	// +optional
	AgentHostNetwork bool `json:"agentHostNetwork,omitempty"`

	// agentDeployedGeneration is the spec.redeployAgentGeneration of the last installation.
	// +nullable
	// +optional
	AgentDeployedGeneration *int64 `json:"agentDeployedGeneration,omitempty"`

	// agentMigrated is true once the agent is installed.
	// +optional
	AgentMigrated bool `json:"agentMigrated,omitempty"`

	// agentNamespaceMigrated is true once the agent is installed.
	// +optional
	AgentNamespaceMigrated bool `json:"agentNamespaceMigrated,omitempty"`

	// cattleNamespaceMigrated is true once the agent is installed.
	// +optional
	CattleNamespaceMigrated bool `json:"cattleNamespaceMigrated,omitempty"`

	// agentAffinityHash is the hash of spec.agentAffinity of the last installation.
	// +optional
	AgentAffinityHash string `json:"agentAffinityHash,omitempty"`

	// agentResourcesHash is the hash of spec.agentResources of the last installation.
	// +nullable
	// +optional
	AgentResourcesHash string `json:"agentResourcesHash,omitempty"`

	// agentTolerationsHash is the hash of the tolerations of the last installation.
	// +nullable
	// +optional
	AgentTolerationsHash string `json:"agentTolerationsHash,omitempty"`

	// agentSchedulingCustomizationHash is not written.
	// +optional
	AgentSchedulingCustomizationHash string `json:"agentSchedulingCustomizationHash,omitempty"`

	// agentConfigChanged is not written.
	// +optional
	AgentConfigChanged bool `json:"agentConfigChanged,omitempty"`

	// apiServerURL is the hub's URL of the last installation.
	// +nullable
	// +optional
	APIServerURL string `json:"apiServerURL,omitempty"`

	// apiServerCAHash is the hash of the hub's CA of the last installation.
	// +nullable
	// +optional
	APIServerCAHash string `json:"apiServerCAHash,omitempty"`

	// agentTLSMode is not written.
	// +nullable
	// +optional
	AgentTLSMode string `json:"agentTLSMode,omitempty"`

	// garbageCollectionInterval is not written.
	// +optional
	GarbageCollectionInterval *metav1.Duration `json:"garbageCollectionInterval,omitempty"`

	// display has values for the columns of kubectl get.
	// +optional
	Display ClusterDisplay `json:"display,omitzero"`

	// agent is the last report and the namespace of the agent.
	// +optional
	Agent ClusterAgentStatus `json:"agent,omitzero"`

	// scheduled is always false: fleetgate has no schedules.
	// +optional
	Scheduled bool `json:"scheduled,omitempty"`

	// activeSchedule is always false.
	// +optional
	ActiveSchedule bool `json:"activeSchedule,omitempty"`
}

// ClusterDisplay has values for the columns of kubectl get.
type ClusterDisplay struct {
	// readyBundles is how many placements have applied their current resources on the cluster, and
	// these are available, such as 1/2. A Work without a placement counts as one.
	// +optional
	ReadyBundles string `json:"readyBundles,omitempty"`

	// readyNodes is how many of the cluster's nodes are ready, such as 1/2. Unset if the agent does
	// not report nodes.
	// +optional
	ReadyNodes string `json:"readyNodes,omitempty"`

	// sampleNode is the name of one of its nodes. Unset if the agent does not report nodes.
	// +optional
	SampleNode string `json:"sampleNode,omitempty"`

	// state is WaitCheckIn until the agent has reported, then empty.
	// +nullable
	// +optional
	State string `json:"state,omitempty"`
}

// ClusterAgentStatus is the last report and the namespace of an agent.
type ClusterAgentStatus struct {
	// lastSeen is the last heartbeat: in steps of 15 minutes while the agent is connected, to save
	// writes, and exact once it is disconnected. Null means never.
	// +nullable
	// +optional
	LastSeen metav1.Time `json:"lastSeen"`

	// namespace of the agent on the cluster.
	// +nullable
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// ClusterList is a list of Clusters.
//
// +kubebuilder:object:root=true
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Cluster `json:"items"`
}
