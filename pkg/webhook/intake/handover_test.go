// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	clienttesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func sendingTo(namespace, service string, port int32) *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "rules"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{Name: "a.b.c", ClientConfig: admissionregistrationv1.WebhookClientConfig{
			Service: &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: service, Port: &port},
		}}},
	}
}

// newHandover returns one on a hub with these objects, and counts its reads.
func newHandover(t *testing.T, reads *int, objects ...client.Object) (*Handover, client.Client, *clienttesting.FakePassiveClock) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiregistrationv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			*reads++
			return c.Get(ctx, key, object, options...)
		},
	}).Build()
	now := clienttesting.NewFakePassiveClock(time.Now())
	return &Handover{Hub: hub, Namespace: "fleet-system", Service: "gateway", Port: 9443, Validating: []string{"rules"}, Mutating: []string{"defaults"}, Clock: now}, hub, now
}

func TestHandover_AcceptsUnprovedWhileTheHubSendsThem(t *testing.T) {
	reads := 0
	h, hub, now := newHandover(t, &reads, sendingTo("fleet-system", "gateway", 9443))
	if !h.Unproved(t.Context()) {
		t.Error("closed while a configuration sends reviews here")
	}
	configuration := sendingTo("fleet-system", "gateway", 9443)
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(configuration), configuration); err != nil {
		t.Fatal(err)
	}
	configuration.Webhooks = sendingTo("default", "kubernetes", 443).Webhooks
	if err := hub.Update(t.Context(), configuration); err != nil {
		t.Fatal(err)
	}
	now.SetTime(now.Now().Add(afterwards - time.Second))
	if !h.Unproved(t.Context()) {
		t.Error("closed before every API server can have noticed")
	}
	now.SetTime(now.Now().Add(time.Second))
	reads = 0
	for range 100 {
		if h.Unproved(t.Context()) {
			t.Fatal("open although no configuration sends reviews here")
		}
	}
	if reads != 2 {
		t.Errorf("100 strangers caused %d reads, want one of each configuration", reads)
	}
}

func TestHandover_RefusesUnprovedIfHubCannotBeRead(t *testing.T) {
	reads := 0
	h, _, _ := newHandover(t, &reads)
	h.Hub = fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("the hub is unreachable")
		},
	}).Build()
	if h.Unproved(t.Context()) {
		t.Error("open")
	}
}

func TestHandover_WaitsForReplicasThatDoNotKnowTheGroup(t *testing.T) {
	group := func(status apiregistrationv1.ConditionStatus) *apiregistrationv1.APIService {
		return &apiregistrationv1.APIService{
			ObjectMeta: metav1.ObjectMeta{Name: GroupVersion.Version + "." + GroupVersion.Group},
			Status:     apiregistrationv1.APIServiceStatus{Conditions: []apiregistrationv1.APIServiceCondition{{Type: apiregistrationv1.Available, Status: status, Message: "no answer"}}},
		}
	}
	for name, c := range map[string]struct {
		replica http.Handler
		group   *apiregistrationv1.APIService
		ready   bool
		problem string
	}{
		"replica of this version":                     {testServer(nobody(nil), nil, nil), group(apiregistrationv1.ConditionTrue), true, ""},
		"replica of the previous version":             {http.NotFoundHandler(), group(apiregistrationv1.ConditionTrue), true, "of a version that does not take reviews"},
		"unreachable replica of the previous version": {http.NotFoundHandler(), group(apiregistrationv1.ConditionTrue), false, ""},
		"the group is not available":                  {testServer(nobody(nil), nil, nil), group(apiregistrationv1.ConditionFalse), true, "not available: no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			replica := httptest.NewTLSServer(c.replica)
			defer replica.Close()
			host, port, err := net.SplitHostPort(replica.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			number, err := strconv.ParseInt(port, 10, 32)
			if err != nil {
				t.Fatal(err)
			}
			reads := 0
			h, _, _ := newHandover(t, &reads, c.group, &discoveryv1.EndpointSlice{
				ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-system", Name: "gateway-1", Labels: map[string]string{discoveryv1.LabelServiceName: "gateway"}},
				Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{host}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(c.ready)}}},
			})
			h.Port, h.ServerName = int32(number), "example.com" // the name in the certificates of such servers
			err = h.Ready(t.Context(), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: replica.Certificate().Raw}))
			if c.problem == "" && err != nil || c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem)) {
				t.Errorf("%v, want %q", err, c.problem)
			}
		})
	}
}
