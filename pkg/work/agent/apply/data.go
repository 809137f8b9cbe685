// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/log"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// retainsData reports whether objects with data stay on the member when a Work is deleted, because
// no user asked for their removal. Gateways of previous versions do not record why they delete a
// Work, so data stays.
func retainsData(work metav1.Object) bool {
	annotations := work.GetAnnotations()
	if annotations[placementv1beta1.DeletePolicyAnnotation] == placementv1beta1.DeletePolicyDelete {
		return false
	}
	switch annotations[placementv1beta1.DeletionCauseAnnotation] {
	case placementv1beta1.DeletionPlacementDeleted, placementv1beta1.DeletionResourceRemoved:
		return false
	}
	return true
}

// hasCause reports whether the gateway, or a user with a deletion policy, wants the objects of a deleted
// Work to be removed. Works of previous gateways, and those that others make, state nothing.
func hasCause(work metav1.Object) bool {
	annotations := work.GetAnnotations()
	return annotations[placementv1beta1.DeletionCauseAnnotation] != placementv1beta1.DeletionNone || annotations[placementv1beta1.DeletePolicyAnnotation] != ""
}

// maxRetainedEvents limits the events about released objects per reconcile.
const maxRetainedEvents = 10

// recordRetained emits events for objects that a Work released and that stay on the member; the log
// has all of them. Each event has the object as related: the API server aggregates events that
// differ only in their note and keeps only the first note.
func (r *Reconciler) recordRetained(ctx context.Context, of metav1.Object, retained []engine.Retained) {
	work, _ := of.(*placementv1beta1.Work)
	for i, object := range retained {
		log.FromContext(ctx).Info("Released an object that stays on the member", "Work", of.GetName(), "reason", object.Why)
		if work != nil && i < maxRetainedEvents {
			r.events.Eventf(work, related(object.Ref), corev1.EventTypeNormal, EventRetained, "Remove", "%s", object.Why)
		}
	}
	if more := len(retained) - maxRetainedEvents; work != nil && more > 0 {
		r.events.Eventf(work, nil, corev1.EventTypeNormal, EventRetained, "Remove", "%d more objects stay on the member", more)
	}
}

// related returns a reference to an object of the member for an event.
func related(ref manifest.Ref) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name}}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: ref.Group, Version: ref.Version, Kind: ref.Kind})
	return object
}
