// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

func TestQueue_PrefersChangedWorksToResyncs(t *testing.T) {
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

func TestEnqueueWorks_PutsAppliedWorksLastAtTheStart(t *testing.T) {
	queue := priorityqueue.New[reconcile.Request]("test")
	defer queue.ShutDown()
	says := func(name, condition string, status metav1.ConditionStatus, generation int64) *placementv1beta1.Work {
		work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 2}}
		work.Status.Conditions = []metav1.Condition{{Type: condition, Status: status, ObservedGeneration: generation}}
		return work
	}
	for _, work := range []*placementv1beta1.Work{
		says("4 brought", placementv1beta1.ConditionApplied, metav1.ConditionTrue, 2),
		says("3 refused", placementv1beta1.ConditionApplied, metav1.ConditionFalse, 2),
		says("2 changed meanwhile", placementv1beta1.ConditionApplied, metav1.ConditionFalse, 1),
	} {
		enqueueWorks().Create(t.Context(), event.CreateEvent{Object: work, IsInInitialList: true}, queue)
	}
	// Priorities are those of the queue, and who came first within one.
	enqueueWorks().Create(t.Context(), event.CreateEvent{Object: &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Name: "2 new"}}}, queue)
	var throttle []string
	for range 4 {
		got, _ := queue.Get()
		throttle = append(throttle, got.Name)
		queue.Done(got)
	}
	if diff := cmp.Diff([]string{"2 changed meanwhile", "2 new", "3 refused", "4 brought"}, throttle); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
}

func TestGate_LimitsConcurrentWorks(t *testing.T) {
	l := newGate(2)
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
	if narrow := newGate(0); !narrow.enter() {
		t.Error("a gate of no width lets nobody pass, ever")
	}
}
