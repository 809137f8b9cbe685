// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Condition types of a ClusterRegistration.
const (
	// RegistrationConditionGranted is True once status.sealedToken holds the
	// member's token. While it is False its message says what stands in the way.
	RegistrationConditionGranted = "Granted"
)

// Reasons of a ClusterRegistration's condition Granted.
const (
	// RegistrationReasonGranted goes with True.
	RegistrationReasonGranted = "Granted"
	// RegistrationReasonInvalid goes with False: the request itself is unusable,
	// for example without a key or a clientID.
	RegistrationReasonInvalid = "InvalidRequest"
	// RegistrationReasonConflict goes with False: the clientID's cluster belongs
	// to another key, or the wanted name to another cluster.
	RegistrationReasonConflict = "ClusterConflict"
	// RegistrationReasonUnproven goes with False: spec.tokenProof does not belong to a
	// ClusterRegistrationToken that is there. The request is deleted after a minute, so
	// that its agent can make it again with another token.
	RegistrationReasonUnproven = "TokenUnproven"
	// RegistrationReasonTokenUsedUp goes with False: as many clusters as the token allows
	// have registered with it. The request is deleted after a minute.
	RegistrationReasonTokenUsedUp = "TokenUsedUp"
	// RegistrationReasonTokenInvalid goes with False: what the token says of itself cannot
	// be read. The request is deleted after a minute.
	RegistrationReasonTokenInvalid = "TokenInvalid"
	// RegistrationReasonWaiting goes with False: the member's namespace or
	// account is not there yet.
	RegistrationReasonWaiting = "WaitingForMember"
)

// ClusterRegistration is an agent's request to register its cluster. The agent
// creates it with a registration token and waits for the answer in its status.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:JSONPath=`.status.clusterName`,name="Cluster-Name",type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.clusterLabels`,name="Labels",type=string
type ClusterRegistration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the agent says of itself. It never changes.
	// The rule leaves the values of publicKey and tokenProof out: CEL cannot read bytes
	// that are written in standard base64. The object's name is derived from the key,
	// the proof from all the rest, and the gateway grants nothing to a request whose
	// name or proof does not fit.
	//
	// +kubebuilder:validation:XValidation:rule="has(self.clientID) == has(oldSelf.clientID) && (!has(self.clientID) || self.clientID == oldSelf.clientID) && has(self.clientRandom) == has(oldSelf.clientRandom) && (!has(self.clientRandom) || self.clientRandom == oldSelf.clientRandom) && has(self.clusterLabels) == has(oldSelf.clusterLabels) && (!has(self.clusterLabels) || self.clusterLabels == oldSelf.clusterLabels)",message="spec is immutable: create another ClusterRegistration instead"
	// +optional
	Spec ClusterRegistrationSpec `json:"spec,omitzero"`

	// status is the hub's answer.
	// +optional
	Status ClusterRegistrationStatus `json:"status,omitzero"`
}

// ClusterRegistrationSpec is what an agent says of itself.
type ClusterRegistrationSpec struct {
	// clientID tells this cluster from every other: the request gets the Cluster
	// of the same namespace with this clientID, or a new one. It should be hard
	// to guess.
	// +nullable
	// +optional
	ClientID string `json:"clientID,omitempty"`

	// clientRandom tells this request from earlier ones with the same clientID.
	// +nullable
	// +optional
	ClientRandom string `json:"clientRandom,omitempty"`

	// clusterLabels are the labels of the Cluster, if the hub makes one for this
	// request; a Cluster that was there before keeps its own. Reserved labels
	// are left out.
	// +nullable
	// +optional
	ClusterLabels map[string]string `json:"clusterLabels,omitempty"`

	// publicKey is the public half of the agent's key pair: what the hub answers
	// is sealed to it. The private half never leaves the member.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	PublicKey []byte `json:"publicKey,omitempty"`

	// tokenProof shows that whoever made the request held the token of the
	// ClusterRegistrationToken that the label fleet.cattle.io/registration-token
	// names: an HMAC-SHA256 of the rest of the request with that token as key. A
	// request for a cluster that has registered before needs none.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TokenProof []byte `json:"tokenProof,omitempty"`

	// verificationKey is the public half of the Ed25519 key that belongs to publicKey.
	// The hub remembers it: with the private half the agent can hand its Cluster on to
	// another key.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	VerificationKey []byte `json:"verificationKey,omitempty"`

	// previousSignature is an Ed25519 signature of the rest of the request, without
	// tokenProof, by the key that has the Cluster so far: it moves the Cluster to
	// publicKey. Empty unless an agent changes its key.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	PreviousSignature []byte `json:"previousSignature,omitempty"`
}

// ClusterRegistrationStatus is the hub's answer to a request.
type ClusterRegistrationStatus struct {
	// clusterName is the Cluster that the request got.
	// +nullable
	// +optional
	ClusterName string `json:"clusterName,omitempty"`

	// granted is true once the member's account and rights exist.
	// +optional
	Granted bool `json:"granted,omitempty"`

	// sealedToken is the member's token for the hub, sealed (HPKE) to
	// spec.publicKey: everyone may read it, only the agent can open it. It is
	// empty until the request is granted.
	// +kubebuilder:validation:MaxLength=65536
	// +optional
	SealedToken []byte `json:"sealedToken,omitempty"`

	// credentialUID is the UID of the Secret to which the sealed token is bound. When
	// that Secret is gone the token is worth nothing, and the hub forgets the request.
	// +optional
	CredentialUID types.UID `json:"credentialUID,omitempty"`

	// conditions say how far the request has come, and what stands in the way.
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

	// items are the requests.
	Items []ClusterRegistration `json:"items"`
}
