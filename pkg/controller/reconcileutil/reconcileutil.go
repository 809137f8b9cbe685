// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reconcileutil has what every controller needs: the error of a setup, reads of objects
// that might not exist, patches under optimistic concurrency, and a requeue on conflicts.
//
// A patch contains only the fields that changed and the resourceVersion that was read. Nothing
// is sent if no field changed.
package reconcileutil

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// SetupError names the controller in the error of its setup. It returns nil for nil.
func SetupError(name string, err error) error {
	return while(err, "setting up controller %s", name)
}

// GetIfExists reads an object and reports whether it exists. An object that does not exist is
// no error.
func GetIfExists(ctx context.Context, c client.Reader, key client.ObjectKey, object client.Object, doing string, words ...any) (bool, error) {
	err := c.Get(ctx, key, object)
	return err == nil, while(client.IgnoreNotFound(err), doing, words...)
}

// Patch sends the changes that change makes to an object, except those of its status. The words
// describe the operation for the error, which wraps the API server's: IsConflict and IsNotFound
// work on it.
func Patch(ctx context.Context, c client.Writer, object client.Object, change func(), doing string, words ...any) error {
	base := copyOf(object)
	if change(); equality.Semantic.DeepEqual(base, object) {
		return nil
	}
	return while(c.Patch(ctx, object, PatchFrom(base)), doing, words...)
}

// PatchStatus is Patch for the status of an object.
func PatchStatus(ctx context.Context, c client.StatusClient, object client.Object, change func(), doing string, words ...any) error {
	base := copyOf(object)
	if change(); equality.Semantic.DeepEqual(base, object) {
		return nil
	}
	return while(c.Status().Patch(ctx, object, PatchFrom(base)), doing, words...)
}

// SetAnnotation sets an annotation of an object that was read. Objects of a cache may share their annotations, so it
// copies them.
func SetAnnotation(object client.Object, key, value string) {
	annotations := map[string]string{}
	maps.Copy(annotations, object.GetAnnotations())
	annotations[key] = value
	object.SetAnnotations(annotations)
}

// AddFinalizer adds a finalizer to an object with a patch.
func AddFinalizer(ctx context.Context, c client.Writer, object client.Object, finalizer, doing string, words ...any) error {
	if controllerutil.ContainsFinalizer(object, finalizer) {
		return nil
	}
	base := copyOf(object)
	controllerutil.AddFinalizer(object, finalizer)
	return while(c.Patch(ctx, object, PatchFrom(base)), doing, words...)
}

// RemoveFinalizer removes a finalizer from an object with a patch. An object that does not exist
// is no error.
func RemoveFinalizer(ctx context.Context, c client.Writer, object client.Object, finalizer, doing string, words ...any) error {
	base := copyOf(object)
	if !controllerutil.RemoveFinalizer(object, finalizer) {
		return nil
	}
	return while(client.IgnoreNotFound(c.Patch(ctx, object, PatchFrom(base))), doing, words...)
}

// PatchFrom is the patch from base to an object, with the resourceVersion of base, for writes
// that Patch and PatchStatus cannot express.
func PatchFrom(base client.Object) client.Patch {
	return client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
}

func copyOf(object client.Object) client.Object { return object.DeepCopyObject().(client.Object) }

func while(err error, doing string, words ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(doing, words...), err)
}
