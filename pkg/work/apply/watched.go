// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// setWatched says which of a Work's resources the agent may not watch, and how often
// it looks at them instead.
func setWatched(status *placementv1beta1.WorkStatus, blind []schema.GroupVersionResource, every time.Duration, generation int64, now metav1.Time) {
	if len(blind) == 0 {
		apimeta.RemoveStatusCondition(&status.Conditions, placementv1beta1.ConditionWatched)
		return
	}
	first := blind[0].GroupResource()
	apimeta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type:               placementv1beta1.ConditionWatched,
		Status:             metav1.ConditionFalse,
		ObservedGeneration: generation,
		LastTransitionTime: now,
		Reason:             placementv1beta1.ReasonMayNotWatch,
		Message: fmt.Sprintf("Changes on the member are seen only every %s: the agent may not watch %s. Its role lacks the rule %s",
			every, first, rule(first.Group, first.Resource, "list", "watch")),
	})
}
