// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// stage is a condition after Scheduled, with its reasons on the placement as a whole.
type stage struct {
	kind string
	// pending, failed and done are the reasons for Unknown, False and True.
	pending, failed, done string
	// yes and no are the message for True and False.
	yes, no string
	// event is the reason of the event when the stage becomes True.
	event string
}

var (
	rolloutStarted = stage{
		kind: placementv1beta1.ConditionRolloutStarted, pending: placementv1beta1.ReasonRolloutStartedUnknown,
		failed: placementv1beta1.ReasonRolloutNotStartedYet, done: placementv1beta1.ReasonRolloutStarted,
		yes: "The rollout has been started", no: "The rollout strategy makes the resources wait", event: "PlacementRolloutStarted",
	}
	overridden = stage{
		kind: placementv1beta1.ConditionOverridden, pending: placementv1beta1.ReasonOverriddenPending,
		failed: placementv1beta1.ReasonOverriddenFailed, done: placementv1beta1.ReasonOverriddenSucceeded,
		yes: "The overrides have been applied", no: "The overrides could not be applied", event: "PlacementOverriddenSucceeded",
	}
	workSynchronized = stage{
		kind: placementv1beta1.ConditionWorkSynchronized, pending: placementv1beta1.ReasonWorkSynchronizedUnknown,
		failed: placementv1beta1.ReasonWorkNotSynchronizedYet, done: placementv1beta1.ReasonWorkSynchronized,
		yes: "The works have been synchronized", no: "The works could not be synchronized", event: "PlacementWorkSynchronized",
	}
	applied = stage{
		kind: placementv1beta1.ConditionApplied, pending: placementv1beta1.ReasonApplyPending,
		failed: placementv1beta1.ReasonApplyFailed, done: placementv1beta1.ReasonApplySucceeded,
		yes: "The selected resources have been applied", no: "The selected resources have not been applied", event: "PlacementApplied",
	}
	available = stage{
		kind: placementv1beta1.ConditionAvailable, pending: placementv1beta1.ReasonResourceAvailableUnknown,
		failed: placementv1beta1.ReasonResourceNotAvailableYet, done: placementv1beta1.ReasonResourceAvailable,
		yes: "The selected resources are available", no: "The selected resources are not available yet", event: "PlacementAvailable",
	}
	diffReported = stage{
		kind: placementv1beta1.ConditionDiffReported, pending: placementv1beta1.ReasonDiffReportingPending,
		failed: placementv1beta1.ReasonDiffReportingIncompleteOrFailed, done: placementv1beta1.ReasonDiffReportingCompleted,
		yes: "The differences have been reported", no: "The differences have not been reported", event: "PlacementDiffReported",
	}
)

func allStages() []stage {
	return []stage{rolloutStarted, overridden, workSynchronized, applied, available, diffReported}
}

// stagesOf are the stages of a placement, in order.
func stagesOf(spec *placementv1beta1.PlacementSpec) []stage {
	if s := spec.Strategy.ApplyStrategy; s != nil && s.Type == placementv1beta1.ReportDiff {
		return []stage{rolloutStarted, overridden, workSynchronized, diffReported}
	}
	return []stage{rolloutStarted, overridden, workSynchronized, applied, available}
}

// condition is the stage's condition on the placement as a whole, with the number of members that have
// this status.
func (s stage) condition(status metav1.ConditionStatus, clusters int) metav1.Condition {
	switch status {
	case metav1.ConditionTrue:
		return metav1.Condition{Status: status, Reason: s.done, Message: fmt.Sprintf("%s on %d cluster(s)", s.yes, clusters)}
	case metav1.ConditionFalse:
		return metav1.Condition{Status: status, Reason: s.failed, Message: fmt.Sprintf("%s on %d cluster(s), see placementStatuses", s.no, clusters)}
	}
	return metav1.Condition{Status: metav1.ConditionUnknown, Reason: s.pending, Message: fmt.Sprintf("Waiting for news of %d cluster(s)", clusters)}
}

// unknown is the stage's condition on a member without information.
func (s stage) unknown() metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionUnknown, Reason: s.pending, Message: "Waiting for news of the cluster"}
}
