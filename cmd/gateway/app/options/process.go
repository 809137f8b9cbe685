// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation/field"

	configv1alpha1 "fleetgate.io/fleetgate/pkg/apis/config/v1alpha1"
	"fleetgate.io/fleetgate/pkg/kube/configfile"
	"fleetgate.io/fleetgate/pkg/telemetry/tracing"
)

// Process has the options of every server: metrics, probes, leader election, tracing.
type Process struct {
	*configv1alpha1.ProcessConfiguration
}

func defaultProcess() configv1alpha1.ProcessConfiguration {
	return configv1alpha1.ProcessConfiguration{MetricsBindAddress: ":8080", HealthProbeBindAddress: ":8081", PprofBindAddress: "0", LeaderElect: true}
}

// AddFlags binds the options to a command line.
func (o *Process) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.MetricsBindAddress, "metrics-bind-address", o.MetricsBindAddress, "Address of /metrics. Set to 0 to disable it.")
	flags.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", o.HealthProbeBindAddress, "Address of /livez and /readyz.")
	flags.StringVar(&o.PprofBindAddress, "pprof-bind-address", o.PprofBindAddress, "Loopback address of /debug/pprof/ for go tool pprof, such as 127.0.0.1:6060. Set to 0 to disable it.")
	flags.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "Run the controllers only in the replica that holds the leader Lease.")
	flags.StringVar(&o.Tracing.Endpoint, "tracing-endpoint", o.Tracing.Endpoint, "Address (host:port) of an OpenTelemetry collector in the same Pod or on the same node, reached over gRPC without TLS. If unset, no traces are sent.")
	configfile.Override(flags, "metrics-bind-address", "process.metricsBindAddress")
	configfile.Override(flags, "health-probe-bind-address", "process.healthProbeBindAddress")
	configfile.Override(flags, "pprof-bind-address", "process.pprofBindAddress")
	configfile.Override(flags, "leader-elect", "process.leaderElect")
	configfile.Override(flags, "tracing-endpoint", "process.tracing.endpoint")
}

// Validate returns every error at once.
func (o *Process) Validate() field.ErrorList {
	at := field.NewPath("process")
	all := configfile.Address(at.Child("metricsBindAddress"), o.MetricsBindAddress, true)
	all = append(all, configfile.Address(at.Child("healthProbeBindAddress"), o.HealthProbeBindAddress, false)...)
	all = append(all, configfile.Loopback(at.Child("pprofBindAddress"), o.PprofBindAddress)...)
	return append(all, tracing.Config(o.Tracing).Validate(at.Child("tracing"))...)
}
