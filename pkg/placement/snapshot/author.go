// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/placement/selection"
)

// maxWithheld is the number of resources that the condition names.
const maxWithheld = 10

// repeatCheck is the command that repeats the check of the author.
const repeatCheck = "kubectl annotate --overwrite <placement> " + placementv1beta1.AuthorMayAnnotation + "=ask"

// bound is what a placement is allowed to select; nil means no limit. An unreadable bound covers
// nothing.
func (r *Reconciler) bound(placement metav1.Object) *selection.Bound {
	result, checked := placement.GetAnnotations()[placementv1beta1.AuthorMayAnnotation]
	if !r.CheckAuthors || !checked {
		return nil
	}
	return selection.ParseBound(result)
}

// reportAuthor writes the conditions of a placement whose author was not checked, or whose bound
// withholds resources. If withheld is nil, the condition of the last selection stays. Without a
// problem there is no condition.
func (r *Reconciler) reportAuthor(ctx context.Context, placement placementv1beta1.PlacementObject, withheld []string) error {
	before := placement.DeepCopyObject().(client.Object)
	conditions, bound := &placement.GetStatus().Conditions, r.bound(placement)
	changed, limited := setOrRemove(conditions, placementv1beta1.ConditionAuthorCheckSkipped, placement.GetGeneration(), checkSkipped(r.CheckAuthors && bound == nil)), false
	changed = meta.RemoveStatusCondition(conditions, placementv1beta1.PreviousAuthorCheckSkipped) || changed
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

func checkSkipped(is bool) *metav1.Condition {
	if !is {
		return nil
	}
	return &metav1.Condition{Reason: placementv1beta1.ReasonAuthorUnknown, Message: "The rights of the author of this placement were not checked: " +
		"the placement is older than the check, or bypassed admission. It keeps the resources that it selects. To check it, a user with rights to these resources runs: " + repeatCheck}
}

func withholding(bound *selection.Bound, withheld []string) *metav1.Condition {
	if bound == nil || len(withheld) == 0 {
		return nil
	}
	return &metav1.Condition{Reason: placementv1beta1.ReasonAuthorForbidden, Message: fmt.Sprintf(
		"Selected and not placed: %s. When the rights of the author, user %q, were checked, these did not exist or were forbidden. To repeat the check, a user who can get or place them runs: %s",
		refusal.Names(withheld, maxWithheld), bound.Author, repeatCheck)}
}
