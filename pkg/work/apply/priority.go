// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// What is looked at first when more waits than can be done: a Work that is new or
// was changed (priority 0, the queue's own), then one whose objects changed on the
// member, then one that was refused and is tried again, then all that is looked at
// only because the agent has started or a while has passed.
const (
	touchedPriority = -10
	retryPriority   = -50
	resyncPriority  = handler.LowPriority
)

// firstTurn is after what time a Work that fails asks again whether it is its turn.
// It asks less and less often: all Works fail while a member is away.
const (
	firstTurn   = 500 * time.Millisecond
	longestTurn = 10 * time.Second
)

// enqueueTouched queues a Work because of a change on the member.
func enqueueTouched(_ context.Context, e event.GenericEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)}
	if byPriority, ok := queue.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		byPriority.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(touchedPriority)}, request)
		return
	}
	queue.Add(request)
}

// lane bounds how many workers are at the same time with Works that failed the last
// time: such a look can take long, for example in a webhook that does not answer,
// and the others shall not wait for it.
type lane chan struct{}

func newLane(width int) lane { return make(lane, max(width, 1)) }

func (l lane) enter() bool {
	select {
	case l <- struct{}{}:
		return true
	default:
		return false
	}
}

func (l lane) leave() { <-l }
