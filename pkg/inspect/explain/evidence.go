// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// maxEvents limits the events of an answer.
const maxEvents = 3

// Evidence is what was read from the member about an object that has a problem.
type Evidence struct {
	// Pods is why the worst of a workload's Pods is not ready; empty if unknown.
	Pods string
	// Events are warnings about the object and about that Pod, the newest of each first.
	Events []corev1.Event
}

// Follow adds what was read from the member, or why reading failed. It replaces the remedy only
// if the hub's status gave none.
func (a *Problem) Follow(seen Evidence, unread error) {
	details := []string{}
	if seen.Pods != "" {
		details = append(details, "on the member: "+untrusted.Line(seen.Pods))
	}
	shown := map[string]bool{}
	for i := range seen.Events {
		e := &seen.Events[i]
		key := e.InvolvedObject.Kind + e.InvolvedObject.Name + e.Reason
		if shown[key] || len(shown) == maxEvents {
			continue // An older one of the same kind.
		}
		shown[key] = true
		details = append(details, fmt.Sprintf("event of %s: %s: %s", untrusted.Line(RefOf(e.InvolvedObject.Kind, e.InvolvedObject.Namespace, e.InvolvedObject.Name)), untrusted.Line(e.Reason), untrusted.Excerpt(e.Message, maxReason)))
	}
	if text := remedyOfMessage(strings.Join(details, "\n")); text != "" && a.vague {
		a.Remedy = filled(text, *a, "")
	}
	if unread != nil {
		details = append(details, "reading events and Pods from the member failed: "+untrusted.Line(unread.Error()))
	}
	a.Details = append(a.Details, details...)
}

// LastSeen is when an event happened last. Which of its times are set depends on its writer.
func LastSeen(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}
