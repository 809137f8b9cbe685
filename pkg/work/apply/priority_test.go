// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

func TestChangedWorksComeFirstAndLookedAtOnesLast(t *testing.T) {
	queue := priorityqueue.New[reconcile.Request]("test")
	defer queue.ShutDown()
	request := func(name string) reconcile.Request {
		return reconcile.Request{NamespacedName: client.ObjectKey{Name: name}}
	}
	queue.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(resyncPriority)}, request("resync"))
	queue.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(retryPriority)}, request("retry"))
	touched := &placementv1beta1.Work{}
	touched.Name = "touched"
	enqueueTouched(t.Context(), event.GenericEvent{Object: touched}, queue)
	touched.Name = "resync-touched"
	queue.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(resyncPriority)}, request("resync-touched"))
	enqueueTouched(t.Context(), event.GenericEvent{Object: touched}, queue)
	queue.Add(request("changed"))
	for _, want := range []string{"changed", "touched", "resync-touched", "retry", "resync"} {
		got, _ := queue.Get()
		if got.Name != want {
			t.Errorf("it is the turn of %s, want %s", got.Name, want)
		}
		queue.Done(got)
	}
}

func TestLaneIsAsWideAsItIs(t *testing.T) {
	l := newLane(2)
	for range 2 {
		if !l.enter() {
			t.Fatal("it is full before it is")
		}
	}
	if l.enter() {
		t.Error("a third has entered")
	}
	l.leave()
	if !l.enter() {
		t.Error("nobody enters after one has left")
	}
	if narrow := newLane(0); !narrow.enter() {
		t.Error("a lane of no width lets nobody pass, ever")
	}
}
