// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package expiry

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
)

func TestExpiry(t *testing.T) {
	born := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		namespace string
		ttl       *int32
		age       time.Duration
		gone      bool
		again     time.Duration
	}{
		"without a limit":                     {"fleet-member-m1", nil, 1000 * time.Hour, false, 0},
		"young":                               {"fleet-member-m1", ptr.To[int32](60), 50 * time.Second, false, 10 * time.Second},
		"young, with long to live":            {"fleet-member-m1", ptr.To[int32](86400), 0, false, time.Hour},
		"at its end":                          {"fleet-member-m1", ptr.To[int32](60), time.Minute, true, 0},
		"at its end in an assigned namespace": {"cluster1", ptr.To[int32](60), time.Minute, true, 0},
		"at its end in another namespace":     {"elsewhere", ptr.To[int32](60), time.Minute, false, time.Hour},
		"at its end in a missing namespace":   {"nowhere", ptr.To[int32](60), time.Minute, false, time.Hour},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := clientgoscheme.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			if err := authenticationv1beta1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			account := &authenticationv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: tt.namespace, Name: "a", CreationTimestamp: metav1.NewTime(born)}}
			account.Spec.TTLSecondsAfterCreation = tt.ttl
			hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(account,
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "cluster1", Labels: map[string]string{"fleetgate.io/member": "m1"}}},
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}}).Build()
			r := &Reconciler{Client: hub, Clock: testingclock.NewFakePassiveClock(born.Add(tt.age)), GatewayNamespace: "fleet-system"}
			key := client.ObjectKeyFromObject(account)
			result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
			if err != nil {
				t.Fatal(err)
			}
			if result.RequeueAfter != tt.again {
				t.Errorf("requeued after %s, want %s", result.RequeueAfter, tt.again)
			}
			if gone := apierrors.IsNotFound(hub.Get(t.Context(), key, account)); gone != tt.gone {
				t.Errorf("gone: %v, want %v", gone, tt.gone)
			}
		})
	}
}
