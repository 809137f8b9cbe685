// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Conditions writes those of a manifest, or of a work.
type Conditions struct {
	Of         *[]metav1.Condition
	Generation int64
	Now        metav1.Time
}

// Set says something. What is said already keeps its time.
func (c Conditions) Set(kind string, status metav1.ConditionStatus, reason, message string) {
	apimeta.SetStatusCondition(c.Of, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message,
		ObservedGeneration: c.Generation, LastTransitionTime: c.Now})
}

// Remove has nothing said of these any more.
func (c Conditions) Remove(kinds ...string) {
	for _, kind := range kinds {
		apimeta.RemoveStatusCondition(c.Of, kind)
	}
}

// Contested says against whom repairs are, by a condition that is there only while they are.
func (c Conditions) Contested(kind, reason string, against *Contest, remedy string) {
	if against == nil {
		c.Remove(kind)
		return
	}
	c.Set(kind, metav1.ConditionTrue, reason, against.Message(remedy))
}

// Removed says what stands against removing objects, the first in order, by a condition
// that is there only while something does.
func (c Conditions) Removed(kind, reason string, against []string) {
	if len(against) == 0 {
		c.Remove(kind)
		return
	}
	c.Set(kind, metav1.ConditionFalse, reason, Shorten(slices.Min(against)))
}

// WhyUnknown says why it is not known whether a manifest is brought: what could not be found
// out, or for whom a repair waits.
func (d *Dialect) WhyUnknown(out Outcome) string {
	if out.Err != nil {
		return d.Explain(out.Err, out.Ref.GroupKind())
	}
	return "Another client reverts each correction of the object; the agent delays the next one"
}
