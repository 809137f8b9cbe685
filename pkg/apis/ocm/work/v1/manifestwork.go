// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// ManifestWorkFinalizer is on every ManifestWork that an agent has taken up. The agent
	// takes it off when nothing of the work is on the cluster any more that has to go.
	ManifestWorkFinalizer = "cluster.open-cluster-management.io/manifest-work-cleanup"

	// ConfigSpecHashAnnotation is on objects that are applied with ignoreFields: the hash
	// of what was applied, without the fields that are ignored where they are present. The
	// agent writes it.
	ConfigSpecHashAnnotation = "open-cluster-management.io/config-spec-hash"

	// DefaultFieldManager is under which name the agent writes objects, unless a
	// server-side apply names another that begins with it.
	DefaultFieldManager = "work-agent"
)

// ManifestWork is a list of manifests for one cluster: the one whose name its namespace
// has.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
type ManifestWork struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the cluster is to have.
	// +optional
	Spec ManifestWorkSpec `json:"spec,omitzero"`

	// status is what became of it. The agent writes it.
	// +optional
	Status ManifestWorkStatus `json:"status,omitzero"`
}

// ManifestWorkSpec is what a cluster is to have, and how it gets it.
type ManifestWorkSpec struct {
	// workload holds the manifests.
	// +optional
	Workload ManifestsTemplate `json:"workload,omitzero"`

	// deleteOption is what stays on the cluster when manifests, or all of the work, go.
	// Empty: nothing.
	// +optional
	DeleteOption *DeleteOption `json:"deleteOption,omitempty"`

	// manifestConfigs say how single manifests are brought, and what is told of them. Of
	// several that are for one manifest the first counts.
	// +optional
	ManifestConfigs []ManifestConfigOption `json:"manifestConfigs,omitempty"`

	// executor is who must have the right to do on the cluster what the work asks for.
	// Empty: the agent's own rights suffice.
	// +optional
	Executor *ManifestWorkExecutor `json:"executor,omitempty"`
}

// ManifestsTemplate holds manifests.
type ManifestsTemplate struct {
	// manifests are objects as they would be given to kubectl apply, each with its
	// apiVersion, kind and name.
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

// DeletePropagationPolicyType is what becomes of objects that a work does not ask for any
// more.
//
// +kubebuilder:validation:Enum=Foreground;Orphan;SelectivelyOrphan
type DeletePropagationPolicyType string

const (
	// DeletePropagationForeground removes them, and the work is there until they are gone.
	DeletePropagationForeground DeletePropagationPolicyType = "Foreground"
	// DeletePropagationOrphan leaves all of them on the cluster.
	DeletePropagationOrphan DeletePropagationPolicyType = "Orphan"
	// DeletePropagationSelectivelyOrphan leaves those that rules name.
	DeletePropagationSelectivelyOrphan DeletePropagationPolicyType = "SelectivelyOrphan"
)

// DeleteOption is what stays on the cluster.
type DeleteOption struct {
	// propagationPolicy is Foreground to remove everything, Orphan to leave everything, or
	// SelectivelyOrphan to leave what selectivelyOrphans names. It defaults to Foreground.
	// +kubebuilder:default=Foreground
	// +optional
	PropagationPolicy DeletePropagationPolicyType `json:"propagationPolicy,omitempty"`

	// selectivelyOrphans names what stays, with policy SelectivelyOrphan.
	// +optional
	SelectivelyOrphan *SelectivelyOrphan `json:"selectivelyOrphans,omitempty"`

	// ttlSecondsAfterFinished is after how many seconds the hub deletes a work whose
	// condition Complete has become True. Empty: never.
	// +optional
	TTLSecondsAfterFinished *int64 `json:"ttlSecondsAfterFinished,omitempty"`
}

// SelectivelyOrphan names what stays on the cluster.
type SelectivelyOrphan struct {
	// orphaningRules name one object each, exactly.
	// +optional
	OrphaningRules []OrphaningRule `json:"orphaningRules,omitempty"`
}

// OrphaningRule names one object.
type OrphaningRule struct {
	// group is the API group; empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`
	// resource is the kind's name in URLs, as in deployments.
	Resource string `json:"resource"`
	// namespace is empty for an object that is in none.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name is the object's.
	Name string `json:"name"`
}

// ResourceIdentifier names objects of one kind.
type ResourceIdentifier struct {
	// group is the API group; empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`
	// resource is the kind's name in URLs, as in deployments.
	Resource string `json:"resource"`
	// name is the object's. An asterisk in it stands for any text.
	Name string `json:"name"`
	// namespace is empty for objects that are in none. An asterisk in it stands for any
	// text.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// ManifestConfigOption says how the manifests that it names are brought, and what is told
// of them.
type ManifestConfigOption struct {
	// resourceIdentifier names the manifests.
	ResourceIdentifier ResourceIdentifier `json:"resourceIdentifier"`

	// feedbackRules say which values of the object the status reports.
	// +optional
	FeedbackRules []FeedbackRule `json:"feedbackRules,omitempty"`

	// feedbackScrapeType is how soon values are reported. An agent of fleetgate reports
	// all of them by watch, whichever it is. It defaults to Poll.
	// +kubebuilder:default=Poll
	// +optional
	FeedbackScrapeType FeedbackScrapeType `json:"feedbackScrapeType,omitempty"`

	// updateStrategy is how the object is written. Empty: Update.
	// +optional
	UpdateStrategy *UpdateStrategy `json:"updateStrategy,omitempty"`

	// conditionRules make conditions of the manifest from the object, and conditions of
	// the work from those of its manifests.
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
	// FeedbackPoll reports values from time to time.
	FeedbackPoll FeedbackScrapeType = "Poll"
	// FeedbackWatch reports values when they change.
	FeedbackWatch FeedbackScrapeType = "Watch"
)

// ManifestWorkExecutor is who must have the right to do what a work asks for.
type ManifestWorkExecutor struct {
	// subject is an account on the cluster.
	// +optional
	Subject ManifestWorkExecutorSubject `json:"subject,omitzero"`
}

// ManifestWorkExecutorSubjectType is a kind of subject.
//
// +kubebuilder:validation:Enum=ServiceAccount
type ManifestWorkExecutorSubjectType string

// ExecutorSubjectTypeServiceAccount is a ServiceAccount of the cluster, the only kind there is.
const ExecutorSubjectTypeServiceAccount ManifestWorkExecutorSubjectType = "ServiceAccount"

// ManifestWorkExecutorSubject is one account.
type ManifestWorkExecutorSubject struct {
	// type is ServiceAccount.
	Type ManifestWorkExecutorSubjectType `json:"type"`
	// serviceAccount is the account, which need not exist while it needs no right.
	// +optional
	ServiceAccount *ManifestWorkSubjectServiceAccount `json:"serviceAccount,omitempty"`
}

// ManifestWorkSubjectServiceAccount is a ServiceAccount of the cluster.
type ManifestWorkSubjectServiceAccount struct {
	// namespace is the account's.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)$`
	Namespace string `json:"namespace"`
	// name is the account's.
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

	// items are the works.
	Items []ManifestWork `json:"items"`
}
