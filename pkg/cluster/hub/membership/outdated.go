// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// oldestTried is how many minor versions an agent may be older than the gateway: such a
// mixture is tried before each release (docs/operations.md, Versions).
const oldestTried = 1

// tellOutdated has the status say whether the member's agent is too old for the gateway.
func tellOutdated(status *clusterv1beta1.MemberClusterStatus, gateway string, generation int64) {
	if outdated := outdatedCondition(status.Properties, gateway, generation); outdated != nil {
		meta.SetStatusCondition(&status.Conditions, *outdated)
		return
	}
	meta.RemoveStatusCondition(&status.Conditions, clusterv1beta1.ConditionAgentOutdated)
}

// outdatedCondition says of a member that its agent is older than what goes together with a
// gateway of this version; nil if it is not, or if either version says nothing. An agent that
// is one minor version behind is what each upgrade looks like on its way, and costs no write.
func outdatedCondition(reported map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue, gateway string, generation int64) *metav1.Condition {
	agent, err := version.ParseSemantic(reported[clusterv1beta1.PropertyAgentVersion].Value)
	if err != nil {
		return nil
	}
	own, err := version.ParseSemantic(gateway)
	if err != nil || own.Major() < agent.Major() || own.Major() == agent.Major() && own.Minor() <= agent.Minor()+oldestTried {
		return nil
	}
	message := fmt.Sprintf("the agent is v%s, the gateway v%s: what is placed stays, but they are not tried together, "+
		"and what is newer than the agent is not done on this member: upgrade the agent's chart, one minor version after the other", agent, own)
	if clusterRightsOf(reported) == rightsNeeded {
		message += "; until then its account keeps rights outside of the member's namespace"
	}
	return &metav1.Condition{
		Type: clusterv1beta1.ConditionAgentOutdated, Status: metav1.ConditionTrue, Reason: clusterv1beta1.ReasonAgentTooOld,
		Message: message, ObservedGeneration: generation,
	}
}
