// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package routine is what all controllers do alike, so that each of them tells only what it alone
// does: how one is set up, how it reads an object that need not be there, how it changes one that
// others write too, and that it comes again when one of them was first.
//
// A change is a patch of what is to be another than it was, under the condition that nobody has
// written the object since it was read; there is none if nothing is to be another.
package routine

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// SetUp is what SetupWithManager returns after it has added the controller of a name to the
// manager, or has failed to.
func SetUp(name string, err error) error {
	return while(err, "setting up controller %s", name)
}

// Found reads an object, and says whether there is one: that there is none is no failure.
func Found(ctx context.Context, c client.Reader, key client.ObjectKey, object client.Object, doing string, words ...any) (bool, error) {
	err := c.Get(ctx, key, object)
	return err == nil, while(client.IgnoreNotFound(err), doing, words...)
}

// Delay is after what time a controller comes again when somebody else wrote first: its cache
// needs a moment to learn of it.
type Delay time.Duration

// Soon is the usual Delay.
const Soon = Delay(100 * time.Millisecond)

// Again is what Reconcile returns for a result: that somebody else wrote first is routine, of
// which no log, event or condition tells.
func (d Delay) Again(result ctrl.Result, err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return ctrl.Result{RequeueAfter: time.Duration(d)}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return result, nil
}

// Change writes what do changes of an object but for its status. The words say what is being
// done, for the error; it is still one of an object that somebody else has written, or that is
// gone.
func Change(ctx context.Context, c client.Writer, object client.Object, do func(), doing string, words ...any) error {
	base := copyOf(object)
	if do(); equality.Semantic.DeepEqual(base, object) {
		return nil
	}
	return while(c.Patch(ctx, object, Since(base)), doing, words...)
}

// ChangeStatus writes what do changes of an object's status, as Change does the rest.
func ChangeStatus(ctx context.Context, c client.StatusClient, object client.Object, do func(), doing string, words ...any) error {
	base := copyOf(object)
	if do(); equality.Semantic.DeepEqual(base, object) {
		return nil
	}
	return while(c.Status().Patch(ctx, object, Since(base)), doing, words...)
}

// AddFinalizer puts a finalizer on an object, in a change.
func AddFinalizer(ctx context.Context, c client.Writer, object client.Object, finalizer, doing string, words ...any) error {
	if controllerutil.ContainsFinalizer(object, finalizer) {
		return nil
	}
	base := copyOf(object)
	controllerutil.AddFinalizer(object, finalizer)
	return while(c.Patch(ctx, object, Since(base)), doing, words...)
}

// RemoveFinalizer takes a finalizer off an object, in a change. One that is gone has none.
func RemoveFinalizer(ctx context.Context, c client.Writer, object client.Object, finalizer, doing string, words ...any) error {
	base := copyOf(object)
	if !controllerutil.RemoveFinalizer(object, finalizer) {
		return nil
	}
	return while(client.IgnoreNotFound(c.Patch(ctx, object, Since(base))), doing, words...)
}

// Since is the change of an object since base, for writes that need more than the above.
func Since(base client.Object) client.Patch {
	return client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
}

func copyOf(object client.Object) client.Object { return object.DeepCopyObject().(client.Object) }

func while(err error, doing string, words ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(doing, words...), err)
}
