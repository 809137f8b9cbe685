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
	// firstPodsDelay is how long a workload can be unavailable before its Pods are read, and the delay
	// before they are read again. The delay doubles up to longestPodsDelay. Changes of Pods trigger
	// nothing, because the workload does not change with them.
	firstPodsDelay   = 10 * time.Second
	longestPodsDelay = 5 * time.Minute
	// maxPods limits the Pods that are read per workload.
	maxPods = 100
)

// podCauses caches the causes that the Pods of one work's workloads showed.
type podCauses struct {
	mu sync.Mutex // guards of
	of map[manifest.Key]podCause
}

// podCause is the cause that one workload's Pods showed.
type podCause struct {
	why   string
	due   time.Time
	pause time.Duration
}

// ReadPods adds to unavailable workloads the cause that their Pods show, and sets AskIn. If the
// agent cannot list Pods, it adds nothing.
func (e *Engine) ReadPods(ctx context.Context, work string, r *Result) {
	podCauses := &e.caches.of(work).podCauses
	podCauses.mu.Lock()
	defer podCauses.mu.Unlock()
	before := podCauses.of
	podCauses.of = map[manifest.Key]podCause{}
	now := e.clock.Now()
	for i := range r.Manifests {
		out := &r.Manifests[i]
		if out.pods.Selector == "" || out.Availability.State != availability.NotYet {
			continue
		}
		key := manifest.KeyOf(out.Ref)
		known, ok := before[key]
		if !ok {
			known = podCause{due: now.Add(firstPodsDelay), pause: firstPodsDelay}
		}
		if !now.Before(known.due) {
			known.why = e.readPods(ctx, *out)
			known.pause = min(2*known.pause, longestPodsDelay)
			known.due = now.Add(known.pause)
		}
		podCauses.of[key], out.ReadPodsIn = known, known.due.Sub(now)
		if known.why != "" {
			out.Availability.Message = Shorten(out.Availability.Message + ". " + known.why)
		}
	}
}

// readPods returns the cause that the Pods show now; empty if they cannot be read.
func (e *Engine) readPods(ctx context.Context, out ManifestResult) string {
	list, err := e.member.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(out.Ref.Namespace).
		List(ctx, metav1.ListOptions{LabelSelector: out.pods.Selector, Limit: maxPods})
	if err != nil {
		log.FromContext(ctx).V(1).Info("Could not list the Pods of an unavailable workload", "workload", out.Ref, "reason", err.Error())
		return ""
	}
	var pods corev1.PodList
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.UnstructuredContent(), &pods); err != nil {
		return ""
	}
	return availability.WhyNot(out.pods.Latest(pods.Items))
}
