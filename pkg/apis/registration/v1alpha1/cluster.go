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
	// ClusterConditionReady is True while the cluster is a member that answers;
	// its message is the column STATUS.
	ClusterConditionReady = "Ready"
	// ClusterConditionProcessed is True once the hub has acted on the spec.
	ClusterConditionProcessed = "Processed"
	// ClusterConditionImported is True once an agent is installed through
	// spec.kubeConfigSecret.
	ClusterConditionImported = "Imported"
	// ClusterConditionReconciled is True once nothing is left to do.
	ClusterConditionReconciled = "Reconciled"
)

// ClusterStateWaitCheckIn is status.display.state of a cluster whose agent has
// not reported yet.
const ClusterStateWaitCheckIn = "WaitCheckIn"

// Cluster is a cluster as registration sees it: who it is and how its agent
// runs. What is placed on it, and whether it is alive, is its MemberCluster's.
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

	// spec is who the cluster is and how its agent runs.
	// +optional
	Spec ClusterSpec `json:"spec,omitzero"`

	// status is what the hub knows of the cluster.
	// +optional
	Status ClusterStatus `json:"status,omitzero"`
}

// ClusterSpec is who a cluster is and how its agent runs.
type ClusterSpec struct {
	// paused stops changes from reaching the cluster.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// clientID matches the requests that are from this cluster. Empty means that
	// no request is; the hub fills it when it imports the cluster.
	// +nullable
	// +optional
	ClientID string `json:"clientID,omitempty"`

	// kubeConfigSecret is a Secret with a kubeconfig under the key "value",
	// through which the hub installs the agent. Empty means that the agent
	// registers by itself.
	// +nullable
	// +optional
	KubeConfigSecret string `json:"kubeConfigSecret,omitempty"`

	// kubeConfigSecretNamespace is the namespace of that Secret. Empty means the
	// Cluster's own.
	// +nullable
	// +optional
	KubeConfigSecretNamespace string `json:"kubeConfigSecretNamespace,omitempty"`

	// redeployAgentGeneration makes the hub install the agent again, whenever it
	// differs from status.agentDeployedGeneration.
	// +optional
	RedeployAgentGeneration int64 `json:"redeployAgentGeneration,omitempty"`

	// agentEnvVars are further environment variables of the agent.
	// +nullable
	// +optional
	AgentEnvVars []corev1.EnvVar `json:"agentEnvVars,omitempty"`

	// agentNamespace is the agent's namespace on the cluster. Empty means the
	// system namespace.
	// +nullable
	// +optional
	AgentNamespace string `json:"agentNamespace,omitempty"`

	// privateRepoURL goes before the names of the agent's images. Empty means
	// the names as they are.
	// +nullable
	// +optional
	PrivateRepoURL string `json:"privateRepoURL,omitempty"`

	// templateValues are values, of any form, for templates that are filled in
	// per cluster.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +nullable
	// +optional
	TemplateValues *runtime.RawExtension `json:"templateValues,omitempty"`

	// agentTolerations are further tolerations of the agent's pod.
	// +nullable
	// +optional
	AgentTolerations []corev1.Toleration `json:"agentTolerations,omitempty"`

	// agentAffinity is the affinity of the agent's pod. Empty means the chart's
	// own.
	// +nullable
	// +optional
	AgentAffinity *corev1.Affinity `json:"agentAffinity,omitempty"`

	// agentResources are what the agent's container requests and may use. Empty
	// means the chart's own.
	// +nullable
	// +optional
	AgentResources *corev1.ResourceRequirements `json:"agentResources,omitempty"`

	// hostNetwork runs the agent in its node's network, so that it can deliver
	// the cluster's network plugin. Empty means no.
	// +nullable
	// +optional
	HostNetwork *bool `json:"hostNetwork,omitempty"`

	// agentSchedulingCustomization is the agent's priority and disruption budget.
	// Empty means neither.
	// +nullable
	// +optional
	AgentSchedulingCustomization *AgentSchedulingCustomization `json:"agentSchedulingCustomization,omitempty"`

	// agentPullSecrets are the Secrets with which the agent's images are pulled.
	// Null means those of the chart, an empty list none.
	// +nullable
	// +optional
	AgentPullSecrets *[]corev1.LocalObjectReference `json:"agentPullSecrets,omitempty"`
}

// AgentSchedulingCustomization is an agent's priority and disruption budget.
type AgentSchedulingCustomization struct {
	// priorityClass is the PriorityClass to make for the agent. Empty means none.
	// +optional
	PriorityClass *AgentPriorityClass `json:"priorityClass,omitempty"`

	// podDisruptionBudget is the budget to make for the agent. Empty means none.
	// +optional
	PodDisruptionBudget *AgentPodDisruptionBudget `json:"podDisruptionBudget,omitempty"`
}

// AgentPriorityClass is the PriorityClass of an agent.
type AgentPriorityClass struct {
	// value is the priority.
	// +optional
	Value int `json:"value,omitempty"`

	// preemptionPolicy is Never or PreemptLowerPriority. Empty means the latter.
	// +optional
	PreemptionPolicy *corev1.PreemptionPolicy `json:"preemptionPolicy,omitempty"`
}

// AgentPodDisruptionBudget is the disruption budget of an agent; set one field.
type AgentPodDisruptionBudget struct {
	// minAvailable is how many agents must stay, as a number or a percentage.
	// +optional
	MinAvailable string `json:"minAvailable,omitempty"`

	// maxUnavailable is how many agents may go, as a number or a percentage.
	// +optional
	MaxUnavailable string `json:"maxUnavailable,omitempty"`
}

