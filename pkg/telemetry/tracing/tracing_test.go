// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"net"
	"strings"
	"testing"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// collector receives spans.
type collector struct {
	collectorv1.UnimplementedTraceServiceServer
	got chan *collectorv1.ExportTraceServiceRequest
}

func (c *collector) Export(_ context.Context, request *collectorv1.ExportTraceServiceRequest) (*collectorv1.ExportTraceServiceResponse, error) {
	c.got <- request
	return &collectorv1.ExportTraceServiceResponse{}, nil
}

func TestProvider_SendsSpansWithProgramName(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, server := &collector{got: make(chan *collectorv1.ExportTraceServiceRequest, 1)}, grpc.NewServer()
	collectorv1.RegisterTraceServiceServer(server, c)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)

	config := Config{Endpoint: listener.Addr().String(), SamplingRatePerMillion: 1_000_000}
	if err := config.Validate(field.NewPath("tracing")).ToAggregate(); err != nil {
		t.Fatal(err)
	}
	provider, err := config.Provider(t.Context(), "gateway")
	if err != nil {
		t.Fatal(err)
	}
	_, span := provider.Tracer("test").Start(t.Context(), "work")
	span.End()
	Stop(t.Context(), provider)
	request := <-c.got
	if got := request.String(); !strings.Contains(got, `"service.name"`) || !strings.Contains(got, `"gateway"`) || !strings.Contains(got, `"work"`) {
		t.Errorf("arrived: %s", got)
	}
}

func TestProvider_WithoutEndpointCreatesNothing(t *testing.T) {
	provider, err := Config{}.Provider(t.Context(), "gateway")
	if err != nil {
		t.Fatal(err)
	}
	if _, span := provider.Tracer("test").Start(t.Context(), "work"); span.IsRecording() {
		t.Error("a span is recorded")
	}
}

func TestValidate_NamesProblems(t *testing.T) {
	for name, test := range map[string]struct {
		config Config
		want   string
	}{
		"a rate without an endpoint": {Config{SamplingRatePerMillion: 5}, "has no effect without an endpoint"},
		"more than all":              {Config{Endpoint: "localhost:4317", SamplingRatePerMillion: 1_000_001}, "less than or equal to one million"},
		"less than none":             {Config{Endpoint: "localhost:4317", SamplingRatePerMillion: -1}, "must be positive"},
		"another protocol":           {Config{Endpoint: "http://localhost:4317"}, "unsupported scheme"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := test.config.Validate(field.NewPath("tracing")).ToAggregate(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
