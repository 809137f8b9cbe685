// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition types of a ClusterRegistrationToken.
const (
	// TokenConditionReady is True once the Secret with the agent's values exists and its token
	// works.
	TokenConditionReady = "Ready"
	// TokenConditionRestricted is False if the token bearer, including one who found the token, can
	// register clusters that placements use without an approval.
	TokenConditionRestricted = "Restricted"
)

// Reasons of a ClusterRegistrationToken's condition Restricted.
const (
	// TokenReasonRestricted goes with True.
	TokenReasonRestricted = "Restricted"
	// TokenReasonPermissive goes with False. The message says what the token permits.
	TokenReasonPermissive = "Permissive"
)

// Reasons of a ClusterRegistrationToken's condition Ready.
const (
	// TokenReasonIssued goes with True.
	TokenReasonIssued = "Issued"
	// TokenReasonExpired goes with False: the time to live has elapsed.
	TokenReasonExpired = "Expired"
	// TokenReasonServerURLMissing goes with False: the gateway has no URL of the hub for members,
	// so the values would be unusable.
	TokenReasonServerURLMissing = "ServerURLMissing"
	// TokenReasonSecretConflict goes with False: a Secret with the token's name exists that the hub
	// did not create.
	TokenReasonSecretConflict = "SecretConflict"
	// TokenReasonNamespaceNotAllowed goes with False: clusters cannot register in this namespace.
	TokenReasonNamespaceNotAllowed = "NamespaceNotAllowed"
	// TokenReasonUseLimitReached goes with False: the maximum number of clusters has registered with it.
	TokenReasonUseLimitReached = "UseLimitReached"
	// TokenReasonInvalid goes with False: an annotation of the token cannot be parsed, so no
	// cluster can register.
	TokenReasonInvalid = "InvalidTerms"
)

// Annotations on a ClusterRegistrationToken. An administrator of its namespace writes them.
const (
	// AnnotationAllowedLabels is the keys of the labels that agents can set, separated by commas. A
	// key that ends with * matches any key with that prefix. A * alone matches any key except those
	// of Kubernetes and cloud providers (see IsProviderLabel), which must be listed. If unset,
	// DefaultAllowedLabels, or none with --registration-policy=strict. Empty allows none.
	AnnotationAllowedLabels = "fleetgate.io/allowed-labels"
	// DefaultAllowedLabels allows all labels that nobody reserves, and what the agent finds out about
	// its cluster in Azure.
	DefaultAllowedLabels = "*," + LabelLocation + "," + LabelResourceGroup + "," + LabelSubscription
	// AnnotationApproval is ApprovalAuto or ApprovalManual: whether placements can use a cluster
	// that registers with the token without an approval. Any other value means ApprovalManual. If
	// unset, ApprovalAuto for a token that expires, and registration.infiniteTokenApproval for others; with
	// --registration-policy=strict, ApprovalManual.
	AnnotationApproval = "fleetgate.io/approval"
	// ApprovalAuto allows placements to use a cluster as soon as it has joined.
	ApprovalAuto = "auto"
	// ApprovalManual taints its MemberCluster until a user removes the taint.
	ApprovalManual = "manual"
	// AnnotationForCluster names the only Cluster for which the token is valid. The token then also
	// transfers that Cluster from its current agent to a new one.
	AnnotationForCluster = "fleetgate.io/for-cluster"
	// AnnotationUses is how many clusters can register with the token, from 1 to MaxUses. If unset,
	// one for a token with AnnotationForCluster, and any number for others.
	AnnotationUses = "fleetgate.io/uses"
	// MaxUses limits AnnotationUses, because the hub records each use.
	MaxUses = 1000
)

// AnnotationUsedBy is on a ClusterRegistrationToken with a limited number of uses. Its value is the
// registered clusters: the name of the Cluster, a slash and the UID of the ClusterRegistration,
// separated by commas. The hub writes it. An administrator removes it to reset the uses.
const AnnotationUsedBy = "fleetgate.io/used-by"

// ClusterRegistrationToken allows clusters to register in its namespace. Any number of clusters can
// use one, until it expires or is deleted.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:JSONPath=`.status.secretName`,name="Secret-Name",type=string
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.status.expires`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
type ClusterRegistrationToken struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the lifetime of the token. If unset, it does not expire.
	// +optional
	Spec ClusterRegistrationTokenSpec `json:"spec,omitzero"`

	// status is where the agent's values are, and until when they are valid.
	// +optional
	Status ClusterRegistrationTokenStatus `json:"status,omitzero"`
}

// ClusterRegistrationTokenSpec is the lifetime of a token.
type ClusterRegistrationTokenSpec struct {
	// ttl is the lifetime from creation, as a Go duration such as 240h; days and weeks are not
	// supported. If null, zero or negative, the token does not expire.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self == '0' || (self.matches('^-?([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$') && duration(self) <= duration('2562047h') && duration(self) >= duration('-2562047h'))",message="must be a valid Go duration using units ns, us, µs, ms, s, m, h (e.g. 15s, 5m, 2h, 1h30m); units like d (days) or w (weeks) are not supported"
	// +nullable
	// +optional
	TTL *metav1.Duration `json:"ttl,omitempty"`
}

// ClusterRegistrationTokenStatus is where a token's values are, and until when they are valid.
type ClusterRegistrationTokenStatus struct {
	// expires is when the token expires. If unset, never.
	// +optional
	Expires *metav1.Time `json:"expires,omitempty"`

	// secretName is the Secret in the same namespace whose key "values" holds the agent's
	// values.yaml. Unset until it exists.
	// +nullable
	// +optional
	SecretName string `json:"secretName,omitempty"`

	// conditions are Ready and Restricted.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterRegistrationTokenList is a list of ClusterRegistrationTokens.
//
// +kubebuilder:object:root=true
type ClusterRegistrationTokenList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterRegistrationToken `json:"items"`
}

// Lifetime returns how long a token with that spec.ttl is valid from its creation. If ttl is nil,
// zero or negative, the lifetime is infinite and d is zero.
func Lifetime(ttl *metav1.Duration) (d time.Duration, infinite bool) {
	if ttl == nil || ttl.Duration <= 0 {
		return 0, true
	}
	return ttl.Duration, false
}