// ClusterStatus is what the hub knows of a cluster.
type ClusterStatus struct {
	// conditions are about the registration and the agent.
	// +optional
	Conditions []GenericCondition `json:"conditions,omitempty"`

	// namespace is the member's namespace on the hub. Empty until there is one.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// summary counts what is deployed to the cluster, by state.
	// +optional
	Summary DeploymentSummary `json:"summary,omitzero"`

	// resourceCounts counts the resources that are deployed, by state.
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

	// agentEnvVarsHash is the hash of spec.agentEnvVars as last installed.
	// +nullable
	// +optional
	AgentEnvVarsHash string `json:"agentEnvVarsHash,omitempty"`

	// agentPrivateRepoURL is spec.privateRepoURL as last installed.
	// +nullable
	// +optional
	AgentPrivateRepoURL string `json:"agentPrivateRepoURL,omitempty"`

	// agentHostNetwork is spec.hostNetwork as last installed.
	// +nullable
	// +optional
	AgentHostNetwork bool `json:"agentHostNetwork,omitempty"`

	// agentDeployedGeneration is the spec.redeployAgentGeneration that was last
	// installed.
	// +nullable
	// +optional
	AgentDeployedGeneration *int64 `json:"agentDeployedGeneration,omitempty"`

	// agentMigrated is true once the agent is of the present form.
	// +optional
	AgentMigrated bool `json:"agentMigrated,omitempty"`

	// agentNamespaceMigrated is true once the agent is in its present namespace.
	// +optional
	AgentNamespaceMigrated bool `json:"agentNamespaceMigrated,omitempty"`

	// cattleNamespaceMigrated is true once nothing is left in an older system
	// namespace.
	// +optional
	CattleNamespaceMigrated bool `json:"cattleNamespaceMigrated,omitempty"`

	// agentAffinityHash is the hash of spec.agentAffinity as last installed.
	// +optional
	AgentAffinityHash string `json:"agentAffinityHash,omitempty"`

	// agentResourcesHash is the hash of spec.agentResources as last installed.
	// +nullable
	// +optional
	AgentResourcesHash string `json:"agentResourcesHash,omitempty"`

	// agentTolerationsHash is the hash of spec.agentTolerations as last
	// installed.
	// +nullable
	// +optional
	AgentTolerationsHash string `json:"agentTolerationsHash,omitempty"`

	// agentSchedulingCustomizationHash is the hash of
	// spec.agentSchedulingCustomization as last installed.
	// +optional
	AgentSchedulingCustomizationHash string `json:"agentSchedulingCustomizationHash,omitempty"`

	// agentConfigChanged is true while the installed agent is not the one that
	// is wanted.
	// +optional
	AgentConfigChanged bool `json:"agentConfigChanged,omitempty"`

	// apiServerURL is the hub's URL as the agent was told.
	// +nullable
	// +optional
	APIServerURL string `json:"apiServerURL,omitempty"`

	// apiServerCAHash is the hash of the hub's CA as the agent was told.
	// +nullable
	// +optional
	APIServerCAHash string `json:"apiServerCAHash,omitempty"`

	// agentTLSMode is how the agent verifies the hub: strict, or system-store.
	// +nullable
	// +optional
	AgentTLSMode string `json:"agentTLSMode,omitempty"`

	// garbageCollectionInterval is how often the agent looks for what it should
	// remove.
	// +optional
	GarbageCollectionInterval *metav1.Duration `json:"garbageCollectionInterval,omitempty"`

	// display are texts for the columns of kubectl get.
	// +optional
	Display ClusterDisplay `json:"display,omitzero"`

	// agent is when the agent last reported, and where it runs.
	// +optional
	Agent ClusterAgentStatus `json:"agent,omitzero"`

	// scheduled is always false: fleetgate has no time windows.
	// +optional
	Scheduled bool `json:"scheduled,omitempty"`

	// activeSchedule is always false.
	// +optional
	ActiveSchedule bool `json:"activeSchedule,omitempty"`
}

// ClusterDisplay are texts for the columns of kubectl get.
type ClusterDisplay struct {
	// readyBundles is how many of the works for the cluster are available, as
	// "1/2".
	// +optional
	ReadyBundles string `json:"readyBundles,omitempty"`

	// readyNodes is how many of the cluster's nodes are ready, as "1/2". Empty
	// if the agent does not report nodes.
	// +optional
	ReadyNodes string `json:"readyNodes,omitempty"`

	// sampleNode is the name of one of its nodes. Empty if the agent does not
	// report nodes.
	// +optional
	SampleNode string `json:"sampleNode,omitempty"`

	// state is one word for the whole, such as WaitCheckIn.
	// +nullable
	// +optional
	State string `json:"state,omitempty"`
}

// ClusterAgentStatus is when an agent last reported, and where it runs.
type ClusterAgentStatus struct {
	// lastSeen is when the agent last reported: exactly, once it is silent; while it is
	// heard, in steps of 15 minutes, so that no write is spent on it. Null means never.
	// +nullable
	// +optional
	LastSeen metav1.Time `json:"lastSeen"`

	// namespace is the agent's namespace on the cluster.
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

	// items are the clusters.
	Items []Cluster `json:"items"`
}
