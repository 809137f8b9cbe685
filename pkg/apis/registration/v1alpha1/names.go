// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Labels and annotations of the group. Who writes each is said beside it.
const (
	// LabelManaged is "true" on namespaces that the hub made for a Cluster.
	LabelManaged = "fleet.cattle.io/managed"
	// LabelCluster is on what belongs to one Cluster, and on the Cluster that
	// the hub made from a request, with the Cluster's name as value. The hub
	// writes it.
	LabelCluster = "fleet.cattle.io/cluster"
	// AnnotationCluster holds the name of the Cluster to which an object
	// belongs. The hub writes it.
	AnnotationCluster = "fleet.cattle.io/cluster"
	// AnnotationClusterNamespace holds the namespace of that Cluster. The hub
	// writes it.
	AnnotationClusterNamespace = "fleet.cattle.io/cluster-namespace"
	// AnnotationClusterRegistration holds the name of the request from which an
	// object was made. The hub writes it.
	AnnotationClusterRegistration = "fleet.cattle.io/cluster-registration"
	// AnnotationClusterRegistrationNamespace holds the namespace of that
	// request. The hub writes it.
	AnnotationClusterRegistrationNamespace = "fleet.cattle.io/cluster-registration-namespace"
	// LabelRegistrationToken is on a ClusterRegistration, with the name of the
	// ClusterRegistrationToken. The agent writes it, so it proves nothing.
	LabelRegistrationToken = "fleet.cattle.io/registration-token"
	// LabelCreatedByAgentPod is among a request's cluster labels, with the name
	// of the agent's pod. It is the only reserved label that a request may set.
	LabelCreatedByAgentPod = "fleet.cattle.io/created-by-agent-pod"
	// LabelClusterManagement marks objects that another manager registers: the
	// hub leaves them alone. That manager writes it.
	LabelClusterManagement = "fleet.cattle.io/cluster-management"
)

// Prefixes of Secret and object names.
const (
	requestNamePrefix = "request-"
	clusterNamePrefix = "cluster-"
)

// RequestName is the name of the ClusterRegistration of the agent that holds
// the key: the same for the same key, so that an agent that tries again finds
// its own request.
func RequestName(publicKey []byte) string {
	sum := sha256.Sum256(publicKey)
	return requestNamePrefix + hex.EncodeToString(sum[:])
}

// ReturningNamespace is where a hub that was built anew leaves what lets agents of the hub in
// whose place it is come back: a ClusterRegistration for each, by the name of its key. An
// administrator makes it, and lets agents without a credential get these.
const ReturningNamespace = "fleet-returning"

// LabelReturning, with the member's name, is on such a ClusterRegistration. The hub writes it.
const LabelReturning = "fleetgate.io/returning"

// ClusterName is the name of the Cluster that the hub makes for a clientID that
// no Cluster has.
func ClusterName(clientID string) string { return clusterNamePrefix + keyHash(clientID) }

// keyHash is the first 12 hexadecimal digits of the SHA-256 of the first 100
// bytes of s: the short hash in this API's generated names.
func keyHash(s string) string {
	sum := sha256.Sum256([]byte(s[:min(len(s), 100)]))
	return hex.EncodeToString(sum[:])[:12]
}

// IsReservedLabel tells whether a cluster label may not come from the agent
// that registers, since fleetgate, or a manager above it, reads a meaning into
// it: placements and groups would follow a label that the agent gave to itself.
func IsReservedLabel(key string) bool {
	if key == LabelCreatedByAgentPod {
		return false
	}
	domain, _, ok := strings.Cut(key, "/")
	if !ok {
		return false
	}
	switch domain {
	case "fleet.cattle.io", "management.cattle.io", "fleetgate.io", "kubernetes-fleet.io":
		return true
	}
	return strings.HasSuffix(domain, ".fleetgate.io") || strings.HasSuffix(domain, ".kubernetes-fleet.io") ||
		strings.HasSuffix(domain, ".open-cluster-management.io") || domain == "open-cluster-management.io" ||
		domain == "multicluster.x-k8s.io" || domain == "x-k8s.io"
}
