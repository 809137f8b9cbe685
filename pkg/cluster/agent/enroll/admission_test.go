// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package enroll

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// placeHub serves one InternalMemberCluster with the present answer.
type placeHub struct {
	server          *httptest.Server
	admissionResult atomic.Pointer[clusterResponse]
	asked           atomic.Int32
}

// clusterResponse is a status code and, for 200, an object.
type clusterResponse struct {
	code     int
	internal clusterv1beta1.InternalMemberCluster
}

func startPlaceHub(t *testing.T, first clusterResponse) *placeHub {
	t.Helper()
	h := &placeHub{}
	h.admissionResult.Store(&first)
	h.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.asked.Add(1)
		if r.URL.Path != "/apis/cluster.kubernetes-fleet.io/v1beta1/namespaces/fleet-member-edge/internalmemberclusters/edge" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		admissionResult := h.admissionResult.Load()
		var body any = &admissionResult.internal
		if admissionResult.code != http.StatusOK {
			reasons := map[int]metav1.StatusReason{
				http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusUnauthorized: metav1.StatusReasonUnauthorized,
			}
			body = &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(admissionResult.code), Reason: reasons[admissionResult.code]}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(admissionResult.code)
		_ = json.NewEncoder(w).Encode(body)
	}))
	t.Cleanup(h.server.Close)
	return h
}

func (h *placeHub) admission(t *testing.T, enrolled func() error, clock *clocktesting.FakeClock) *Admission {
	t.Helper()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.server.Certificate().Raw})
	a, err := NewAdmission("edge", &rest.Config{Host: h.server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}, enrolled, clock)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// waits returns when a goroutine waits for the clock.
func waits(t *testing.T, clock *clocktesting.FakeClock) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !clock.HasWaiters(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no goroutine waits for the clock")
		}
	}
}

func internalIn(state clusterv1beta1.ClusterState, joined metav1.ConditionStatus, observed int64) clusterv1beta1.InternalMemberCluster {
	internal := clusterv1beta1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	internal.Spec.State = state
	internal.Status.AgentStatus = []clusterv1beta1.AgentStatus{{
		Type: clusterv1beta1.MemberAgent, Conditions: []metav1.Condition{{Type: clusterv1beta1.ConditionJoined, Status: joined, ObservedGeneration: observed}},
	}}
	return internal
}

func TestAdmission_IsDetectedWithinFiveSecondsAfterALongWait(t *testing.T) {
	const most = 5 * time.Second
	for name, before := range map[string]clusterResponse{
		"no rights yet":           {code: http.StatusForbidden},
		"no object yet":           {code: http.StatusNotFound},
		"the hub does not answer": {code: http.StatusInternalServerError},
		"it has left":             {http.StatusOK, internalIn(clusterv1beta1.ClusterStateLeave, metav1.ConditionFalse, 2)},
	} {
		t.Run(name, func(t *testing.T) {
			hub, clock := startPlaceHub(t, before), clocktesting.NewFakeClock(time.Now())
			a := hub.admission(t, func() error { return nil }, clock)
			has := make(chan error, 1)
			go func() { has <- a.Await(t.Context()) }()
			const rounds = 50
			for range rounds {
				waits(t, clock)
				clock.Step(most)
			}
			waits(t, clock)
			hub.admissionResult.Store(&clusterResponse{http.StatusOK, internalIn(clusterv1beta1.ClusterStateJoin, metav1.ConditionFalse, 1)})
			clock.Step(most)
			if err := <-has; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAdmission_SendsNoRequestBeforeTheAgentIsEnrolled(t *testing.T) {
	hub, clock := startPlaceHub(t, clusterResponse{http.StatusOK, internalIn(clusterv1beta1.ClusterStateJoin, metav1.ConditionTrue, 2)}), clocktesting.NewFakeClock(time.Now())
	var enrolled atomic.Bool
	a := hub.admission(t, func() error {
		if enrolled.Load() {
			return nil
		}
		return errors.New("not yet")
	}, clock)
	has := make(chan error, 1)
	go func() { has <- a.Await(t.Context()) }()
	for range 10 {
		waits(t, clock)
		clock.Step(enrolledRetry)
	}
	waits(t, clock)
	if n := hub.asked.Load(); n != 0 {
		t.Errorf("it was asked %d times", n)
	}
	enrolled.Store(true)
	clock.Step(enrolledRetry)
	if err := <-has; err != nil {
		t.Error(err)
	}
}

func TestAdmission_HoldsUntilTheHubDeniesIt(t *testing.T) {
	tests := map[string]struct {
		admissionResult clusterResponse
		ends            bool
	}{
		"unchanged":                        {clusterResponse{http.StatusOK, internalIn(clusterv1beta1.ClusterStateJoin, metav1.ConditionTrue, 2)}, false},
		"the hub requests Leave":           {clusterResponse{http.StatusOK, internalIn(clusterv1beta1.ClusterStateLeave, metav1.ConditionTrue, 2)}, false},
		"it left in an earlier generation": {clusterResponse{http.StatusOK, internalIn(clusterv1beta1.ClusterStateLeave, metav1.ConditionFalse, 1)}, false},
		"it has left":                      {clusterResponse{http.StatusOK, internalIn(clusterv1beta1.ClusterStateLeave, metav1.ConditionFalse, 2)}, true},
		"its rights were revoked":          {clusterResponse{code: http.StatusForbidden}, true},
		"the object was deleted":           {clusterResponse{code: http.StatusNotFound}, true},
		"the hub rejects the token":        {clusterResponse{code: http.StatusUnauthorized}, false},
		"the hub returns an error":         {clusterResponse{code: http.StatusInternalServerError}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			hub, clock := startPlaceHub(t, tc.admissionResult), clocktesting.NewFakeClock(time.Now())
			a := hub.admission(t, func() error { return nil }, clock)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				a.AwaitDismissal(ctx)
			}()
			a.Recheck()
			a.Recheck() // It never blocks.
			if tc.ends {
				<-ended
				return
			}
			waits(t, clock)
			select {
			case <-ended:
				t.Error("it has ended")
			default:
			}
			cancel()
			<-ended
		})
	}
}
