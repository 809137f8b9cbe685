// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Condition types of a ClusterRegistration.
const (
	// RegistrationConditionGranted is True once status.sealedToken holds the member's token. While
	// it is False its message is the cause.
	RegistrationConditionGranted = "Granted"
)

// Reasons of a ClusterRegistration's condition Granted.
const (
	// RegistrationReasonGranted goes with True.
	RegistrationReasonGranted = "Granted"
	// RegistrationReasonInvalid goes with False: the request is invalid, for example without a key
	// or a clientID.
	RegistrationReasonInvalid = "InvalidRequest"
	// RegistrationReasonConflict goes with False: the cluster of the clientID belongs to another
	// key, or the requested name to another cluster.
	RegistrationReasonConflict = "ClusterConflict"
	// RegistrationReasonUnproven goes with False: spec.tokenProof matches no existing
	// ClusterRegistrationToken. The hub deletes the request after a minute, so that its agent can
	// retry with another token.
	RegistrationReasonUnproven = "TokenUnproven"
	// RegistrationReasonTokenUseLimitReached goes with False: the maximum number of clusters has registered
	// with the token. The hub deletes the request after a minute.
	RegistrationReasonTokenUseLimitReached = "TokenUseLimitReached"
	// RegistrationReasonTokenInvalid goes with False: an annotation of the token cannot be parsed.
	// The hub deletes the request after a minute.
	RegistrationReasonTokenInvalid = "TokenInvalid"
	// RegistrationReasonWaiting goes with False: the member's namespace or account does not exist
	// yet.
	RegistrationReasonWaiting = "WaitingForMember"
)

// ClusterRegistration is an agent's request to register its cluster. The agent creates it with a
// registration token and reads the result from its status.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:JSONPath=`.status.clusterName`,name="Cluster-Name",type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.clusterLabels`,name="Labels",type=string
type ClusterRegistration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the agent's request. Immutable. The rule does not cover the values of publicKey and
	// tokenProof, because CEL cannot read bytes in standard base64. The name of the object is
	// derived from the key and the proof from the other fields, and the gateway grants no request
	// whose name or proof does not match.
	//
	// +kubebuilder:validation:XValidation:rule="has(self.clientID) == has(oldSelf.clientID) && (!has(self.clientID) || self.clientID == oldSelf.clientID) && has(self.clientRandom) == has(oldSelf.clientRandom) && (!has(self.clientRandom) || self.clientRandom == oldSelf.clientRandom) && has(self.clusterLabels) == has(oldSelf.clusterLabels) && (!has(self.clusterLabels) || self.clusterLabels == oldSelf.clusterLabels)",message="spec is immutable: create another ClusterRegistration instead"
	// +optional
	Spec ClusterRegistrationSpec `json:"spec,omitzero"`

	// status is the result. The hub writes it.
	// +optional
	Status ClusterRegistrationStatus `json:"status,omitzero"`
}

// ClusterRegistrationSpec is an agent's request.
type ClusterRegistrationSpec struct {
	// clientID identifies this cluster: the request is assigned the Cluster of the same namespace
	// with this clientID, or a new one. It should be hard to guess.
	// +nullable
	// +optional
	ClientID string `json:"clientID,omitempty"`

	// clientRandom distinguishes this request from earlier ones with the same clientID.
	// +nullable
	// +optional
	ClientRandom string `json:"clientRandom,omitempty"`

	// clusterLabels are the labels of the Cluster, if the hub creates one for this request; an
	// existing Cluster keeps its labels. Reserved labels are dropped.
	// +nullable
	// +optional
	ClusterLabels map[string]string `json:"clusterLabels,omitempty"`

	// publicKey is the agent's public key, to which the hub seals the token. The private key never
	// leaves the member.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	PublicKey []byte `json:"publicKey,omitempty"`

	// tokenProof proves that the client held the token of the ClusterRegistrationToken in the label
	// fleet.cattle.io/registration-token: an HMAC-SHA256 of the other fields with that token as
	// key. Not needed for a cluster that has registered before.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TokenProof []byte `json:"tokenProof,omitempty"`

	// verificationKey is the public part of an Ed25519 key that belongs to publicKey. The hub
	// stores it. With the private part the agent can transfer its Cluster to another key.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	VerificationKey []byte `json:"verificationKey,omitempty"`

	// previousSignature is an Ed25519 signature of the other fields, without tokenProof, by the
	// current key of the Cluster. It transfers the Cluster to publicKey. Unset unless an agent
	// changes its key.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	PreviousSignature []byte `json:"previousSignature,omitempty"`
}

// ClusterRegistrationStatus is the result of a request.
type ClusterRegistrationStatus struct {
	// clusterName is the Cluster that the request was assigned.
	// +nullable
	// +optional
	ClusterName string `json:"clusterName,omitempty"`

	// granted is true once the member's account and rights exist.
	// +optional
	Granted bool `json:"granted,omitempty"`

	// sealedToken is the member's token for the hub, sealed (HPKE) to spec.publicKey, so that only
	// the agent can open it. Unset until the request is granted.
	// +kubebuilder:validation:MaxLength=65536
	// +optional
	SealedToken []byte `json:"sealedToken,omitempty"`

	// credentialUID is the UID of the Secret to which the token is bound. If that Secret is
	// deleted, the token is invalid and the hub removes the request.
	// +optional
	CredentialUID types.UID `json:"credentialUID,omitempty"`

	// conditions has Granted.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterRegistrationList is a list of ClusterRegistrations.
//
// +kubebuilder:object:root=true
type ClusterRegistrationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterRegistration `json:"items"`
}
