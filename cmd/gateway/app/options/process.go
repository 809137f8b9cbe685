// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"

	"github.com/spf13/pflag"

	"fleetgate.io/fleetgate/pkg/telemetry/tracing"
)

// Process has the options of every server: metrics, probes, leader election, tracing.
type Process struct {
	Metrics      string
	HealthProbes string
	// Profiles is the loopback address of CPU and heap profiles, or "0".
	Profiles    string
	LeaderElect bool
	Tracing     tracing.Config
}

func newProcess() Process {
	return Process{Metrics: ":8080", HealthProbes: ":8081", Profiles: "0", LeaderElect: true}
}

// AddFlags binds the options to a command line.
func (o *Process) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Metrics, "metrics-bind-address", o.Metrics, "Address of /metrics. Set to 0 to disable it.")
	flags.StringVar(&o.HealthProbes, "health-probe-bind-address", o.HealthProbes, "Address of /livez and /readyz.")
	flags.StringVar(&o.Profiles, "pprof-bind-address", o.Profiles, "Loopback address of /debug/pprof/ for go tool pprof, such as 127.0.0.1:6060. Set to 0 to disable it.")
	flags.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "Run the controllers only in the replica that holds the leader Lease.")
	flags.StringVar(&o.Tracing.Endpoint, "tracing-endpoint", o.Tracing.Endpoint, "Address (host:port) of an OpenTelemetry collector in the same Pod or on the same node, reached over gRPC without TLS. If unset, no traces are sent.")
	flags.Int32Var(&o.Tracing.SamplingRatePerMillion, "tracing-sampling-rate-per-million", o.Tracing.SamplingRatePerMillion, "Number of requests per million to trace.")
}

// Validate returns every error at once.
func (o *Process) Validate() []error {
	all := []error{address("--metrics-bind-address", o.Metrics, true), address("--health-probe-bind-address", o.HealthProbes, false), loopback("--pprof-bind-address", o.Profiles)}
	if err := o.Tracing.Validate(); err != nil {
		all = append(all, fmt.Errorf("--tracing-endpoint, --tracing-sampling-rate-per-million: %w", err))
	}
	return all
}
