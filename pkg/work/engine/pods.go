// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"fleetgate.io/fleetgate/pkg/work/engine/availability"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

const (
	// podsFirst is how long a workload may take to become available before its Pods are
	// asked, and how long it is until they are asked again; then it is twice as long each
	// time, up to podsLongest. Nobody is told of a Pod that changes: its workload does not
	// change with it.
	podsFirst   = 10 * time.Second
	podsLongest = 5 * time.Minute
	// podsAsked is how many Pods of a workload are looked at.
	podsAsked = 100
)

// asked is what the Pods of the workloads of one work said, and when.
type asked struct {
	mu sync.Mutex // guards of
	of map[manifest.Key]answer
}

// answer is that of one workload's Pods.
type answer struct {
	why   string
	due   time.Time
	pause time.Duration
}

// AskPods has the workloads of a work that are not available say why, as their Pods tell it,
// and says in the outcomes when to ask them again. Where the agent may not list Pods nothing
// is added.
func (e *Engine) AskPods(ctx context.Context, work string, r *Result) {
	asked := &e.memories.of(work).asked
	asked.mu.Lock()
	defer asked.mu.Unlock()
	before := asked.of
	asked.of = map[manifest.Key]answer{}
	now := e.clock.Now()
	for i := range r.Outcomes {
		out := &r.Outcomes[i]
		if out.pods.Selector == "" || out.Availability.State != availability.NotYet {
			continue
		}
		key := manifest.KeyOf(out.Ref)
		known, ok := before[key]
		if !ok {
			known = answer{due: now.Add(podsFirst), pause: podsFirst}
		}
		if !now.Before(known.due) {
			known.why = e.askPods(ctx, *out)
			known.pause = min(2*known.pause, podsLongest)
			known.due = now.Add(known.pause)
		}
		asked.of[key], out.AskIn = known, known.due.Sub(now)
		if known.why != "" {
			out.Availability.Message = Shorten(out.Availability.Message + ". " + known.why)
		}
	}
}

// askPods is what the Pods say now; nothing if they cannot be read.
func (e *Engine) askPods(ctx context.Context, out Outcome) string {
	list, err := e.member.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(out.Ref.Namespace).
		List(ctx, metav1.ListOptions{LabelSelector: out.pods.Selector, Limit: podsAsked})
	if err != nil {
		log.FromContext(ctx).V(1).Info("Pods cannot be asked why their workload is not available", "workload", out.Ref, "reason", err.Error())
		return ""
	}
	var pods corev1.PodList
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.UnstructuredContent(), &pods); err != nil {
		return ""
	}
	return availability.WhyNot(out.pods.Latest(pods.Items))
}
