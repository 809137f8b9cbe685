// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membermirror

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	hubcluster "fleetgate.io/fleetgate/pkg/cluster/hub/identity"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/managedcluster"
)

// Annotations of a ManagedCluster that shows a member.
const (
	// MemberAnnotation is on a ManagedCluster that shows a member. Its value is the UID of the
	// MemberCluster.
	MemberAnnotation = "fleetgate.io/member-uid"
	// IdentityAnnotation is on a ManagedCluster that shows a member with an external identity.
	// Its value is the user of the member's agent.
	IdentityAnnotation = "fleetgate.io/member-identity"
	// labelsAnnotation is on a ManagedCluster that shows a member. Its value is the keys of the
	// labels from the MemberCluster, separated by commas. Labels of users stay.
	labelsAnnotation = "fleetgate.io/member-labels"
	// acceptedAnnotation is on a ManagedCluster that shows a member. Its value is the last
	// decision on which both agreed.
	acceptedAnnotation = "fleetgate.io/member-accepted"
	// arrivedAnnotation is on a MemberCluster. Its value is the last decision that was written
	// to it.
	arrivedAnnotation = "fleetgate.io/accepted-decision"
)

const (
	// maxCustomClaims limits the claims besides the reserved ones, as OCM does.
	maxCustomClaims = 20
	accepted        = "true"
	waiting         = "false"
	// pending follows a decision that has not been written to the MemberCluster yet, and precedes
	// what identifies the decision.
	pending = ",pending,"
)

// Shows is true for the ManagedCluster that mirrors the member.
func Shows(cluster *clusterv1.ManagedCluster, member *clusterv1beta1.MemberCluster) bool {
	return member.UID != "" && cluster.Name == member.Name && cluster.Annotations[MemberAnnotation] == string(member.UID)
}

// decide returns whether a member is accepted. decided is the last decision, which is possibly not
// written to the MemberCluster yet; arrived is the last one that is. Until a decision has arrived, the
// MemberCluster's value does not count. A ManagedCluster with a different value was changed since.
func decide(decided, arrived string, byMember, byCluster bool) bool {
	decision, id, onItsWay := strings.Cut(decided, pending)
	switch {
	case decision == "":
		return byMember
	case (decision == accepted) != byCluster:
		return byCluster
	case onItsWay && id != arrived:
		return decision == accepted
	}
	return byMember
}

// decided is the record of a decision that the MemberCluster does not have: the previous record
// while it is in transit.
func decided(before, decision, arrived, version string) string {
	if last, id, onItsWay := strings.Cut(before, pending); onItsWay && last == decision && id != arrived {
		return before
	}
	return decision + pending + version
}

// isShownYet is true for a member that waits for acceptance, and for one whose agent has reported:
// then everything is written at once.
func isShownYet(member *clusterv1beta1.MemberCluster) bool {
	return !member.IsApproved() || meta.FindStatusCondition(member.Status.Conditions, clusterv1beta1.ConditionJoined) != nil &&
		member.Status.AgentStatusOf(clusterv1beta1.MemberAgent) != nil
}

// begin creates a member's mirror with its later finalizers and the taint for its availability, so
// that they need no separate writes.
func begin(cluster *clusterv1.ManagedCluster, member *clusterv1beta1.MemberCluster) {
	cluster.Finalizers = []string{clusterv1.ResourceCleanupFinalizer, clusterv1.GarbageFinalizer}
	if key := managedcluster.TaintFor(availableOf(member)); key != "" {
		cluster.Spec.Taints = append(cluster.Spec.Taints, clusterv1.Taint{Key: key, Effect: clusterv1.TaintEffectNoSelect})
	}
	desired(cluster, member, member.IsApproved())
}

