// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"net/http"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"fleetgate.io/fleetgate/pkg/apiserver"
)

const traceOfCaller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestTraces_ContinueFromGatewayThroughDialToMember(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	g, _ := oneMember(t, func(c *apiserver.Config) { c.Spans = provider })
	got := seenBy(t, g.do(http.MethodGet, prefix+"m1/proxy/api/v1/pods", "jane", nil, header("Traceparent", traceOfCaller)))

	var request, dial sdktrace.ReadOnlySpan
	for _, span := range recorder.Ended() {
		switch span.Name() {
		case "Request to the member":
			request = span
		case "Open a tunnel stream":
			// The agent is asked through a stream of its own.
			for _, attribute := range span.Attributes() {
				if attribute.Value.AsString() == "apiserver" {
					dial = span
				}
			}
		}
	}
	if request == nil || dial == nil {
		t.Fatalf("spans that ended: %v", recorder.Ended())
	}
	trace := request.SpanContext()
	if dial.SpanContext().TraceID() != trace.TraceID() || dial.Parent().SpanID() != trace.SpanID() {
		t.Errorf("the dial is no part of the request: %v", dial.Parent())
	}
	if want := "00-" + trace.TraceID().String() + "-" + trace.SpanID().String() + "-01"; got.Header.Get("Traceparent") != want {
		t.Errorf("the member got the header %q, want %q", got.Header.Get("Traceparent"), want)
	}
	// As at every Kubernetes API server, an ordinary caller cannot start a trace here.
	if strings.Contains(traceOfCaller, trace.TraceID().String()) {
		t.Error("the caller chose the trace")
	}
	attributes := map[string]string{}
	for _, attribute := range request.Attributes() {
		attributes[string(attribute.Key)] = attribute.Value.String()
	}
	for key, want := range map[string]string{"fleetgate.member": "m1", "k8s.verb": "list", "k8s.resource": "pods", "http.response.status_code": "200"} {
		if attributes[key] != want {
			t.Errorf("%s is %q, want %q", key, attributes[key], want)
		}
	}
}

func TestTraces_CallersTraceArrivesIfGatewayMakesNone(t *testing.T) {
	g, _ := oneMember(t)
	got := seenBy(t, g.do(http.MethodGet, prefix+"m1/proxy/api/v1/pods", "jane", nil, header("Traceparent", traceOfCaller)))
	if got.Header.Get("Traceparent") != traceOfCaller {
		t.Errorf("the member got the header %q", got.Header.Get("Traceparent"))
	}
}
