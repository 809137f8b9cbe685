// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/placement/selection"
)

// maxWithheld is how many resources the condition names.
const maxWithheld = 10

// askAgain is the remedy for an answer that does not fit any more.
const askAgain = "kubectl annotate --overwrite <placement> " + placementv1beta1.AuthorMayAnnotation + "=ask"

// bound is what a placement may select; nil if nothing limits it. One that cannot be
// read covers nothing.
func (r *Reconciler) bound(placement metav1.Object) *selection.Bound {
	answer, asked := placement.GetAnnotations()[placementv1beta1.AuthorMayAnnotation]
	if !r.AskAuthors || !asked {
		return nil
	}
	return selection.ParseBound(answer)
}

// reportAuthor says on the placement that nobody was asked for it, and what its bound
// withholds; nil leaves that as it was said when something was selected last. Where all
// is well there is no condition.
func (r *Reconciler) reportAuthor(ctx context.Context, placement placementv1beta1.PlacementObject, withheld []string) error {
	before := placement.DeepCopyObject().(client.Object)
	conditions, bound := &placement.GetStatus().Conditions, r.bound(placement)
	changed, limited := setOrRemove(conditions, placementv1beta1.ConditionAuthorNotAsked, placement.GetGeneration(), notAsked(r.AskAuthors && bound == nil)), false
	if withheld != nil || bound == nil {
		limited = setOrRemove(conditions, placementv1beta1.ConditionResourcesWithheld, placement.GetGeneration(), withholding(bound, withheld))
	}
	if !changed && !limited {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, placement, reconcileutil.PatchFrom(before)); err != nil {
		return fmt.Errorf("writing the status of placement %q: %w", placement.GetName(), err)
	}
	if c := meta.FindStatusCondition(*conditions, placementv1beta1.ConditionResourcesWithheld); limited && c != nil {
		r.Recorder.Eventf(placement, nil, "Warning", c.Type, "Select", "%s", c.Message)
	}
	return nil
}

// setOrRemove sets a condition of the type, or removes it if there is nothing to say.
func setOrRemove(conditions *[]metav1.Condition, kind string, generation int64, c *metav1.Condition) (changed bool) {
	if c == nil {
		return meta.RemoveStatusCondition(conditions, kind)
	}
	c.Type, c.Status, c.ObservedGeneration = kind, metav1.ConditionTrue, generation
	return meta.SetStatusCondition(conditions, *c)
}

func notAsked(is bool) *metav1.Condition {
	if !is {
		return nil
	}
	return &metav1.Condition{Reason: placementv1beta1.ReasonNoAnswer, Message: "Nobody was asked whether the author of this placement may have delivered what it selects: " +
		"it is older than the question, or was written past it. It keeps what it selects. Somebody who may have it delivered confirms it with " + askAgain}
}

func withholding(bound *selection.Bound, withheld []string) *metav1.Condition {
	if bound == nil || len(withheld) == 0 {
		return nil
	}
	names := strings.Join(withheld[:min(len(withheld), maxWithheld)], ", ")
	if more := len(withheld) - maxWithheld; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return &metav1.Condition{Reason: placementv1beta1.ReasonAuthorMayNot, Message: fmt.Sprintf(
		"Selected and not placed: %s. When user %q was asked, who wrote the placement, these were not there or not allowed. Somebody who may get or place them has the question asked again with %s",
		names, bound.Author, askAgain)}
}
