// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
)

func TestApprover_ReportsUnsignedRequest(t *testing.T) {
	approved := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "edge-x7k2p", CreationTimestamp: metav1.NewTime(approved.Add(-time.Hour))}}
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, LastUpdateTime: metav1.NewTime(approved)}}
	recorder := events.NewFakeRecorder(1)
	at := func(after time.Duration) *Approver {
		return &Approver{Clock: clocktesting.NewFakePassiveClock(approved.Add(after)), Recorder: recorder}
	}
	if got := at(10 * time.Second).reportNotSigned(csr); got.RequeueAfter != signedWithin-10*time.Second || len(recorder.Events) > 0 {
		t.Errorf("while it may come yet: %v, %d events", got, len(recorder.Events))
	}
	if got := at(signedWithin).reportNotSigned(csr); !got.IsZero() || len(recorder.Events) != 1 {
		t.Fatalf("then: %v, %d events", got, len(recorder.Events))
	}
	said := <-recorder.Events
	for _, part := range []string{"Warning NotSigned", "klusterlets.signerCertFile", "agent of fleetgate"} {
		if !strings.Contains(said, part) {
			t.Errorf("%q is not in %q", part, said)
		}
	}
	csr.Labels = map[string]string{clusterv1.ClusterNameLabel: "edge", addonv1alpha1.AddOnNameLabel: "metrics"}
	at(signedWithin).reportNotSigned(csr)
	if said := <-recorder.Events; !strings.Contains(said, "registration.hubCertificate") {
		t.Errorf("of an add-on: %q", said)
	}
}

func TestApprover_DeletesServedRequest(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := certificatesv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	served := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "edge-x7k2p", UID: "1", CreationTimestamp: metav1.NewTime(served.Add(-time.Hour))}}
	csr.Status.Certificate = []byte("certificate")
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, LastUpdateTime: metav1.NewTime(served)}}
	for after, want := range map[time.Duration]struct {
		again time.Duration
		gone  bool
	}{
		0:               {10 * time.Minute, false},
		9 * time.Minute: {time.Minute, false},
		keepServed:      {0, true},
		24 * time.Hour:  {0, true},
	} {
		hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(csr.DeepCopy()).Build()
		a := &Approver{Client: hub, Clock: clocktesting.NewFakePassiveClock(served.Add(after))}
		got, err := a.remove(t.Context(), csr)
		gone := apierrors.IsNotFound(hub.Get(t.Context(), client.ObjectKeyFromObject(csr), csr.DeepCopy()))
		if err != nil || got.RequeueAfter != want.again || gone != want.gone {
			t.Errorf("%s after it had served: again in %s, gone: %t, %v", after, got.RequeueAfter, gone, err)
		}
	}
}
