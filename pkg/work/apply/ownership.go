// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

const appliedWorkKind = "AppliedWork"

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

// isAppliedWork recognizes an owner in whichever version it was written.
func isAppliedWork(ref metav1.OwnerReference) bool {
	version, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && version.Group == placementv1beta1.GroupVersion.Group && ref.Kind == appliedWorkKind
}

// standing is who owns an object, seen by one owner.
type standing struct {
	ours   bool
	works  []string                // names of other AppliedWorks
	others []metav1.OwnerReference // owners that are not AppliedWorks
}

func (s standing) shared() bool { return len(s.works)+len(s.others) > 0 }

// standingOf sorts owner references. One with our name and another UID is ours
// too: it is left from an AppliedWork that was deleted and made again.
func standingOf(refs []metav1.OwnerReference, owner metav1.OwnerReference) standing {
	var s standing
	for _, ref := range refs {
		switch {
		case isAppliedWork(ref) && ref.Name == owner.Name:
			s.ours = true
		case isAppliedWork(ref):
			s.works = append(s.works, ref.Name)
		default:
			s.others = append(s.others, ref)
		}
	}
	return s
}

// withoutOwner is refs without owner in any generation.
func withoutOwner(refs []metav1.OwnerReference, owner metav1.OwnerReference) []metav1.OwnerReference {
	var kept []metav1.OwnerReference
	for _, ref := range refs {
		if !isAppliedWork(ref) || ref.Name != owner.Name {
			kept = append(kept, ref)
		}
	}
	return kept
}

// withOwner is refs with owner in its place, or added at the end.
func withOwner(refs []metav1.OwnerReference, owner metav1.OwnerReference) []metav1.OwnerReference {
	var result []metav1.OwnerReference
	placed := false
	for _, ref := range refs {
		if !isAppliedWork(ref) || ref.Name != owner.Name {
			result = append(result, ref)
			continue
		}
		if !placed {
			result = append(result, owner)
			placed = true
		}
	}
	if !placed {
		result = append(result, owner)
	}
	return result
}

// mayOwn decides whether a Work may write an object that exists: nil, or why
// not. compatible says whether the Work of another AppliedWork agrees to share.
func mayOwn(live *unstructured.Unstructured, owner metav1.OwnerReference, strategy placementv1beta1.ApplyStrategy, compatible func(work string) bool) *refusal {
	s := standingOf(live.GetOwnerReferences(), owner)
	if !s.ours && strategy.WhenToTakeOver == placementv1beta1.TakeOverNever {
		return &refusal{placementv1beta1.ReasonNotTakenOver,
			"The object was on the member before, and whenToTakeOver is Never: delete the object, or choose another whenToTakeOver"}
	}
	reason := placementv1beta1.ReasonFailedToTakeOver
	if s.ours {
		reason = placementv1beta1.ReasonManifestApplyFailed
	}
	if text := mayShare(s, strategy, compatible); text != "" {
		return &refusal{reason, text}
	}
	return nil
}

func mayShare(s standing, strategy placementv1beta1.ApplyStrategy, compatible func(work string) bool) string {
	if !s.shared() {
		return ""
	}
	if !strategy.AllowCoOwnership {
		if len(s.works) > 0 {
			return fmt.Sprintf("The object is already owned by another AppliedWork, %q: "+
				"take it out of one of the placements, or set allowCoOwnership in both", s.works[0])
		}
		return fmt.Sprintf("The object is owned by %s %q: set allowCoOwnership to own it together",
			s.others[0].Kind, s.others[0].Name)
	}
	for _, work := range s.works {
		if !compatible(work) {
			return fmt.Sprintf("The object is already owned by another AppliedWork, %q, whose apply strategy differs or which is of another hub: "+
				"give both placements the same type with allowCoOwnership, or place the object from one hub only", work)
		}
	}
	return ""
}
