// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"

	"github.com/spf13/pflag"

	"fleetgate.io/fleetgate/pkg/tracing"
)

// Process is what every server has, whatever it serves.
type Process struct {
	Metrics      string
	HealthProbes string
	// Profiles is where CPU and heap profiles are served, on loopback; "0" for nowhere.
	Profiles    string
	LeaderElect bool
	Tracing     tracing.Config
}

func newProcess() Process {
	return Process{Metrics: ":8080", HealthProbes: ":8081", Profiles: "0", LeaderElect: true}
}

// AddFlags binds the options to a command line.
func (o *Process) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Metrics, "metrics-bind-address", o.Metrics, "Address of /metrics; 0 switches it off.")
	flags.StringVar(&o.HealthProbes, "health-probe-bind-address", o.HealthProbes, "Address of /livez and /readyz.")
	flags.StringVar(&o.Profiles, "pprof-bind-address", o.Profiles, "Loopback address of /debug/pprof/ for go tool pprof, such as 127.0.0.1:6060; 0 switches it off.")
	flags.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "Run controllers in one replica only, chosen by a Lease.")
	flags.StringVar(&o.Tracing.Endpoint, "tracing-endpoint", o.Tracing.Endpoint, "Host and port of a collector of OpenTelemetry traces nearby, reached by gRPC without TLS. Empty: no traces.")
	flags.Int32Var(&o.Tracing.SamplingRatePerMillion, "tracing-sampling-rate-per-million", o.Tracing.SamplingRatePerMillion, "How many of a million requests are traced.")
}

// Validate returns every error at once.
func (o *Process) Validate() []error {
	all := []error{address("--metrics-bind-address", o.Metrics, true), address("--health-probe-bind-address", o.HealthProbes, false), loopback("--pprof-bind-address", o.Profiles)}
	if err := o.Tracing.Validate(); err != nil {
		all = append(all, fmt.Errorf("--tracing-endpoint, --tracing-sampling-rate-per-million: %w", err))
	}
	return all
}
