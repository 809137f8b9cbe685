// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Conditions sets the conditions of a manifest or a work.
type Conditions struct {
	Of         *[]metav1.Condition
	Generation int64
	Now        metav1.Time
}

// Set sets a condition. If its status is unchanged, lastTransitionTime stays.
func (c Conditions) Set(kind string, status metav1.ConditionStatus, reason, message string) {
	apimeta.SetStatusCondition(c.Of, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message,
		ObservedGeneration: c.Generation, LastTransitionTime: c.Now})
}

// Remove removes conditions.
func (c Conditions) Remove(kinds ...string) {
	for _, kind := range kinds {
		apimeta.RemoveStatusCondition(c.Of, kind)
	}
}

// Contested sets the condition while another client reverts our corrections, and removes it
// otherwise.
func (c Conditions) Contested(kind, reason string, against *Contest, remedy string) {
	if against == nil {
		c.Remove(kind)
		return
	}
	c.Set(kind, metav1.ConditionTrue, reason, against.Message(remedy))
}

// Removed sets the condition to False while removals are blocked, and removes it otherwise. The
// message is the first one in sort order, so that it does not change with the order of removal.
func (c Conditions) Removed(kind, reason string, against []string) {
	if len(against) == 0 {
		c.Remove(kind)
		return
	}
	c.Set(kind, metav1.ConditionFalse, reason, Shorten(slices.Min(against)))
}

// WhyUnknown explains why the agent does not know whether the manifest is applied: a failed request
// or a delayed correction.
func (d *Dialect) WhyUnknown(out ManifestResult) string {
	if out.Err != nil {
		return d.Explain(out.Err, out.Ref.GroupKind())
	}
	return "Another client reverts each correction of the object; the agent delays the next one"
}
