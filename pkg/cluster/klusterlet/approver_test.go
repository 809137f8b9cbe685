// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestARequestThatNobodySignsIsToldOf(t *testing.T) {
	approved := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "edge-x7k2p", CreationTimestamp: metav1.NewTime(approved.Add(-time.Hour))}}
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, LastUpdateTime: metav1.NewTime(approved)}}
	recorder := events.NewFakeRecorder(1)
	at := func(after time.Duration) *Approver {
		return &Approver{Clock: clocktesting.NewFakePassiveClock(approved.Add(after)), Recorder: recorder}
	}
	if got := at(10 * time.Second).tellNotSigned(csr); got.RequeueAfter != signedWithin-10*time.Second || len(recorder.Events) > 0 {
		t.Errorf("while it may come yet: %v, %d events", got, len(recorder.Events))
	}
	if got := at(signedWithin).tellNotSigned(csr); !got.IsZero() || len(recorder.Events) != 1 {
		t.Fatalf("then: %v, %d events", got, len(recorder.Events))
	}
	said := <-recorder.Events
	for _, part := range []string{"Warning NotSigned", "--csr-signer-cert", "agent of fleetgate"} {
		if !strings.Contains(said, part) {
			t.Errorf("%q is not in %q", part, said)
		}
	}
}
