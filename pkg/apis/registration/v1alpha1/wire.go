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
	// SecretTypeRegistrationValues is the type of the Secret that has the name of the
	// ClusterRegistrationToken and holds the agent's values.
	SecretTypeRegistrationValues corev1.SecretType = "fleet.cattle.io/cluster-registration-values"

	// RegistrationValuesKey is the key of that Secret that holds AgentValues as YAML.
	RegistrationValuesKey = "values"
)

// Keys of the Secret in Cluster.spec.kubeConfigSecret.
const (
	// KubeConfigKey holds the kubeconfig, as Cluster API writes it. Required.
	KubeConfigKey = "value"
	// KubeConfigServerURLKey holds the hub's URL for this member's agent. If unset, the URL in the
	// gateway's configuration.
	KubeConfigServerURLKey = "apiServerURL"
	// KubeConfigServerCAKey holds the PEM certificates that verify that URL.
	KubeConfigServerCAKey = "apiServerCA"
)

// AgentValues are the Helm values with which an agent registers. They contain a token: never log
// them.
//
// +kubebuilder:object:generate=false
type AgentValues struct {
	// ClusterNamespace is the registration namespace in which the agent creates its request.
	ClusterNamespace string `json:"clusterNamespace"`
	// APIServerURL is the URL at which members reach the hub's API server.
	APIServerURL string `json:"apiServerURL"`
	// APIServerCA is the PEM certificates that verify it. If unset, those of the member's operating
	// system.
	APIServerCA string `json:"apiServerCA"`
	// Token is the registration token.
	Token string `json:"token"`
	// SystemRegistrationNamespace is where other implementations write an agent's credential.
	// fleetgate does not use it, because it writes the credential to the request's status.
	SystemRegistrationNamespace string `json:"systemRegistrationNamespace,omitempty"`
	// TokenName is the name of the ClusterRegistrationToken.
	TokenName string `json:"tokenName"`
	// Internal holds values that a user never sets.
	Internal *InternalValues `json:"internal,omitempty"`
}

// InternalValues is the part of AgentValues that the hub sets.
//
// +kubebuilder:object:generate=false
type InternalValues struct {
	// SystemNamespace is the agent's namespace on the member. If unset, that of the chart.
	SystemNamespace string `json:"systemNamespace,omitempty"`
}

// SealedTokenInfo is the HPKE info of a sealed token. It prevents the token from being opened as
// anything else.
const SealedTokenInfo = "fleetgate.io/cluster-registration/v1"

// SealedTokenAAD returns the additional authenticated data of the sealed token of a request. It
// prevents the token of one request from being accepted for another.
func SealedTokenAAD(request types.UID, clientID string) []byte {
	return []byte(string(request) + "\x00" + clientID)
}

// tokenProofContext prevents a proof from being accepted for another purpose.
const tokenProofContext = "fleetgate.io/registration-token-proof/v1"

// TokenProof returns the value of the request's spec.tokenProof: it proves that the client held the
// token, and is valid for this request only.
func TokenProof(token string, request *ClusterRegistration) ([]byte, error) {
	spec := request.Spec
	// A hub that does not support the keys for a transfer drops them, and can still check the rest.
	spec.TokenProof, spec.VerificationKey, spec.PreviousSignature = nil, nil, nil
	said, err := statement(tokenProofContext, request, spec)
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write(said)
	return mac.Sum(nil), nil
}

// moveContext prevents a signature from being accepted for another purpose.
const moveContext = "fleetgate.io/registration-move/v1"

// MoveStatement returns what the previous key signs for the request's spec.previousSignature: that
// the request's key owns the Cluster from now on. It is valid for this request only.
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
