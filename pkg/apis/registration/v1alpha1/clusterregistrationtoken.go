// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition types of a ClusterRegistrationToken.
const (
	// TokenConditionReady is True once the Secret with the agent's values is
	// there and its token works.
	TokenConditionReady = "Ready"
	// TokenConditionRestricted is False while whoever holds the token, also somebody who
	// found it, lets in clusters that nobody looks at before placements choose them.
	TokenConditionRestricted = "Restricted"
)

// Reasons of a ClusterRegistrationToken's condition Restricted.
const (
	// TokenReasonRestricted goes with True.
	TokenReasonRestricted = "Restricted"
	// TokenReasonPermissive goes with False. The message says what the token lets in.
	TokenReasonPermissive = "Permissive"
)

// Reasons of a ClusterRegistrationToken's condition Ready.
const (
	// TokenReasonIssued goes with True.
	TokenReasonIssued = "Issued"
	// TokenReasonExpired goes with False: the time to live is over.
	TokenReasonExpired = "Expired"
	// TokenReasonServerURLMissing goes with False: the gateway was not told
	// under which URL members reach the hub, so the values would be useless.
	TokenReasonServerURLMissing = "ServerURLMissing"
	// TokenReasonSecretNotOurs goes with False: a Secret with the token's name
	// exists that is not the hub's.
	TokenReasonSecretNotOurs = "SecretNotOurs"
	// TokenReasonNamespaceNotAllowed goes with False: clusters do not register in this
	// namespace.
	TokenReasonNamespaceNotAllowed = "NamespaceNotAllowed"
	// TokenReasonUsedUp goes with False: as many clusters as may have registered with it.
	TokenReasonUsedUp = "UsedUp"
	// TokenReasonInvalid goes with False: an annotation of the token cannot be read, so
	// that it lets nobody in.
	TokenReasonInvalid = "InvalidTerms"
)

// Annotations on a ClusterRegistrationToken, written by whoever administers its
// namespace.
const (
	// AnnotationAllowedLabels are the keys of the labels that agents may bring,
	// separated by commas. A key that ends with * stands for all that begin so.
	// Without the annotation it is DefaultAllowedLabels; empty allows none.
	AnnotationAllowedLabels = "fleetgate.io/allowed-labels"
	// DefaultAllowedLabels are those of the reference's examples.
	DefaultAllowedLabels = "env,example,foo,bar"
	// AnnotationApproval is ApprovalAuto or ApprovalManual: whether clusters that
	// register with the token may be used at once. Anything else means the latter.
	AnnotationApproval = "fleetgate.io/approval"
	// ApprovalAuto lets a cluster take part as soon as it has joined.
	ApprovalAuto = "auto"
	// ApprovalManual taints its MemberCluster until somebody takes the taint away.
	ApprovalManual = "manual"
	// AnnotationForCluster names the one Cluster for which the token may be used. It
	// then also moves that Cluster from the agent that has it to a new one.
	AnnotationForCluster = "fleetgate.io/for-cluster"
	// AnnotationUses is how many clusters may register with the token, from 1 to MaxUses.
	// Without the annotation it is one for a token with AnnotationForCluster, and any
	// number for others.
	AnnotationUses = "fleetgate.io/uses"
	// MaxUses bounds AnnotationUses: the hub writes down each use.
	MaxUses = 1000
)

// AnnotationUsedBy, on a ClusterRegistrationToken with a limited number of uses, is who was
// let in with it: the name of the Cluster, a slash and the UID of the ClusterRegistration,
// separated by commas. The hub writes it; whoever administers the token takes it off to
// let it be used anew.
const AnnotationUsedBy = "fleetgate.io/used-by"

// ClusterRegistrationToken lets clusters register in its namespace. Any number
// of clusters may use one, until it expires or is deleted.
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

	// spec is how long the token lives. Empty means for ever.
	// +optional
	Spec ClusterRegistrationTokenSpec `json:"spec,omitzero"`

	// status says where the values are, and until when they work.
	// +optional
	Status ClusterRegistrationTokenStatus `json:"status,omitzero"`
}

// ClusterRegistrationTokenSpec is how long a token lives.
type ClusterRegistrationTokenSpec struct {
	// ttl is how long the token lives from its creation, as a Go duration such
	// as 240h. Null, zero and negative mean for ever. Days and weeks are not
	// units.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self == '0' || (self.matches('^-?([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$') && duration(self) <= duration('2562047h') && duration(self) >= duration('-2562047h'))",message="must be a valid Go duration using units ns, us, µs, ms, s, m, h (e.g. 15s, 5m, 2h, 1h30m); units like d (days) or w (weeks) are not supported"
	// +nullable
	// +optional
	TTL *metav1.Duration `json:"ttl,omitempty"`
}

// ClusterRegistrationTokenStatus is where a token's values are, and until when
// they work.
type ClusterRegistrationTokenStatus struct {
	// expires is when the token stops working. Empty means never.
	// +optional
	Expires *metav1.Time `json:"expires,omitempty"`

	// secretName is the Secret, in the same namespace, whose key "values" holds
	// the agent's values.yaml. Empty until it is there.
	// +nullable
	// +optional
	SecretName string `json:"secretName,omitempty"`

	// conditions say whether the token can be used, and if not, what to do.
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

	// items are the tokens.
	Items []ClusterRegistrationToken `json:"items"`
}

// Lifetime is how long a token with that spec.ttl lives from its creation. A
// ttl that is nil, zero or negative is infinite; the duration is then zero.
func Lifetime(ttl *metav1.Duration) (d time.Duration, infinite bool) {
	if ttl == nil || ttl.Duration <= 0 {
		return 0, true
	}
	return ttl.Duration, false
}
