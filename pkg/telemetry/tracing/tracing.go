// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tracing configures where a program's spans are sent. A request's trace begins at the
// gateway, with a link to the hub's, and continues through the tunnel to the member's API server,
// if that one traces too. Both programs use the conventions of Kubernetes' own components
// (KEP-647): OTLP over gRPC to a nearby collector, and the sampling decision of the span that
// began the trace.
package tracing

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/sdk/resource"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/tracing"
	tracingapi "k8s.io/component-base/tracing/api/v1"
	"k8s.io/klog/v2"

	"fleetgate.io/fleetgate/pkg/telemetry/version"
)

// Config says where spans are sent, and how many.
type Config struct {
	// Endpoint is the collector's host and port. The connection has no TLS, as for Kubernetes' own
	// components, because the collector should be on the same machine or in the same Pod. If unset,
	// no spans are created.
	Endpoint string
	// SamplingRatePerMillion is how many of a million traces that begin here are recorded. Traces
	// that began elsewhere keep their sampling decision.
	SamplingRatePerMillion int32
}

func (c Config) configuration() *tracingapi.TracingConfiguration {
	if c.Endpoint == "" {
		return nil
	}
	return &tracingapi.TracingConfiguration{Endpoint: &c.Endpoint, SamplingRatePerMillion: &c.SamplingRatePerMillion}
}

// Validate returns all problems.
func (c Config) Validate(at *field.Path) field.ErrorList {
	if c.Endpoint == "" && c.SamplingRatePerMillion != 0 {
		return field.ErrorList{field.Forbidden(at.Child("samplingRatePerMillion"), "has no effect without an endpoint")}
	}
	return tracingapi.ValidateTracingConfiguration(c.configuration(), featuregate.NewFeatureGate(), at)
}

// Provider creates the spans of the named program, including one for each request of clients that
// are created from the given configurations afterwards. It connects when there is something to
// send, and drops spans while nobody accepts them. Stop ends it.
func (c Config) Provider(ctx context.Context, program string, clients ...*rest.Config) (tracing.TracerProvider, error) {
	attributes := resource.WithAttributes(semconv.ServiceName(program), semconv.ServiceVersion(version.Describe()))
	provider, err := tracing.NewProvider(ctx, c.configuration(), nil, []resource.Option{attributes, resource.WithHost()})
	if err != nil {
		return nil, fmt.Errorf("setting up traces to %s: %w", c.Endpoint, err)
	}
	if c.Endpoint == "" {
		return provider, nil
	}
	for _, config := range clients {
		config.Wrap(tracing.WrapperFor(provider))
	}
	return provider, nil
}

// stopGrace is how long a collector may take to accept the last spans.
const stopGrace = 2 * time.Second

// Stop sends the remaining spans, even when the context has ended.
func Stop(ctx context.Context, provider tracing.TracerProvider) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	if err := provider.Shutdown(ctx); err != nil {
		klog.FromContext(ctx).Error(err, "The last spans were not sent")
	}
}
