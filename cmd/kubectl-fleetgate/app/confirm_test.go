// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

func TestSuspendedRemoval_ReadsTheToken(t *testing.T) {
	placement := &placementv1beta1.ClusterResourcePlacement{}
	if _, token := suspendedRemoval(placement); token != "" {
		t.Errorf("a placement that waits for nobody has token %q", token)
	}
	placement.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionRemovalSuspended, Message: `7 of 10 objects would be removed: a, b. ` +
		`Members keep what they have. Confirm the removal with "kubectl fleetgate confirm shop", which sets annotation fleetgate.io/confirm-removal=0123456789`}}
	message, token := suspendedRemoval(placement)
	if token != "0123456789" || message != "7 of 10 objects would be removed: a, b" {
		t.Errorf("suspendedRemoval() = %q, %q", message, token)
	}
}
