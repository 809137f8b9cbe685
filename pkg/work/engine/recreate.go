// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// immutableWords recognizes messages about immutable fields: API servers have no machine-readable
// cause for them. A CustomResourceDefinition has its own, or a rule that compares with oldSelf.
var immutableWords = []string{"immutable", "may not be changed", "may not change", "cannot be changed", "can not be changed",
	"must not be changed", "cannot change", "updates to", "pod updates may not", "may not be updated", "cannot be updated",
	"cannot be modified", "may not be modified", "must not be modified", "once set", "once created", "can not be unset",
	"item may not be added", "item may not be removed", "update from non-nil value to nil", "update to nil", "oldSelf"}

// isImmutable reports whether a write was rejected because it changes an immutable field, by the API server, or by a
// webhook or a policy, whose texts people write.
func isImmutable(err error) bool {
	var response apierrors.APIStatus
	if !errors.As(err, &response) {
		return false
	}
	message := response.Status().Message
	if strings.HasPrefix(message, "admission webhook ") || strings.Contains(message, "ValidatingAdmissionPolicy '") {
		return strings.Contains(strings.ToLower(message), immutableWords[0])
	}
	if !apierrors.IsInvalid(err) || response.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(response.Status().Details.Causes, func(cause metav1.StatusCause) bool {
		return slices.ContainsFunc(immutableWords, func(words string) bool { return strings.Contains(cause.Message, words) })
	})
}

// holdsOthers lists the kinds that are never deleted for re-creation: their contents would be
// deleted too and could not be restored.
func holdsOthers(kind schema.GroupKind) bool {
	switch kind {
	case schema.GroupKind{Kind: "Namespace"},
		schema.GroupKind{Kind: "PersistentVolume"},
		schema.GroupKind{Kind: "PersistentVolumeClaim"},
		schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		return true
	}
	return false
}

// mayRecreate returns why an object with an immutable field is not deleted and re-created; empty if
// it is.
func (e *Engine) mayRecreate(it Item, live *unstructured.Unstructured, owner metav1.OwnerReference) string {
	s := OwnershipOf(live.GetOwnerReferences(), owner)
	switch {
	case holdsOthers(it.object.GroupVersionKind().GroupKind()):
		return fmt.Sprintf("A %s is never deleted for that, with all that it holds: revert the change, or delete it yourself", it.Ref.Kind)
	case e.RecreateAnnotation == "" || it.object.GetAnnotations()[e.RecreateAnnotation] != PolicyRecreate:
		return e.Remedies.Immutable
	case !s.Ours || s.Shared():
		return "It is not deleted and made again, because others own it too"
	}
	return ""
}
