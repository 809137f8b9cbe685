// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// follow moves the agent to the URL that the hub requests, and returns the condition about it. The
// agent retries with each heartbeat.
func (r *Reconciler) follow(ctx context.Context, imc *clusterv1beta1.InternalMemberCluster) *metav1.Condition {
	server, wanted := imc.Annotations[clusterv1beta1.AnnotationHubURL]
	if !wanted || r.Move == nil {
		return nil
	}
	var ca []byte
	if text := imc.Annotations[clusterv1beta1.AnnotationHubCA]; text != "" {
		ca = []byte(text)
	}
	if err := r.Move(ctx, server, ca); err != nil {
		return &metav1.Condition{Type: clusterv1beta1.ConditionHubURLReachable, Status: metav1.ConditionFalse, Reason: clusterv1beta1.ReasonHubURLUnreachable, Message: err.Error()}
	}
	return &metav1.Condition{Type: clusterv1beta1.ConditionHubURLReachable, Status: metav1.ConditionTrue, Reason: clusterv1beta1.ReasonHubURLReachable,
		Message: "the agent uses " + server}
}
