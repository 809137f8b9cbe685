// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/engine/availability"
	"fleetgate.io/fleetgate/pkg/work/manifest"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

// conditions sets the conditions of a manifest or a Work.
type conditions struct{ engine.Conditions }

func conditionsOf(of *[]metav1.Condition, generation int64, now metav1.Time) conditions {
	return conditions{engine.Conditions{Of: of, Generation: generation, Now: now}}
}

func (c conditions) yes(kind, reason, message string) {
	c.Set(kind, metav1.ConditionTrue, reason, message)
}

func (c conditions) no(kind, reason, message string) {
	c.Set(kind, metav1.ConditionFalse, reason, message)
}

func (c conditions) contested(against *engine.Contest) {
	c.Contested(placementv1beta1.ConditionContested, placementv1beta1.ReasonCorrectionsReverted, against, dialect().Remedies.Contested)
}

func (c conditions) applied(out engine.ManifestResult) {
	c.Remove(placementv1beta1.ConditionDiffReported)
	if out.Refused != nil {
		c.Remove(placementv1beta1.ConditionAvailable)
		c.no(placementv1beta1.ConditionApplied, reasonOf(out.Refused.Reason), out.Refused.Message)
		return
	}
	c.yes(placementv1beta1.ConditionApplied, placementv1beta1.ReasonApplied, appliedMessage(out))
	status := metav1.ConditionFalse
	switch out.Availability.State {
	case availability.Available, availability.NotTrackable, availability.Completed:
		status = metav1.ConditionTrue
	}
	c.Set(placementv1beta1.ConditionAvailable, status, string(out.Availability.State), out.Availability.Message)
}

// appliedMessage is the message of condition Applied, with the fields that the member decides.
func appliedMessage(out engine.ManifestResult) string {
	if len(out.Left) == 0 {
		return "The manifest is applied"
	}
	return engine.Shorten("The manifest is applied. The member decides " + strings.Join(out.Left, ", "))
}

func (c conditions) compared(out engine.ManifestResult) {
	const kind = placementv1beta1.ConditionDiffReported
	c.Remove(placementv1beta1.ConditionApplied, placementv1beta1.ConditionAvailable)
	switch {
	case out.Refused != nil && reasonOf(out.Refused.Reason) == placementv1beta1.ReasonDecodingErred:
		c.no(kind, placementv1beta1.ReasonDecodingErred, out.Refused.Message)
	case out.Refused != nil:
		c.no(kind, placementv1beta1.ReasonFailedToReportDiff, out.Refused.Message)
	case out.Diff.Degraded:
		c.yes(kind, placementv1beta1.ReasonFoundDiffInDegradedMode,
			"The object differs; all fields were compared, since the member does not accept the manifest")
	case len(out.Diff.Fields) > 0:
		c.yes(kind, placementv1beta1.ReasonFoundDiff, "The object differs from the manifest")
	default:
		c.yes(kind, placementv1beta1.ReasonNoDiffFound, "The object is as the manifest specifies")
	}
}

// removed reports what blocks the removal of objects.
func (c conditions) removed(against []string) {
	c.Removed(placementv1beta1.ConditionRemoved, placementv1beta1.ReasonObjectsRemain, against)
}

// retained reports the objects that are no longer in the Work and stay on the member because no
// user removed them.
func (c conditions) retained(of retention.Mark, entries []engine.Entry) {
	c.Remove(placementv1beta1.PreviousRetained)
	if len(entries) == 0 {
		c.Remove(placementv1beta1.ConditionRetained)
		return
	}
	reason, why := placementv1beta1.ReasonHubRestored, "The hub was restored to an earlier state, or is another hub"
	if of.Another {
		reason, why = placementv1beta1.ReasonWorkReplaced, "The Work replaced another one of the same name"
	}
	c.yes(placementv1beta1.ConditionRetained, reason, fmt.Sprintf(
		"%s: the member retains %d objects that are no longer in the Work. The first is %s. "+
			"Place them again, or release them: annotate the MemberCluster with %s=%s",
		why, len(entries), manifest.KeyOf(entries[0].Ref), clusterv1beta1.AnnotationRelease, of.ID))
}

// watched names the first resource that the agent cannot watch, and the interval at which it reads
// it instead.
func (c conditions) watched(unwatched []schema.GroupVersionResource, every time.Duration) {
	if len(unwatched) == 0 {
		c.Remove(placementv1beta1.ConditionWatched)
		return
	}
	first := unwatched[0].GroupResource()
	c.no(placementv1beta1.ConditionWatched, placementv1beta1.ReasonWatchForbidden, fmt.Sprintf(
		"The agent cannot watch %s, and detects changes on the member only every %s: its role lacks the rule %s",
		first, every, engine.Rule(first.Group, first.Resource, "list", "watch")))
}
