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
