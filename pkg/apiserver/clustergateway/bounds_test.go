// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// hugeRequest has the longest texts that a caller can choose.
func hugeRequest(isResource bool) *Request {
	huge := strings.Repeat("x", 1<<20)
	return &Request{Member: huge, Path: huge, Info: &apirequest.RequestInfo{
		IsResourceRequest: isResource, Verb: huge, Path: huge, APIGroup: huge, APIVersion: huge, Resource: huge, Subresource: huge, Namespace: huge, Name: huge,
	}}
}

func TestRecord_LimitsTextsOfCaller(t *testing.T) {
	for _, isResource := range []bool{true, false} {
		ctx := context.WithValue(t.Context(), fannedKey{}, strings.Repeat("x", 1<<20))
		ctx = apirequest.WithUser(ctx, &user.DefaultInfo{Name: strings.Repeat("x", 1<<20)})
		record := newRecord(httptest.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody), hugeRequest(isResource), time.Now())
		for name, value := range reflect.ValueOf(record).Fields() {
			if value.Kind() == reflect.String && value.Len() > maxRecorded {
				t.Errorf("%s has %d bytes", name.Name, value.Len())
			}
		}
	}
}

func TestSpans_LimitTextsOfCallerAndMember(t *testing.T) {
	const limit = 512
	recorder := tracetest.NewSpanRecorder()
	s := newSpans(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)))
	ctx, end := s.begin(t.Context(), hugeRequest(true))
	_, err := s.ofDials(DialerFunc(func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New(strings.Repeat("x", 1<<20))
	})).DialMember(ctx, "m", targetAPIServer)
	if err == nil {
		t.Error("got no error")
	}
	end(http.StatusOK)
	for _, span := range recorder.Ended() {
		if size := len(span.Status().Description); size > limit {
			t.Errorf("the status of %q has %d bytes", span.Name(), size)
		}
		for _, attribute := range span.Attributes() {
			if size := len(attribute.Value.String()); size > limit {
				t.Errorf("attribute %s of %q has %d bytes", attribute.Key, span.Name(), size)
			}
		}
	}
}
