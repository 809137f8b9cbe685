// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

func TestFinalize_KeepsRetainedObjectsOfADeletedWork(t *testing.T) {
	b := newBed(t, Options{}, newWork("work", nil, manifestNamespace, manifestA("1")))
	b.look("work")
	b.change("work", func(work *placementv1beta1.Work) {
		work.Spec.Workload.Manifests = raw(manifestNamespace, manifestA("1"), manifestSecret)
	})
	b.look("work")
	b.change("work", func(work *placementv1beta1.Work) { // as after a restore and an immediate deletion
		delete(work.Annotations, placementv1beta1.EpochAnnotation)
		work.Spec.Workload.Manifests = raw(manifestNamespace, manifestA("1"))
	})
	if err := b.hub.Delete(t.Context(), b.work("work")); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		b.look("work")
	}
	if b.member.objects[pathA] != nil {
		t.Error("objects of the Work remain")
	}
	if b.member.objects[pathSecret] == nil || b.member.objects["/api/v1/namespaces/ns"] == nil {
		t.Error("the retained object or its namespace is gone")
	}
	if err := b.hub.Get(t.Context(), client.ObjectKey{Namespace: memberNamespace, Name: "work"}, &placementv1beta1.Work{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Work is still there: %v", err)
	}
	if record := b.member.objects[recordPath("work")]; record == nil || record.GetAnnotations()[retention.Annotation] == "" {
		t.Error("the AppliedWork has no mark of retention")
	}
	if held := b.reconciler.options.Retention.Summary(); held.Objects != 2 {
		t.Errorf("held is %v", held)
	}
}

// A user deletes the Work, its namespace or its CustomResourceDefinition on the hub.
func TestFinalize_RetainsObjectsOfAWorkDeletedWithoutCause(t *testing.T) {
	b := newBed(t, Options{}, newWork("work", nil, manifestNamespace, manifestA("1")))
	b.change("work", func(work *placementv1beta1.Work) {
		work.Annotations = map[string]string{placementv1beta1.DeletionCauseAnnotation: placementv1beta1.DeletionNone}
	})
	b.look("work")
	if err := b.hub.Delete(t.Context(), b.work("work")); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		b.look("work")
	}
	if err := b.hub.Get(t.Context(), client.ObjectKey{Namespace: memberNamespace, Name: "work"}, &placementv1beta1.Work{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Work is still there: %v", err)
	}
	if b.member.objects[pathA] == nil || b.reconciler.options.Retention.Summary().Objects != 2 {
		t.Fatalf("object %v, retained %v", b.member.objects[pathA], b.reconciler.options.Retention.Summary())
	}

	again := newWork("work", nil, manifestNamespace, manifestA("1"))
	again.UID = "of-the-next-work"
	if err := b.hub.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		b.look("work")
	}
	if held := b.reconciler.options.Retention.Summary(); held.Objects != 0 || b.member.objects[pathA] == nil {
		t.Errorf("retained is %v after the Work returned", held)
	}
}
