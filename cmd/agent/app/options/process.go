// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"fleetgate.io/fleetgate/pkg/kube/configfile"
	"fleetgate.io/fleetgate/pkg/telemetry/tracing"
)

func (o *Options) addProcessFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Process.MetricsBindAddress, "metrics-bind-address", o.Process.MetricsBindAddress, "Address of /metrics. Set to 0 to disable it.")
	flags.StringVar(&o.Process.HealthProbeBindAddress, "health-probe-bind-address", o.Process.HealthProbeBindAddress, "Address of /livez and /readyz.")
	flags.StringVar(&o.Process.Tracing.Endpoint, "tracing-endpoint", o.Process.Tracing.Endpoint, "Address (host:port) of an OpenTelemetry collector in the same Pod or on the same node, reached over gRPC without TLS. If unset, no traces are sent.")
	configfile.Override(flags, "metrics-bind-address", "process.metricsBindAddress")
	configfile.Override(flags, "health-probe-bind-address", "process.healthProbeBindAddress")
	configfile.Override(flags, "tracing-endpoint", "process.tracing.endpoint")
}

func (o *Options) validateProcess() field.ErrorList {
	at := field.NewPath("process")
	all := configfile.Address(at.Child("metricsBindAddress"), o.Process.MetricsBindAddress, true)
	all = append(all, configfile.Address(at.Child("healthProbeBindAddress"), o.Process.HealthProbeBindAddress, false)...)
	return append(all, tracing.Config(o.Process.Tracing).Validate(at.Child("tracing"))...)
}
