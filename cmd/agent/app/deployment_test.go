// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"fleetgate.io/fleetgate/pkg/cluster/agent/enroll"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

func TestDeploymentStatus_ReportsWhyNotRegistered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		available := appsv1.DeploymentCondition{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Message: "not mine"}
		client := fake.NewSimpleClientset(&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-system", Name: "fleet-agent"},
			Status:     appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{available}},
		})
		writes, refusals := 0, 2
		client.PrependReactor("patch", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
			if refusals > 0 {
				refusals--
				return true, nil, errors.New("the API server is unreachable")
			}
			writes++
			return false, nil, nil
		})
		var problem atomic.Pointer[refusal.Refusal]
		problem.Store(&refusal.Refusal{Reason: enroll.TokenRefused, Message: "the hub refuses the registration token"})
		ready := func() error {
			if p := problem.Load(); p != nil {
				return p
			}
			return nil
		}
		status := &deploymentStatus{client: client, namespace: "fleet-system", name: "fleet-agent", ready: ready, clock: clock.RealClock{}}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			status.run(ctx)
		}()
		expect := func(want appsv1.DeploymentCondition) {
			t.Helper()
			<-clock.RealClock{}.After(10 * tellInterval)
			deployment, err := client.AppsV1().Deployments("fleet-system").Get(ctx, "fleet-agent", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got := map[appsv1.DeploymentConditionType]appsv1.DeploymentCondition{}
			for _, condition := range deployment.Status.Conditions {
				condition.LastUpdateTime, condition.LastTransitionTime = metav1.Time{}, metav1.Time{}
				got[condition.Type] = condition
			}
			if diff := cmp.Diff(map[appsv1.DeploymentConditionType]appsv1.DeploymentCondition{available.Type: available, want.Type: want}, got); diff != "" {
				t.Error(diff)
			}
		}
		expect(appsv1.DeploymentCondition{
			Type: "Reconciling", Status: corev1.ConditionTrue, Reason: "TokenRefused", Message: "not registered: the hub refuses the registration token",
		})
		problem.Store(nil)
		expect(appsv1.DeploymentCondition{Type: "Reconciling", Status: corev1.ConditionFalse, Reason: "Registered", Message: "This cluster is registered."})
		if writes != 2 {
			t.Errorf("%d writes, want one for each change", writes)
		}
		stop()
		<-done
	})
}
