// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"context"
	"net"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/component-base/tracing"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// spans trace the gateway's part of a request: the request to the member, and the opening of a
// stream to it if one has to be opened. The member's API server continues the trace.
type spans struct {
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
}

func newSpans(provider trace.TracerProvider) spans {
	return spans{tracer: provider.Tracer("clustergateway"), propagator: tracing.Propagators()}
}

// begin starts the span of a request. end closes it with the response's code.
func (s spans) begin(ctx context.Context, request *Request) (context.Context, func(code int)) {
	ctx, span := s.tracer.Start(ctx, "Request to the member", trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attributeOf("fleetgate.member", request.Member), attributeOf("k8s.verb", request.Info.Verb),
		attributeOf("k8s.api_group", request.Info.APIGroup), attributeOf("k8s.resource", request.Info.Resource),
		attributeOf("k8s.subresource", request.Info.Subresource),
	))
	return ctx, func(code int) {
		span.SetAttributes(semconv.HTTPResponseStatusCode(code))
		if code >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, http.StatusText(code))
		}
		span.End()
	}
}

// attributeOf limits a text that callers or members choose.
func attributeOf(key, text string) attribute.KeyValue {
	return attribute.String(key, untrusted.Excerpt(text, maxRecorded))
}

// continueIn writes the context's span into a request's headers. If there is no span, the caller's
// headers stay.
func (s spans) continueIn(ctx context.Context, h http.Header) {
	s.propagator.Inject(ctx, propagation.HeaderCarrier(h))
}

// ofDials adds a span to every stream that is opened.
func (s spans) ofDials(dialer Dialer) Dialer {
	return DialerFunc(func(ctx context.Context, member, target string) (net.Conn, error) {
		ctx, span := s.tracer.Start(ctx, "Open a tunnel stream", trace.WithAttributes(
			attributeOf("fleetgate.member", member), attributeOf("fleetgate.target", target)))
		defer span.End()
		conn, err := dialer.DialMember(ctx, member, target)
		if err != nil {
			span.SetStatus(codes.Error, untrusted.Excerpt(err.Error(), 512))
		}
		return conn, err
	})
}
