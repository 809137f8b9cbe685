// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// SecretTypeRegistrationValues is the type of the Secret that has the
	// ClusterRegistrationToken's name and holds the agent's values.
	SecretTypeRegistrationValues corev1.SecretType = "fleet.cattle.io/cluster-registration-values"

	// RegistrationValuesKey is the key of that Secret under which AgentValues
	// stand, as YAML.
	RegistrationValuesKey = "values"
)

// Keys of the Secret that Cluster.spec.kubeConfigSecret names.
const (
	// KubeConfigKey holds the kubeconfig, as Cluster API writes it. Required.
	KubeConfigKey = "value"
	// KubeConfigServerURLKey holds the hub's URL for this member's agent. Empty
	// means the gateway's configured one.
	KubeConfigServerURLKey = "apiServerURL"
	// KubeConfigServerCAKey holds the PEM certificates that go with that URL.
	KubeConfigServerCAKey = "apiServerCA"
)

// AgentValues are the Helm values with which an agent registers. They contain
// a token: never log them.
//
// +kubebuilder:object:generate=false
type AgentValues struct {
	// ClusterNamespace is the registration namespace, in which the agent creates
	// its request.
	ClusterNamespace string `json:"clusterNamespace"`
	// APIServerURL is the hub's API server as members reach it.
	APIServerURL string `json:"apiServerURL"`
	// APIServerCA are the PEM certificates with which to verify it. Empty means
	// those of the member's operating system.
	APIServerCA string `json:"apiServerCA"`
	// Token is the registration token.
	Token string `json:"token"`
	// SystemRegistrationNamespace is where another implementation leaves an
	// agent's credential. Ours needs none: it answers in the request's status.
	SystemRegistrationNamespace string `json:"systemRegistrationNamespace,omitempty"`
	// TokenName is the name of the ClusterRegistrationToken.
	TokenName string `json:"tokenName"`
	// Internal holds what a user never sets by hand.
	Internal *InternalValues `json:"internal,omitempty"`
}

// InternalValues are the part of AgentValues that the hub decides.
//
// +kubebuilder:object:generate=false
type InternalValues struct {
	// SystemNamespace is the agent's namespace on the member. Empty means the
	// chart's own.
	SystemNamespace string `json:"systemNamespace,omitempty"`
}

// SealedTokenInfo is the HPKE info under which a registration's answer is
// sealed: it keeps a sealed token from being opened as anything else.
const SealedTokenInfo = "fleetgate.io/cluster-registration/v1"

// SealedTokenAAD is the additional data that is authenticated with the sealed
// token of a request: the answer to one request cannot pass for the answer to
// another.
func SealedTokenAAD(request types.UID, clientID string) []byte {
	return []byte(string(request) + "\x00" + clientID)
}

// tokenProofContext keeps a proof from being taken for anything else.
const tokenProofContext = "fleetgate.io/registration-token-proof/v1"

// TokenProof is what belongs into the request's spec.tokenProof: it shows that whoever
// made the request held the token, and fits no other request.
func TokenProof(token string, request *ClusterRegistration) ([]byte, error) {
	spec := request.Spec
	// A hub that does not know the keys for moving drops them, and can check the rest.
	spec.TokenProof, spec.VerificationKey, spec.PreviousSignature = nil, nil, nil
	said, err := statement(tokenProofContext, request, spec)
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write(said)
	return mac.Sum(nil), nil
}

// moveContext keeps a signature from being taken for anything else.
const moveContext = "fleetgate.io/registration-move/v1"

// MoveStatement is what the previous key signs for the request's spec.previousSignature:
// that the request's key has the Cluster from now on. It fits no other request.
func MoveStatement(request *ClusterRegistration) ([]byte, error) {
	spec := request.Spec
	spec.TokenProof, spec.PreviousSignature = nil, nil
	return statement(moveContext, request, spec)
}

func statement(context string, request *ClusterRegistration, spec ClusterRegistrationSpec) ([]byte, error) {
	said, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("encoding a registration: %w", err)
	}
	var b bytes.Buffer
	for _, part := range []string{context, request.Namespace, request.Name} {
		b.WriteString(part + "\x00")
	}
	b.Write(said)
	return b.Bytes(), nil
}
