// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/engine"
)

// ownerOf is the owner reference that every object of a Work carries.
func ownerOf(record *placementv1beta1.AppliedWork) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion:         placementv1beta1.GroupVersion.String(),
		Kind:               appliedWorkKind,
		Name:               record.Name,
		UID:                record.UID,
		BlockOwnerDeletion: ptr.To(true),
	}
}

// lostOwner is the owner of a Work's objects whose AppliedWork is lost.
func lostOwner(record string) metav1.OwnerReference {
	return ownerOf(&placementv1beta1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: record}})
}

// mayOwn decides whether a Work may write an object that exists, by who owns it: nil, or
// why not. compatible says whether the Work of another AppliedWork agrees to share.
func mayOwn(s engine.Standing, strategy placementv1beta1.ApplyStrategy, compatible func(work string) bool) *engine.Refusal {
	if !s.Ours && strategy.WhenToTakeOver == placementv1beta1.TakeOverNever {
		return &engine.Refusal{Cause: engine.NotTakenOver,
			Message: "The object was on the member before, and whenToTakeOver is Never: delete the object, or choose another whenToTakeOver"}
	}
	cause := engine.TakenByOthers
	if s.Ours {
		cause = engine.NotShared
	}
	if text := mayShare(s, strategy, compatible); text != "" {
		return &engine.Refusal{Cause: cause, Message: text}
	}
	return nil
}

func mayShare(s engine.Standing, strategy placementv1beta1.ApplyStrategy, compatible func(work string) bool) string {
	if !s.Shared() {
		return ""
	}
	if !strategy.AllowCoOwnership {
		if len(s.Works) > 0 {
			return fmt.Sprintf("The object is already owned by another AppliedWork, %q: "+
				"take it out of one of the placements, or set allowCoOwnership in both", s.Works[0])
		}
		return fmt.Sprintf("The object is owned by %s %q: set allowCoOwnership to own it together",
			s.Others[0].Kind, s.Others[0].Name)
	}
	for _, work := range s.Works {
		if !compatible(work) {
			return fmt.Sprintf("The object is already owned by another AppliedWork, %q, whose apply strategy differs or which is of another hub: "+
				"give both placements the same type with allowCoOwnership, or place the object from one hub only", work)
		}
	}
	return ""
}
