// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// ManifestWorkFinalizer is on every ManifestWork that an agent handles. The agent removes it
	// when all objects of the work that must be deleted are gone from the cluster.
	ManifestWorkFinalizer = "cluster.open-cluster-management.io/manifest-work-cleanup"

	// ConfigSpecHashAnnotation is on objects that are applied with ignoreFields. Its value is the
	// hash of the applied manifest, without fields with condition OnSpokePresent. The agent writes
	// it.
	ConfigSpecHashAnnotation = "open-cluster-management.io/config-spec-hash"

	// DefaultFieldManager is the field manager of the agent. A server-side apply can set another
	// one with this prefix.
	DefaultFieldManager = "work-agent"
)

// ManifestWork is a list of manifests for the cluster whose name is its namespace. The agent of
// that cluster applies them.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
type ManifestWork struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +optional
	Spec ManifestWorkSpec `json:"spec,omitzero"`

	// status is the observed state. The agent writes it.
	// +optional
	Status ManifestWorkStatus `json:"status,omitzero"`
}

// ManifestWorkSpec is the desired objects of a cluster, and how they are applied.
type ManifestWorkSpec struct {
	// workload holds the manifests.
	// +optional
	Workload ManifestsTemplate `json:"workload,omitzero"`

	// deleteOption sets which objects stay on the cluster when manifests or the work are deleted.
	// If unset, none.
	// +optional
	DeleteOption *DeleteOption `json:"deleteOption,omitempty"`

	// manifestConfigs configure single manifests: how they are applied and what is reported. If
	// several match a manifest, the first that sets a field counts.
	// +optional
	ManifestConfigs []ManifestConfigOption `json:"manifestConfigs,omitempty"`

	// executor is the account that must have the rights on the cluster for the work. If unset, the
	// rights of the agent count.
	// +optional
	Executor *ManifestWorkExecutor `json:"executor,omitempty"`
}

// ManifestsTemplate holds manifests.
type ManifestsTemplate struct {
	// manifests are objects as for kubectl apply, each with apiVersion, kind and name.
	// +optional
	Manifests []Manifest `json:"manifests,omitempty"`
}

// Manifest is one object of any kind.
//
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:validation:XEmbeddedResource
type Manifest struct {
	runtime.RawExtension `json:",inline"`
}

// DeletePropagationPolicyType is what happens to objects that are no longer in a work.
//
// +kubebuilder:validation:Enum=Foreground;Orphan;SelectivelyOrphan
type DeletePropagationPolicyType string

const (
	// DeletePropagationForeground deletes them. The work stays until they are gone.
	DeletePropagationForeground DeletePropagationPolicyType = "Foreground"
	// DeletePropagationOrphan retains all of them on the cluster.
	DeletePropagationOrphan DeletePropagationPolicyType = "Orphan"
	// DeletePropagationSelectivelyOrphan retains those that rules select.
	DeletePropagationSelectivelyOrphan DeletePropagationPolicyType = "SelectivelyOrphan"
)

// DeleteOption sets which objects stay on the cluster.
type DeleteOption struct {
	// propagationPolicy is Foreground to delete everything, Orphan to retain everything, or
	// SelectivelyOrphan to retain what selectivelyOrphans selects. Default Foreground.
	// +kubebuilder:default=Foreground
	// +optional
	PropagationPolicy DeletePropagationPolicyType `json:"propagationPolicy,omitempty"`

	// selectivelyOrphans selects the objects to retain, for policy SelectivelyOrphan.
	// +optional
	SelectivelyOrphan *SelectivelyOrphan `json:"selectivelyOrphans,omitempty"`

	// ttlSecondsAfterFinished is how many seconds after the condition Complete became True the hub
	// deletes the work. If unset, never.
	// +optional
	TTLSecondsAfterFinished *int64 `json:"ttlSecondsAfterFinished,omitempty"`
}

// SelectivelyOrphan selects the objects to retain on the cluster.
type SelectivelyOrphan struct {
	// orphaningRules identify one object each.
	// +optional
	OrphaningRules []OrphaningRule `json:"orphaningRules,omitempty"`
}

// OrphaningRule identifies one object.
type OrphaningRule struct {
	// group is the API group; empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`
	// resource is the plural name of the kind, such as deployments.
	Resource string `json:"resource"`
	// namespace of the object; empty if cluster-scoped.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	Name string `json:"name"`
}

// ResourceIdentifier selects objects of one kind.
type ResourceIdentifier struct {
	// group is the API group; empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`
	// resource is the plural name of the kind, such as deployments.
	Resource string `json:"resource"`
	// name of the object. An asterisk matches any text.
	Name string `json:"name"`
	// namespace of the objects; empty if cluster-scoped. An asterisk matches any text.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// ManifestConfigOption sets how the matching manifests are applied, and what is reported.
type ManifestConfigOption struct {
	// resourceIdentifier selects the manifests.
	ResourceIdentifier ResourceIdentifier `json:"resourceIdentifier"`

	// feedbackRules select the values of the object to report.
	// +optional
	FeedbackRules []FeedbackRule `json:"feedbackRules,omitempty"`

	// feedbackScrapeType is how soon values are reported. fleetgate's agent reports all of them by
	// watch, with either type. Default Poll.
	// +kubebuilder:default=Poll
	// +optional
	FeedbackScrapeType FeedbackScrapeType `json:"feedbackScrapeType,omitempty"`

	// updateStrategy is how the object is written. If unset, Update.
	// +optional
	UpdateStrategy *UpdateStrategy `json:"updateStrategy,omitempty"`

	// conditionRules compute conditions of the manifest from the object. The work's conditions
	// summarize them.
	// +listType=map
	// +listMapKey=condition
	// +optional
	ConditionRules []ConditionRule `json:"conditionRules,omitempty"`
}

// FeedbackScrapeType is how soon values are reported.
//
// +kubebuilder:validation:Enum=Poll;Watch
type FeedbackScrapeType string

const (
	// FeedbackPoll reports values periodically.
	FeedbackPoll FeedbackScrapeType = "Poll"
	// FeedbackWatch reports values when they change.
	FeedbackWatch FeedbackScrapeType = "Watch"
)

// ManifestWorkExecutor is the account that must have the rights for a work.
type ManifestWorkExecutor struct {
	// subject is an account on the cluster.
	// +optional
	Subject ManifestWorkExecutorSubject `json:"subject,omitzero"`
}

// ManifestWorkExecutorSubjectType is the kind of a subject.
//
// +kubebuilder:validation:Enum=ServiceAccount
type ManifestWorkExecutorSubjectType string

// ExecutorSubjectTypeServiceAccount is a ServiceAccount of the cluster, the only supported kind.
const ExecutorSubjectTypeServiceAccount ManifestWorkExecutorSubjectType = "ServiceAccount"

// ManifestWorkExecutorSubject is one account.
type ManifestWorkExecutorSubject struct {
	// type is ServiceAccount.
	Type ManifestWorkExecutorSubjectType `json:"type"`
	// serviceAccount is the account. It need not exist if no right is needed.
	// +optional
	ServiceAccount *ManifestWorkSubjectServiceAccount `json:"serviceAccount,omitempty"`
}

// ManifestWorkSubjectServiceAccount is a ServiceAccount of the cluster.
type ManifestWorkSubjectServiceAccount struct {
	// namespace of the account.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)$`
	Namespace string `json:"namespace"`
	// name of the account.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)$`
	Name string `json:"name"`
}

// ManifestWorkList is a list of ManifestWorks.
//
// +kubebuilder:object:root=true
type ManifestWorkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ManifestWork `json:"items"`
}
