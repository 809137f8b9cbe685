// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tracing says where the spans of a program go. A request's trace begins at
// the gateway, with a link to the hub's, and goes on through the way into the member
// to the member's API server, if that one traces too. Both programs use the
// conventions of Kubernetes' own components (KEP-647): OTLP over gRPC to a collector
// nearby, and a sampling decision that whoever began the trace has taken.
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

// Config says where spans go, and how many.
type Config struct {
	// Endpoint is the collector's host and port, which is reached without TLS, as by
	// Kubernetes' own components: it is meant to be on the same machine or in the same
	// Pod. Empty: no spans are made.
	Endpoint string
	// SamplingRatePerMillion is how many of a million traces that begin here are
	// recorded. Those that began elsewhere are recorded if they were there.
	SamplingRatePerMillion int32
}

func (c Config) configuration() *tracingapi.TracingConfiguration {
	if c.Endpoint == "" {
		return nil
	}
	return &tracingapi.TracingConfiguration{Endpoint: &c.Endpoint, SamplingRatePerMillion: &c.SamplingRatePerMillion}
}

// Validate returns all that is wrong.
func (c Config) Validate() error {
	if c.Endpoint == "" && c.SamplingRatePerMillion != 0 {
		return fmt.Errorf("a sampling rate of %d goes with an endpoint", c.SamplingRatePerMillion)
	}
	return tracingapi.ValidateTracingConfiguration(c.configuration(), featuregate.NewFeatureGate(), field.NewPath("tracing")).ToAggregate()
}

// Provider makes the spans of the program of that name, one of them for each request of
// clients that are made of the given configurations afterwards. It connects when there
// is something to send, and drops spans while nobody takes them. It ends with Stop.
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

// Stop sends what is left, also when the context has ended.
func Stop(ctx context.Context, provider tracing.TracerProvider) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	if err := provider.Shutdown(ctx); err != nil {
		klog.FromContext(ctx).Error(err, "The last spans were not sent")
	}
}
