// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package availability

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// selectedNode is the annotation by which the scheduler says that a Pod needs a claim.
const selectedNode = "volume.kubernetes.io/selected-node"

// claim is not available while it is not bound. That it is bound is not waited for elsewhere:
// clients of the placement API read that claims are not tracked.
func claim(c *corev1.PersistentVolumeClaim) Finding {
	switch c.Status.Phase {
	case corev1.ClaimBound:
		return Finding{NotTrackable, "The claim is bound"}
	case corev1.ClaimLost:
		return Finding{NotYet, "The claim is lost: its PersistentVolume does not exist any more, or is bound to another claim"}
	}
	return Finding{NotYet, "The claim is not bound to a PersistentVolume yet"}
}

// volume is not available when no claim can be bound to it.
func volume(v *corev1.PersistentVolume) Finding {
	switch v.Status.Phase {
	case corev1.VolumeReleased:
		return Finding{NotYet, "The volume is released: the claim that it was bound to is gone. Remove spec.claimRef.uid on the member to have it bound again"}
	case corev1.VolumeFailed:
		return Finding{NotYet, sentence("The volume failed", v.Status.Message)}
	}
	return untracked()
}

// ClassOf is the StorageClass on which it depends whether an object that is not available has to be
// waited for: that of a claim which is not bound and which no Pod needs. Empty: there is none.
func ClassOf(object *unstructured.Unstructured) string {
	if object.GroupVersionKind().GroupKind() != (schema.GroupKind{Kind: "PersistentVolumeClaim"}) || object.GetAnnotations()[selectedNode] != "" {
		return ""
	}
	phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
	bound, _, _ := unstructured.NestedString(object.Object, "spec", "volumeName")
	if phase != string(corev1.ClaimPending) && phase != "" || bound != "" {
		return ""
	}
	class, _, _ := unstructured.NestedString(object.Object, "spec", "storageClassName")
	return class
}

// WithClass is the finding of a claim with its StorageClass. Of a class that waits for its first
// consumer, a claim without one stays as it is.
func WithClass(found Finding, class *unstructured.Unstructured) Finding {
	mode, _, _ := unstructured.NestedString(class.Object, "volumeBindingMode")
	if mode == string(storagev1.VolumeBindingWaitForFirstConsumer) {
		return Finding{NotTrackable, "The claim is bound when the first Pod needs it, as its StorageClass says"}
	}
	return found
}
