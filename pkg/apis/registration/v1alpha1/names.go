// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// Labels and annotations of the group.
const (
	// LabelManaged is "true" on namespaces that the hub created for a Cluster.
	LabelManaged = "fleet.cattle.io/managed"
	// LabelCluster is on objects of one Cluster, and on the Cluster that the hub created from a
	// request, with the Cluster's name as value. The hub writes it.
	LabelCluster = "fleet.cattle.io/cluster"
	// AnnotationCluster is the name of the Cluster to which an object belongs. The hub writes it.
	AnnotationCluster = "fleet.cattle.io/cluster"
	// AnnotationClusterNamespace is the namespace of that Cluster. The hub writes it.
	AnnotationClusterNamespace = "fleet.cattle.io/cluster-namespace"
	// AnnotationClusterRegistration is the name of the request from which an object was created.
	// The hub writes it.
	AnnotationClusterRegistration = "fleet.cattle.io/cluster-registration"
	// AnnotationClusterRegistrationNamespace is the namespace of that request. The hub writes it.
	AnnotationClusterRegistrationNamespace = "fleet.cattle.io/cluster-registration-namespace"
	// LabelRegistrationToken is on a ClusterRegistration, with the name of the
	// ClusterRegistrationToken. The agent writes it, so it is not a proof.
	LabelRegistrationToken = "fleet.cattle.io/registration-token"
	// LabelCreatedByAgentPod is one of the cluster labels of a request, with the name of the
	// agent's Pod. It is the only reserved label that a request can set.
	LabelCreatedByAgentPod = "fleet.cattle.io/created-by-agent-pod"
	// LabelClusterManagement marks objects that another manager registers, and which the hub
	// ignores. That manager writes it.
	LabelClusterManagement = "fleet.cattle.io/cluster-management"
)

// Labels of clusters in Azure, by which fleets of Azure select. The agent proposes them at its
// registration from what its nodes say.
const (
	LabelLocation      = "fleet.azure.com/location"
	LabelResourceGroup = "fleet.azure.com/resource-group"
	LabelSubscription  = "fleet.azure.com/subscription-id"
)

// Prefixes of Secret and object names.
const (
	requestNamePrefix = "request-"
	clusterNamePrefix = "cluster-"
)

// RequestName returns the name of the ClusterRegistration of a key. It depends on the key only, so
// that an agent that retries finds its own request.
func RequestName(publicKey []byte) string {
	sum := sha256.Sum256(publicKey)
	return requestNamePrefix + hex.EncodeToString(sum[:])
}

// ReturningNamespace is where a rebuilt hub creates a ClusterRegistration for each agent of the
// former hub, named after the agent's key, so that the agent can reconnect. An administrator
// creates the namespace, and grants agents without a credential the right to get these.
const ReturningNamespace = "fleet-returning"

// LabelReturning is on a ClusterRegistration in ReturningNamespace, with the member's name. The hub
// writes it.
const LabelReturning = "fleetgate.io/returning"

// ClusterName returns the name of the Cluster that the hub creates for a clientID that no Cluster
// has.
func ClusterName(clientID string) string { return clusterNamePrefix + keyHash(clientID) }

// keyHash returns the first 12 hexadecimal digits of the SHA-256 of the first 100 bytes of s, which
// is the short hash in upstream generated names.
func keyHash(s string) string {
	sum := sha256.Sum256([]byte(s[:min(len(s), 100)]))
	return hex.EncodeToString(sum[:])[:12]
}

// IsProviderLabel reports whether a label states a fact that Kubernetes or a cloud provider assigns,
// such as a region. Placements spread by these labels, so an agent sets them only if its token lists
// them.
func IsProviderLabel(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	if !ok {
		return false
	}
	return slices.ContainsFunc([]string{"kubernetes.io", "k8s.io", "azure.com"}, func(of string) bool {
		return domain == of || strings.HasSuffix(domain, "."+of)
	})
}

// IsReservedLabel reports whether the hub rejects a cluster label from the agent that registers.
// fleetgate, or a manager above it, interprets these labels, so that placements and groups would
// follow a label that an agent gave itself.
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
