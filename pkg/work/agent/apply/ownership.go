// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/work/engine"
)

// mayOwn returns why a Work must not write an existing object with these owners, or nil. shared is
// set if the author of the object lets Works share it. compatible reports whether the Work of
// another AppliedWork agrees.
func mayOwn(s engine.Ownership, strategy placementv1beta1.ApplyStrategy, shared bool, compatible func(work string) bool) *refusal.Refusal {
	if !s.Ours && !s.Returns && strategy.WhenToTakeOver == placementv1beta1.TakeOverNever {
		return &refusal.Refusal{Reason: engine.NotTakenOver,
			Message: "The object was on the member before, and whenToTakeOver is Never: delete the object, or choose another whenToTakeOver"}
	}
	reason := engine.TakenByOthers
	if s.Ours {
		reason = engine.NotShared
	}
	if text := mayShare(s, strategy, shared, compatible); text != "" {
		return &refusal.Refusal{Reason: reason, Message: text}
	}
	return nil
}

// isShared reports whether the author of a manifest lets Works share its object.
func isShared(manifest *unstructured.Unstructured) bool {
	return manifest.GetAnnotations()[placementv1beta1.SharedAnnotation] == placementv1beta1.SharedAmongPlacements
}

// shareRemedy explains how two Works can share an object.
const shareRemedy = "remove it from one of the placements, or set allowCoOwnership in both and annotate the object on the hub with " +
	placementv1beta1.SharedAnnotation + "=" + placementv1beta1.SharedAmongPlacements

// mayShare returns why the object must not be shared, or "". Clients of KubeFleet's API expect that
// the first of two placements owns the object, whatever both allow, so sharing also needs the
// annotation of the object's author. Works that share an object already keep it, because previous
// versions did not require the annotation.
func mayShare(s engine.Ownership, strategy placementv1beta1.ApplyStrategy, shared bool, compatible func(work string) bool) string {
	if !s.Shared() {
		return ""
	}
	if !strategy.AllowCoOwnership {
		if len(s.Works) > 0 {
			return fmt.Sprintf("The object is already owned by another AppliedWork, %q: "+shareRemedy, s.Works[0])
		}
		return fmt.Sprintf("The object is owned by %s %q: set allowCoOwnership to own it together",
			s.Others[0].Kind, s.Others[0].Name)
	}
	if len(s.Works) > 0 && !s.Ours && !shared {
		return fmt.Sprintf("The object is already owned by another AppliedWork, %q: "+shareRemedy, s.Works[0])
	}
	for _, work := range s.Works {
		if !compatible(work) {
			return fmt.Sprintf("The object is already owned by another AppliedWork, %q, whose apply strategy differs or which is of another hub: "+
				"give both placements the same type with allowCoOwnership, or place the object from one hub only", work)
		}
	}
	return ""
}
