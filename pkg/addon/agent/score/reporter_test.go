// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
	"fleetgate.io/fleetgate/test/support/build"
)

func reporter(objects ...client.Object) *Reporter {
	hub := fake.NewClientBuilder().WithScheme(build.Scheme(clusterv1alpha1.AddToScheme)).WithObjects(objects...).WithStatusSubresource(&clusterv1alpha1.AddOnPlacementScore{}).Build()
	return &Reporter{Hub: hub, Namespace: "edge", Free: &Free{}, Clock: clocktesting.NewFakePassiveClock(time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC))}
}

func TestReporter_NeitherWritesNorRemovesScoresOfOthers(t *testing.T) {
	r := reporter(&clusterv1alpha1.AddOnPlacementScore{ObjectMeta: metav1.ObjectMeta{Namespace: "edge", Name: Name}})
	free := Of(corev1.ResourceList{"cpu": resource.MustParse("4")})
	if _, err := r.report(t.Context(), nil, free); !errors.Is(err, errForeign) {
		t.Errorf("got %v, want %v", err, errForeign)
	}
	if err := r.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	left := r.object()
	if err := r.Hub.Get(t.Context(), client.ObjectKeyFromObject(left), left); err != nil || len(left.Status.Scores) > 0 {
		t.Errorf("got %+v, %v, want the object as it was", left, err)
	}
}

func TestReporter_WritesThenSkipsUnchanged(t *testing.T) {
	r := reporter()
	scores := Of(corev1.ResourceList{"cpu": resource.MustParse("10"), "memory": resource.MustParse("1Gi")})
	has, err := r.report(t.Context(), nil, scores)
	if err != nil {
		t.Fatal(err)
	}
	stored := r.object()
	if err := r.Hub.Get(t.Context(), client.ObjectKeyFromObject(stored), stored); err != nil {
		t.Fatal(err)
	}
	if want := r.Clock.Now().Add(validity); len(stored.Status.Scores) != 2 || stored.Status.Scores[0].Value != 40 || !stored.Status.ValidUntil.Time.Equal(want) {
		t.Errorf("got %+v, want scores until %s", stored.Status, want)
	}
	before := stored.ResourceVersion
	if _, err := r.report(t.Context(), has, scores); err != nil {
		t.Fatal(err)
	}
	if _, err := r.report(t.Context(), nil, scores); err != nil { // After a restart.
		t.Fatal(err)
	}
	if err := r.Hub.Get(t.Context(), client.ObjectKeyFromObject(stored), stored); err != nil || stored.ResourceVersion != before {
		t.Errorf("unchanged scores were written again: %v", err)
	}
	if err := r.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.Hub.Get(t.Context(), client.ObjectKeyFromObject(stored), stored); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("got %v, want no scores", err)
	}
}
