// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"

	"fleetgate.io/fleetgate/pkg/work/engine/availability"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

func unavailable() Result {
	return Result{Manifests: []ManifestResult{
		{Ref: manifest.Ref{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "web"}, pods: availability.Pods{Selector: "app=web"},
			Availability: availability.Finding{State: availability.NotYet, Message: "Not all replicas are available yet"}},
		{Ref: manifest.Ref{Version: "v1", Kind: "Service", Namespace: "shop", Name: "web"},
			Availability: availability.Finding{State: availability.NotYet, Message: "The load balancer has no address yet"}},
	}}
}

func brokenPod(namespace, name, app string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": app}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "main",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "InvalidImageName"}}}}},
	}
}

// lists counts what is listed.
func lists(e *Engine) int {
	n := 0
	for _, action := range e.member.(*fake.FakeDynamicClient).Actions() {
		if action.Matches("list", "pods") {
			n++
		}
	}
	return n
}

func TestReadPods_ReadsPodsWithGrowingDelays(t *testing.T) {
	now := testingclock.NewFakePassiveClock(time.Unix(1e9, 0))
	e, _ := engineOn(t, now, brokenPod("shop", "web-1", "web"), brokenPod("shop", "db-1", "db"), brokenPod("other", "web-0", "web"))
	e.caches = newCaches()
	const plain, told = "Not all replicas are available yet", "Not all replicas are available yet. Pod web-1: container main: InvalidImageName"
	for _, step := range []struct {
		after, in time.Duration
		lists     int
		want      string
	}{
		{after: 0, in: 10 * time.Second, lists: 0, want: plain},
		{after: 9 * time.Second, in: time.Second, lists: 0, want: plain},
		{after: time.Second, in: 20 * time.Second, lists: 1, want: told},
		{after: 5 * time.Second, in: 15 * time.Second, lists: 1, want: told},
		{after: 15 * time.Second, in: 40 * time.Second, lists: 2, want: told},
		{after: time.Hour, in: 80 * time.Second, lists: 3, want: told},
		{after: time.Hour, in: 160 * time.Second, lists: 4, want: told},
		{after: time.Hour, in: 5 * time.Minute, lists: 5, want: told},
		{after: time.Hour, in: 5 * time.Minute, lists: 6, want: told},
	} {
		now.SetTime(now.Now().Add(step.after))
		r := unavailable()
		e.ReadPods(t.Context(), "work", &r)
		if out := r.Manifests[0]; out.Availability.Message != step.want || out.ReadPodsIn != step.in || lists(e) != step.lists {
			t.Errorf("%s later: got %q, asked again in %s, %d lists; want %q, %s, %d", step.after, out.Availability.Message, out.ReadPodsIn, lists(e), step.want, step.in, step.lists)
		}
		if out := r.Manifests[1]; out.ReadPodsIn != 0 || out.Availability.Message != "The load balancer has no address yet" {
			t.Errorf("a Service was asked for Pods: %+v", out)
		}
	}

	well := unavailable()
	well.Manifests[0].Availability.State = availability.Available
	e.ReadPods(t.Context(), "work", &well)
	r := unavailable()
	e.ReadPods(t.Context(), "work", &r)
	if r.Manifests[0].Availability.Message != plain || r.Manifests[0].ReadPodsIn != firstPodsDelay {
		t.Errorf("a workload that was available in between has the message %q", r.Manifests[0].Availability.Message)
	}
}

func TestReadPods_KeepsTheMessageWhenPodsAreForbidden(t *testing.T) {
	now := testingclock.NewFakePassiveClock(time.Unix(1e9, 0))
	e, _ := engineOn(t, now)
	e.caches = newCaches()
	e.member.(*fake.FakeDynamicClient).PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", nil)
	})
	var got []string
	for range 2 {
		r := unavailable()
		e.ReadPods(t.Context(), "work", &r)
		got = append(got, r.Manifests[0].Availability.Message)
		now.SetTime(now.Now().Add(firstPodsDelay))
	}
	if want := slices.Repeat([]string{"Not all replicas are available yet"}, 2); !slices.Equal(got, want) || lists(e) != 1 {
		t.Errorf("got %q after %d lists", got, lists(e))
	}
}
