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

// immutableWords are how API servers say that a field may not change: there is no
// code for it.
var immutableWords = []string{"immutable", "may not be changed", "may not change", "cannot be changed", "cannot change",
	"updates to", "pod updates may not", "may not be updated"}

// isImmutable reports whether a write was refused because of a field that cannot
// be changed on an object that exists.
func isImmutable(err error) bool {
	var answer apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &answer) || answer.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(answer.Status().Details.Causes, func(cause metav1.StatusCause) bool {
		return slices.ContainsFunc(immutableWords, func(words string) bool { return strings.Contains(cause.Message, words) })
	})
}

// holdsOthers lists the kinds that are never deleted to be made again: what is in
// them would go too, and nobody has it.
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

// mayRecreate decides whether an object that cannot be changed is deleted and made
// again: empty, or what stands against it, for people.
func (e *Engine) mayRecreate(it Item, live *unstructured.Unstructured, owner metav1.OwnerReference) string {
	s := StandingOf(live.GetOwnerReferences(), owner)
	switch {
	case holdsOthers(it.object.GroupVersionKind().GroupKind()):
		return fmt.Sprintf("A %s is never deleted for that, with all that it holds: delete it yourself", it.Ref.Kind)
	case !e.Recreates(it.object):
		return e.Remedies.Immutable
	case !s.Ours || s.Shared():
		return "It is not deleted and made again, because others own it too"
	}
	return ""
}
