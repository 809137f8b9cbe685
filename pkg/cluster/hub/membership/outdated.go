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

// oldestTried is how many minor versions an agent can be older than the gateway: such combinations are
// tested before each release (docs/reference/operations.md, Versions).
const oldestTried = 1

// setOutdated sets or removes the condition about an outdated agent.
func setOutdated(status *clusterv1beta1.MemberClusterStatus, gateway string, generation int64) {
	if outdated := outdatedCondition(status.Properties, gateway, generation); outdated != nil {
		meta.SetStatusCondition(&status.Conditions, *outdated)
		return
	}
	meta.RemoveStatusCondition(&status.Conditions, clusterv1beta1.ConditionAgentOutdated)
}

// outdatedCondition reports that an agent is too old for this gateway's version; nil if it is not, or
// if either version is unknown. An agent that is one minor version behind is normal during an upgrade,
// and costs no write.
func outdatedCondition(reported map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue, gateway string, generation int64) *metav1.Condition {
	agent, err := version.ParseSemantic(reported[clusterv1beta1.PropertyAgentVersion].Value)
	if err != nil {
		return nil
	}
	own, err := version.ParseSemantic(gateway)
	if err != nil || own.Major() < agent.Major() || own.Major() == agent.Major() && own.Minor() <= agent.Minor()+oldestTried {
		return nil
	}
	message := fmt.Sprintf("the agent is v%s, the gateway v%s: placed resources stay, but this combination is not tested, "+
		"and features that are newer than the agent do not work on this member: upgrade the agent's chart, one minor version at a time", agent, own)
	if clusterRightsOf(reported) == rightsNeeded {
		message += "; until then its account keeps rights outside of the member's namespace"
	}
	return &metav1.Condition{
		Type: clusterv1beta1.ConditionAgentOutdated, Status: metav1.ConditionTrue, Reason: clusterv1beta1.ReasonAgentTooOld,
		Message: message, ObservedGeneration: generation,
	}
}
