// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/net/http/httpproxy"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-base/cli/flag"

	configv1alpha1 "fleetgate.io/fleetgate/pkg/apis/config/v1alpha1"
	"fleetgate.io/fleetgate/pkg/kube/configfile"
)

// Options are the settings of the agent: the fields of its configuration file, which flags override,
// and what has no field.
type Options struct {
	configv1alpha1.AgentConfiguration

	// ConfigFile is the path of the configuration file.
	ConfigFile       string
	MemberKubeconfig string
	HTTPSProxy       string
	NoProxy          string
}

// Kind is the kind of the configuration file.
var Kind = metav1.TypeMeta{Kind: configv1alpha1.AgentKind, APIVersion: configv1alpha1.GroupVersion}

// Defaults returns the configuration of an agent without file and flags.
func Defaults() *configv1alpha1.AgentConfiguration {
	return &configv1alpha1.AgentConfiguration{
		TypeMeta: Kind,
		Member:   configv1alpha1.MemberConfiguration{Components: []string{componentAll}},
		Works: configv1alpha1.WorksConfiguration{
			Executor:            executorReview,
			EvictionGracePeriod: metav1.Duration{Duration: time.Hour},
			RemovalWait:         metav1.Duration{Duration: 5 * time.Minute},
		},
		Tunnel:  configv1alpha1.TunnelConfiguration{Protocol: tunnelNative},
		Process: configv1alpha1.AgentProcessConfiguration{MetricsBindAddress: ":8080", HealthProbeBindAddress: ":8081"},
	}
}

// New returns the defaults.
func New() *Options {
	proxy := httpproxy.FromEnvironment()
	return &Options{AgentConfiguration: *Defaults(), HTTPSProxy: proxy.HTTPSProxy, NoProxy: proxy.NoProxy}
}

// Load reads the configuration file, if its path is set, and overrides it with the given flags.
func Load(path string, given *configfile.Recorder) (*Options, error) {
	o := New()
	if path != "" {
		if err := configfile.Load(path, Kind, &o.AgentConfiguration); err != nil {
			return nil, err
		}
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddFlags(flags)
	return o, given.Replay(flags)
}

// Flags returns the flags by section.
func (o *Options) Flags() flag.NamedFlagSets {
	var all flag.NamedFlagSets
	all.FlagSet("configuration").StringVar(&o.ConfigFile, "config", o.ConfigFile, "Path of a file of kind "+configv1alpha1.AgentKind+" ("+configv1alpha1.GroupVersion+"). Flags override its fields. If unset, all fields have their defaults.")
	o.addMemberFlags(all.FlagSet("member"))
	o.addHubFlags(all.FlagSet("hub"))
	o.addRegistrationFlags(all.FlagSet("registration"))
	o.addWorksFlags(all.FlagSet("works"))
	o.addProcessFlags(all.FlagSet("process"))
	return all
}

// AddFlags binds the options to a command line.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	for _, section := range o.Flags().FlagSets {
		flags.AddFlagSet(section)
	}
}

// Validate returns every error at once.
func (o *Options) Validate() error {
	var all field.ErrorList
	for _, validate := range []func() field.ErrorList{
		o.validateMember, o.validateHub, o.validateRegistration, o.validateWorks, o.validateTunnel, o.validateProcess,
	} {
		all = append(all, validate()...)
	}
	return configfile.Explain(all, New().Flags())
}
