// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

const (
	// AnnotationKey is on a Cluster. Its value is the fingerprint of the only key whose
	// requests get this Cluster. The hub writes it at the first registration. If an
	// administrator removes it, the next key replaces it.
	AnnotationKey = "fleetgate.io/registered-key"
	// AnnotationVerificationKey is on a Cluster. Its value is the public key, in base64, with
	// which the agent that owns this Cluster signs its transfer to another key. The hub writes
	// it, with AnnotationKey.
	AnnotationVerificationKey = "fleetgate.io/registered-verification-key"
	// AnnotationMember is on a Cluster. Its value is the name of its MemberCluster. The hub
	// writes it.
	AnnotationMember = "fleetgate.io/member"
	// AnnotationMemberUID is on a Cluster. Its value is the UID of its MemberCluster. The hub
	// writes it. An administrator can remove it to let a cluster whose MemberCluster was
	// deleted join again.
	AnnotationMemberUID = "fleetgate.io/member-uid"
	// AnnotationClusterUID is on a MemberCluster. Its value is the UID of the Cluster that it
	// was created for. The hub writes it once.
	AnnotationClusterUID = "fleetgate.io/cluster-uid"
	// AnnotationAgentKey is on a MemberCluster. Its value is the UID of the hub's namespace
	// kube-system and, after a slash, the public key of the member's agent in base64. The hub
	// writes it. Users who store MemberClusters in Git store it too, so that the agent can
	// reconnect to a rebuilt hub that has nothing else of this one.
	AnnotationAgentKey = "fleetgate.io/registered-key"
	// AnnotationReadmit with the value "true" on a MemberCluster that has AnnotationAgentKey from
	// another hub admits the agent with that key. This hub adopts the resources that the other one
	// placed. An administrator writes it; the hub removes it afterwards.
	AnnotationReadmit = "fleetgate.io/readmit"
	// deprecatedAnnotationTakeBack is the previous key of AnnotationReadmit. Manifests that were
	// exported for a rebuilt hub may have it. The hub reads and removes it in the same way. Remove
	// after the next release.
	deprecatedAnnotationTakeBack = "fleetgate.io/take-back"
	// AnnotationClusterLabels is on a MemberCluster. Its value is the keys of the labels from
	// its Cluster, separated by commas. The hub writes it: a label that is removed from the
	// Cluster is removed from the MemberCluster too.
	AnnotationClusterLabels = "fleetgate.io/cluster-labels"
	// AnnotationBroughtLabels on a Cluster are the labels that its agent set at its registration:
	// key=value, separated by commas. The hub writes it. An administrator who removes it vouches for
	// them.
	AnnotationBroughtLabels = "fleetgate.io/brought-labels"
	// AnnotationDroppedLabels on a Cluster are the labels of its agent that the hub dropped at its
	// registration: key=cause, separated by commas. The hub writes it. An administrator who removes it
	// acknowledges them.
	AnnotationDroppedLabels = "fleetgate.io/dropped-labels"
	// AnnotationSelfAssignedLabels is on a MemberCluster. Its value is the keys of its
	// Cluster's labels that still have the agent's values, separated by commas. The hub writes
	// it.
	AnnotationSelfAssignedLabels = "fleetgate.io/self-assigned-labels"
	// AnnotationCredentialExpires is on a ClusterRegistration. Its value is the expiry of its
	// credential, in RFC 3339, if that is earlier than the gateway requested. The hub writes
	// it.
	AnnotationCredentialExpires = "fleetgate.io/credential-expires"
	// ClusterFinalizer keeps a Cluster until its MemberCluster is deleted. The hub adds and removes it.
	ClusterFinalizer = "fleetgate.io/cluster"
)

const (
	maxObjectName    = 253
	legacyNameSuffix = "-token"
	hashLength       = 12
)
