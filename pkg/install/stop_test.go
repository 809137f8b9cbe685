// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestStop_WaitsForPodsAndLeases(t *testing.T) {
	const namespace = "fleet-system"
	tests := map[string]struct {
		replicas int32
		lease    time.Duration // Remaining time until it expires.
		within   time.Duration
		want     string // Part of the error; empty means stopped.
	}{
		"all have ended":                  {within: time.Second},
		"Pod does not end":                {replicas: 1, within: time.Minute, want: "1 are there"},
		"Lease of a lost gateway expires": {lease: 10 * time.Second, within: time.Minute},
		"Lease of another gateway stays":  {lease: time.Hour, within: time.Minute, want: "Lease fleet-system/" + LeaderLease + " is held"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				deployment := &appsv1.Deployment{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "gateway"},
					Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](2)},
					Status:     appsv1.DeploymentStatus{Replicas: tt.replicas},
				}
				lease := &coordinationv1.Lease{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: LeaderLease},
					Spec: coordinationv1.LeaseSpec{
						HolderIdentity: ptr.To("gateway-0"), LeaseDurationSeconds: ptr.To(int32(tt.lease.Seconds())),
						RenewTime: ptr.To(metav1.NewMicroTime(time.Now())),
					},
				}
				if tt.lease == 0 {
					lease.Spec.HolderIdentity = nil
				}
				hub := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(deployment, lease).Build()
				ctx, cancel := context.WithTimeout(t.Context(), tt.within)
				defer cancel()

				err := (&Uninstaller{Client: hub, Namespace: namespace, Clock: clock.RealClock{}}).Stop(ctx, deployment.Name)
				if tt.want == "" && err != nil {
					t.Errorf("stopping: %v", err)
				}
				if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
					t.Errorf("error = %v, want %q", err, tt.want)
				}
				if err := hub.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); err != nil {
					t.Fatal(err)
				}
				if got := ptr.Deref(deployment.Spec.Replicas, 1); got != 0 {
					t.Errorf("the Deployment has %d replicas, want 0", got)
				}
			})
		})
	}
}

func TestStop_AcceptsMissingDeployment(t *testing.T) {
	hub := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
	if err := (&Uninstaller{Client: hub, Namespace: "fleet-system", Clock: clock.RealClock{}}).Stop(t.Context(), "gateway"); err != nil {
		t.Errorf("stopping: %v", err)
	}
}
