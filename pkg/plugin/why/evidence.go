// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// maxEvents is how many events an answer has.
const maxEvents = 3

// Evidence is what a member itself says about an object that is not as it should be.
type Evidence struct {
	// Pods is what holds up the worst of a workload's Pods; empty if that is not known.
	Pods string
	// Events are warnings about the object and that Pod, the newest of each first.
	Events []corev1.Event
}

// Follow adds what the member says, or why it could not be asked. The remedy follows of it
// where what the hub knows gave none away.
func (a *Answer) Follow(seen Evidence, unread error) {
	said := []string{}
	if seen.Pods != "" {
		said = append(said, "on the member: "+Plain(seen.Pods))
	}
	told := map[string]bool{}
	for i := range seen.Events {
		e := &seen.Events[i]
		key := e.InvolvedObject.Kind + e.InvolvedObject.Name + e.Reason
		if told[key] || len(told) == maxEvents {
			continue // An older one of the same kind.
		}
		told[key] = true
		said = append(said, fmt.Sprintf("event of %s: %s: %s", Plain(RefOf(e.InvolvedObject.Kind, e.InvolvedObject.Namespace, e.InvolvedObject.Name)), Plain(e.Reason), shorten(Plain(e.Message))))
	}
	if do := remedyOfMessage(strings.Join(said, "\n")); do != "" && a.vague {
		a.Remedy = filled(do, *a, "")
	}
	if unread != nil {
		said = append(said, "what the member says of it could not be read: "+Plain(unread.Error()))
	}
	a.Details = append(a.Details, said...)
}

// LastSeen is when an event happened last: of its times those are set that its writer knows.
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
