// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

const (
	// conditionReconciling is a condition of kstatus, which `helm --wait` and other tools use for
	// any object. They wait while it is True, and show its message on timeout.
	//
	// https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md
	conditionReconciling appsv1.DeploymentConditionType = "Reconciling"
	reasonRegistered                                    = "Registered"
	tellInterval                                        = time.Second
)

// deploymentStatus reports on the agent's own Deployment why the agent is not registered. A user
// who waits for the Deployment sees neither the log nor the reply of a probe.
type deploymentStatus struct {
	client          kubernetes.Interface
	namespace, name string
	// ready returns nil when the agent is registered, and the reason otherwise.
	ready func() error
	clock clock.WithTicker
}

// run writes the condition on every change until the context ends.
func (s *deploymentStatus) run(ctx context.Context) {
	ticker := s.clock.NewTicker(tellInterval)
	defer ticker.Stop()
	logged, failed := "", ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		now := s.condition()
		if now.Message == logged {
			continue
		}
		err := s.setCondition(ctx, now)
		if err == nil {
			logged, failed = now.Message, ""
			continue
		}
		if ctx.Err() == nil && err.Error() != failed {
			failed = err.Error()
			log.FromContext(ctx).Info("The Deployment does not say whether the agent is registered: " + failed)
		}
	}
}

func (s *deploymentStatus) condition() appsv1.DeploymentCondition {
	now := metav1.NewTime(s.clock.Now())
	condition := appsv1.DeploymentCondition{
		Type: conditionReconciling, Status: corev1.ConditionFalse, Reason: reasonRegistered, Message: "This cluster is registered.",
		LastUpdateTime: now, LastTransitionTime: now,
	}
	if err := s.ready(); err != nil {
		condition.Status, condition.Reason, condition.Message = corev1.ConditionTrue, refusal.ReasonOf(err), "not registered: "+err.Error()
	}
	return condition
}

// setCondition patches only this condition; the others belong to other controllers.
func (s *deploymentStatus) setCondition(ctx context.Context, condition appsv1.DeploymentCondition) error {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []appsv1.DeploymentCondition{condition}}})
	if err != nil {
		return err
	}
	_, err = s.client.AppsV1().Deployments(s.namespace).Patch(ctx, s.name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("writing its condition %s: %w", conditionReconciling, err)
	}
	return nil
}
