// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/kube/hash"
)

const (
	// AnnotationKey on a Cluster is the fingerprint of the only key whose requests get this Cluster.
	// The hub writes it at the first registration. If an administrator removes it, the next key
	// replaces it.
	AnnotationKey = "fleetgate.io/registered-key"
	// AnnotationVerificationKey on a Cluster is the public key, in base64, with which the agent that
	// owns this Cluster signs its transfer to another key. The hub writes it, with AnnotationKey.
	AnnotationVerificationKey = "fleetgate.io/registered-verification-key"
	// AnnotationMember on a Cluster is the name of its MemberCluster. The hub writes it.
	AnnotationMember = "fleetgate.io/member"
	// AnnotationMemberUID on a Cluster is the UID of its MemberCluster. The hub writes it. An
	// administrator can remove it to let a cluster whose MemberCluster was deleted join again.
	AnnotationMemberUID = "fleetgate.io/member-uid"
	// AnnotationClusterUID on a MemberCluster is the UID of the Cluster that it was created for. The
	// hub writes it once.
	AnnotationClusterUID = "fleetgate.io/cluster-uid"
	// AnnotationAgentKey on a MemberCluster is the UID of the hub's namespace kube-system and, after
	// a slash, the public key of the member's agent in base64. The hub writes it. Users who store
	// MemberClusters in Git store it too, so that the agent can reconnect to a rebuilt hub that has
	// nothing else of this one.
	AnnotationAgentKey = "fleetgate.io/registered-key"
	// AnnotationReadmit with the value "true" on a MemberCluster that has AnnotationAgentKey from
	// another hub admits the agent with that key. This hub adopts the resources that the other one
	// placed. An administrator writes it; the hub removes it afterwards.
	AnnotationReadmit = "fleetgate.io/readmit"
	// deprecatedAnnotationTakeBack is the previous key of AnnotationReadmit. Manifests that were
	// exported for a rebuilt hub may have it. The hub reads and removes it in the same way. Remove
	// after the next release.
	deprecatedAnnotationTakeBack = "fleetgate.io/take-back"
	// AnnotationClusterLabels on a MemberCluster are the keys of the labels from its Cluster,
	// separated by commas. The hub writes it: a label that is removed from the Cluster is removed from
	// the MemberCluster too.
	AnnotationClusterLabels = "fleetgate.io/cluster-labels"
	// AnnotationBroughtLabels on a Cluster are the labels that its agent set at its registration:
	// key=value, separated by commas. The hub writes it. An administrator who removes it vouches for
	// them.
	AnnotationBroughtLabels = "fleetgate.io/brought-labels"
	// AnnotationDroppedLabels on a Cluster are the labels of its agent that the hub dropped at its
	// registration: key=cause, separated by commas. The hub writes it. An administrator who removes it
	// acknowledges them.
	AnnotationDroppedLabels = "fleetgate.io/dropped-labels"
	// AnnotationSelfAssignedLabels on a MemberCluster are the keys of its Cluster's labels that still
	// have the agent's values, separated by commas. The hub writes it.
	AnnotationSelfAssignedLabels = "fleetgate.io/self-assigned-labels"
	// AnnotationCredentialExpires on a ClusterRegistration is the expiry of its credential, in RFC
	// 3339, if that is earlier than the gateway requested. The hub writes it.
	AnnotationCredentialExpires = "fleetgate.io/credential-expires"
	// ClusterFinalizer keeps a Cluster until its MemberCluster is deleted. The hub adds and removes it.
	ClusterFinalizer = "fleetgate.io/cluster"
)

const (
	maxObjectName    = 253
	legacyNameSuffix = "-token"
	hashLength       = 12
)

// accountName is the name of a token's account, role and binding. Because of the UID, a re-created
// token does not inherit the rights of its predecessor.
func accountName(token string, uid types.UID) string {
	room := maxObjectName - len(legacyNameSuffix) - len(uid) - 1
	if len(token) > room {
		token = strings.TrimRight(token[:room], "-.")
	}
	return token + "-" + string(uid)
}

// memberNames are the candidates for the name of a Cluster's member, in order.
func memberNames(namespace, cluster string) []string {
	return []string{cluster, shorten(namespace + "-" + cluster)}
}

// shorten shortens a generated name to the length of a member's name.
func shorten(name string) string {
	limit := clusterv1beta1.MaxMemberNameLength
	if len(name) <= limit {
		return name
	}
	return strings.TrimRight(name[:limit-hashLength-1], "-") + "-" + hash.Of(name)[:hashLength]
}

// refuseMemberName is a message why a member cannot have the Cluster's name, or "".
func refuseMemberName(cluster string) string {
	if len(cluster) > clusterv1beta1.MaxMemberNameLength {
		return fmt.Sprintf("the Cluster's name has %d characters, a member's name may have at most %d: "+
			"make the Cluster again with a shorter name", len(cluster), clusterv1beta1.MaxMemberNameLength)
	}
	if len(validation.IsDNS1123Label(cluster)) > 0 {
		return fmt.Sprintf("the Cluster's name %q is no DNS label (lower-case letters, digits and '-'), as a member's name must be: "+
			"make the Cluster again with another name", cluster)
	}
	return ""
}

// maxLabels limits the number of labels that an agent can set.
const maxLabels = 64

// sanitizeLabels returns the labels that a registration can set: no reserved or invalid ones, and at
// most maxLabels. With more it returns none, so that nobody can influence the choice.
func sanitizeLabels(wanted map[string]string) map[string]string {
	return keepLabels(wanted, registrationv1alpha1.IsReservedLabel)
}

// LabelRule decides which labels from their agents members get.
type LabelRule bool

const (
	// CountSelfAssigned copies them to the MemberCluster, like all other labels of the Cluster.
	CountSelfAssigned LabelRule = false
	// IgnoreSelfAssigned leaves them on the Cluster, so that label selectors of members do not see
	// them.
	IgnoreSelfAssigned LabelRule = true
)

// memberLabels are the labels of a Cluster that its MemberCluster gets. Unlike an agent, the Cluster's
// administrator can set labels about its infrastructure. The second result has the keys of labels that
// still have the agent's values.
func memberLabels(cluster *registrationv1alpha1.Cluster, rule LabelRule) (kept map[string]string, selfAssigned []string) {
	kept = keepLabels(cluster.Labels, isReserved)
	for pair := range strings.SplitSeq(cluster.Annotations[AnnotationBroughtLabels], ",") {
		key, brought, _ := strings.Cut(pair, "=")
		if value, ok := kept[key]; !ok || value != brought {
			continue
		}
		selfAssigned = append(selfAssigned, key)
		if rule == IgnoreSelfAssigned {
			delete(kept, key)
		}
	}
	return kept, selfAssigned
}

// broughtLabels are the labels of a registration in the format of AnnotationBroughtLabels.
func broughtLabels(labels map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, key+"="+labels[key])
	}
	return strings.Join(pairs, ",")
}

func isReserved(key string) bool {
	return registrationv1alpha1.IsReservedLabel(key) && !strings.HasPrefix(key, clusterv1beta1.InfrastructurePrefix)
}

func keepLabels(wanted map[string]string, reserved func(key string) bool) map[string]string {
	kept := maps.Clone(wanted)
	maps.DeleteFunc(kept, func(key, value string) bool {
		return reserved(key) || len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0
	})
	if len(kept) > maxLabels {
		return nil
	}
	return kept
}
