// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 has the configuration files of gateway and agent (--config). They are not
// objects of an API server. The program that reads a file sets the defaults and validates it.
package v1alpha1

// GroupVersion is the apiVersion of the files.
const GroupVersion = "config.fleetgate.io/v1alpha1"

// Kinds of the files.
const (
	GatewayKind = "GatewayConfiguration"
	AgentKind   = "AgentConfiguration"
)

// TracingConfiguration configures where spans are sent.
type TracingConfiguration struct {
	// Endpoint is the address (host:port) of an OpenTelemetry collector in the same Pod or on the same
	// node, reached over gRPC without TLS. If unset, no traces are sent.
	Endpoint string `json:"endpoint"`
	// SamplingRatePerMillion is the number of requests per million to trace.
	SamplingRatePerMillion int32 `json:"samplingRatePerMillion"`
}
