// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// EventContested is the reason of the event that a Work gets when one of its
// objects becomes contested, once for each time.
const EventContested = "Contested"

// tellOfContests makes an event for each manifest that is contested and was not
// said to be before.
func (l look) tellOfContests(before, after []placementv1beta1.ManifestCondition) {
	for _, m := range after {
		c := apimeta.FindStatusCondition(m.Conditions, placementv1beta1.ConditionContested)
		previous := reported(before, m.Identifier)
		if c == nil || apimeta.IsStatusConditionTrue(previous.Conditions, placementv1beta1.ConditionContested) {
			continue
		}
		l.events.Eventf(l.work, nil, corev1.EventTypeWarning, EventContested, "Repair", "%s: %s", called(m.Identifier), c.Message)
	}
}
