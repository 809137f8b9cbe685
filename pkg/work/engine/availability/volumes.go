// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package availability

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// selectedNode is the annotation that the scheduler sets when a Pod needs the claim.
const selectedNode = "volume.kubernetes.io/selected-node"

// claim is unavailable until it is bound. Once bound it is NotTrackable and not Available, as
// clients of the placement API expect.
func claim(c *corev1.PersistentVolumeClaim) Finding {
	switch c.Status.Phase {
	case corev1.ClaimBound:
		return Finding{NotTrackable, "The claim is bound"}
	case corev1.ClaimLost:
		return Finding{NotYet, "The claim is lost: its PersistentVolume does not exist any more, or is bound to another claim"}
	}
	return Finding{NotYet, "The claim is not bound to a PersistentVolume yet"}
}

// volume is unavailable if no claim can be bound to it.
func volume(v *corev1.PersistentVolume) Finding {
	switch v.Status.Phase {
	case corev1.VolumeReleased:
		return Finding{NotYet, "The volume is released: its claim was deleted. To bind it again, remove spec.claimRef.uid on the member"}
	case corev1.VolumeFailed:
		return Finding{NotYet, sentence("The volume failed", v.Status.Message)}
	}
	return untracked()
}

// ClassOf returns the StorageClass that decides whether to wait for an unbound claim that no Pod
// needs yet; empty if there is none.
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

// WithClass returns the finding for a claim with this StorageClass. With WaitForFirstConsumer, a
// claim without a consumer stays unbound and must not be waited for.
func WithClass(found Finding, class *unstructured.Unstructured) Finding {
	mode, _, _ := unstructured.NestedString(class.Object, "volumeBindingMode")
	if mode == string(storagev1.VolumeBindingWaitForFirstConsumer) {
		return Finding{NotTrackable, "The claim is bound when the first Pod needs it, as its StorageClass says"}
	}
	return found
}