// desired updates a ManagedCluster to mirror the member, except for its status. While the
// MemberCluster differs, the decision is in transit.
func desired(cluster *clusterv1.ManagedCluster, member *clusterv1beta1.MemberCluster, letIn bool) {
	if cluster.Labels == nil {
		cluster.Labels = map[string]string{}
	}
	for key := range strings.SplitSeq(cluster.Annotations[labelsAnnotation], ",") {
		if _, still := member.Labels[key]; key != "" && !still {
			delete(cluster.Labels, key)
		}
	}
	shown := maps.Clone(member.Labels)
	// It is an inventory's label, and would have another meaning here.
	delete(shown, clusterv1.ClusterNameLabel)
	// Adding a cluster to a set needs a permission that the hub's API server checks on writes of
	// the ManagedCluster. For a MemberCluster nothing is checked, and agents choose some labels.
	delete(shown, clusterv1.ClusterSetLabel)
	// The hub sets these by the existing add-ons.
	maps.DeleteFunc(shown, func(key, _ string) bool { return strings.HasPrefix(key, clusterv1.AddOnLabelPrefix) })
	maps.Copy(cluster.Labels, shown)
	decision := waiting
	if letIn {
		decision = accepted
	}
	if member.IsApproved() != letIn {
		decision = decided(cluster.Annotations[acceptedAnnotation], decision, member.Annotations[arrivedAnnotation], cluster.ResourceVersion)
	}
	for key, value := range map[string]string{
		MemberAnnotation: string(member.UID), labelsAnnotation: strings.Join(slices.Sorted(maps.Keys(shown)), ","), acceptedAnnotation: decision,
	} {
		metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, key, value)
	}
	delete(cluster.Annotations, IdentityAnnotation)
	if user := hubcluster.FleetSeats().ForeignUser(member); user != "" {
		metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, IdentityAnnotation, user)
	}
	carryTaints(cluster, member)
	cluster.Spec.HubAcceptsClient = letIn
	if address := member.Status.Properties[clusterv1beta1.PropertyEntrypoint].Value; strings.HasPrefix(address, "https://") {
		cluster.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: address, CABundle: authorityOf(member)}}
	}
}

// desiredStatus writes the member's state into a status that others write to as well.
func desiredStatus(status *clusterv1.ManagedClusterStatus, member *clusterv1beta1.MemberCluster) {
	status.Version.Kubernetes = member.Status.Properties[clusterv1beta1.PropertyKubernetesVersion].Value
	status.ClusterClaims = claimsOf(member)
	status.Capacity = merged(status.Capacity, clusterv1.ResourceList(member.Status.ResourceUsage.Capacity))
	status.Allocatable = merged(status.Allocatable, clusterv1.ResourceList(member.Status.ResourceUsage.Allocatable))
	if meta.IsStatusConditionTrue(member.Status.Conditions, clusterv1beta1.ConditionJoined) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: clusterv1.ConditionJoined, Status: metav1.ConditionTrue, Reason: clusterv1.ReasonJoined, Message: "Managed cluster joined",
		})
	}
	if available := availableOf(member); available != nil {
		meta.SetStatusCondition(&status.Conditions, *available)
	}
}

// merged keeps what others have written.
func merged(theirs, ours clusterv1.ResourceList) clusterv1.ResourceList {
	if len(ours) == 0 {
		return theirs
	}
	all := maps.Clone(theirs)
	if all == nil {
		all = clusterv1.ResourceList{}
	}
	maps.Copy(all, ours)
	return all
}

// availableOf is nil for a member that has never reported.
func availableOf(member *clusterv1beta1.MemberCluster) *metav1.Condition {
	agent := member.Status.AgentStatusOf(clusterv1beta1.MemberAgent)
	if agent == nil {
		return nil
	}
	healthy := meta.FindStatusCondition(agent.Conditions, clusterv1beta1.ConditionHealthy)
	_, silent := member.SilentSince()
	switch {
	case silent:
		return &metav1.Condition{Type: clusterv1.ConditionAvailable, Status: metav1.ConditionUnknown, Reason: clusterv1.ReasonLeaseUpdateStopped, Message: "Registration agent stopped updating its lease."}
	case healthy == nil:
		return nil
	case healthy.Status != metav1.ConditionTrue:
		return &metav1.Condition{Type: clusterv1.ConditionAvailable, Status: metav1.ConditionFalse, Reason: clusterv1.ReasonKubeAPIServerUnavailable, Message: "The member's agent finds its API server not ready"}
	}
	return &metav1.Condition{Type: clusterv1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: clusterv1.ReasonAvailable, Message: "Managed cluster is available"}
}

// claimsOf are the member's ClusterClaims: the reserved ones, then the others up to the limit, each
// sorted by name. Other properties have a slash in their names.
func claimsOf(member *clusterv1beta1.MemberCluster) []clusterv1.ManagedClusterClaim {
	var reserved, custom []clusterv1.ManagedClusterClaim
	for _, name := range slices.Sorted(maps.Keys(member.Status.Properties)) {
		claim := clusterv1.ManagedClusterClaim{Name: string(name), Value: member.Status.Properties[name].Value}
		switch {
		case strings.Contains(claim.Name, "/") || claim.Value == "":
		case slices.Contains(clusterv1.ReservedClaims(), claim.Name):
			reserved = append(reserved, claim)
		case len(custom) < maxCustomClaims:
			custom = append(custom, claim)
		}
	}
	return append(reserved, custom...)
}
