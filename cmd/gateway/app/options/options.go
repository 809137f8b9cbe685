// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-base/cli/flag"

	configv1alpha1 "fleetgate.io/fleetgate/pkg/apis/config/v1alpha1"
	"fleetgate.io/fleetgate/pkg/kube/configfile"
)

// Options are the settings of the gateway, by subject: the fields of its configuration file, which
// flags override, and what only a flag sets.
type Options struct {
	// ConfigFile is the path of the configuration file.
	ConfigFile string

	Hub          Hub
	Features     Features
	Install      Install
	Serving      Serving
	Webhooks     Webhooks
	Proxy        Proxy
	Tunnels      Tunnels
	Registration Registration
	Klusterlets  Klusterlets
	Members      Members
	Placement    Placement
	Process      Process

	file *configv1alpha1.GatewayConfiguration
}

// Kind is the kind of the configuration file.
var Kind = metav1.TypeMeta{Kind: configv1alpha1.GatewayKind, APIVersion: configv1alpha1.GroupVersion}

// Defaults returns the configuration of a gateway without file and flags.
func Defaults() *configv1alpha1.GatewayConfiguration {
	return &configv1alpha1.GatewayConfiguration{
		TypeMeta:     Kind,
		Hub:          defaultHub(),
		Features:     defaultFeatures(),
		Install:      defaultInstall(),
		Serving:      defaultServing(),
		Webhooks:     defaultWebhooks(),
		Proxy:        defaultProxy(),
		Tunnels:      defaultTunnels(),
		Registration: defaultRegistration(),
		Members:      defaultMembers(),
		Placement:    defaultPlacement(),
		Process:      defaultProcess(),
	}
}

// New returns the defaults.
func New() *Options {
	c := Defaults()
	return &Options{
		Hub:          Hub{HubConfiguration: &c.Hub},
		Features:     Features{&c.Features},
		Install:      Install{&c.Install},
		Serving:      Serving{&c.Serving},
		Webhooks:     Webhooks{&c.Webhooks},
		Proxy:        Proxy{&c.Proxy},
		Tunnels:      Tunnels{&c.Tunnels},
		Registration: Registration{&c.Registration},
		Klusterlets:  Klusterlets{&c.Klusterlets},
		Members:      Members{&c.Members},
		Placement:    Placement{&c.Placement},
		Process:      Process{&c.Process},
		file:         c,
	}
}

// Load reads the configuration file, if its path is set, and overrides it with the given flags.
func Load(path string, given *configfile.Recorder) (*Options, error) {
	o := New()
	if path != "" {
		if err := configfile.Load(path, Kind, o.file); err != nil {
			return nil, err
		}
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddFlags(flags)
	return o, given.Replay(flags)
}

// section has the settings of one subject.
type section interface{ Validate() field.ErrorList }

func (o *Options) sections() []section {
	return []section{
		&o.Hub, &o.Features, &o.Install, &o.Serving, &o.Webhooks, &o.Proxy, &o.Tunnels, &o.Registration, &o.Klusterlets, &o.Members,
		&o.Placement, &o.Process,
	}
}

// Flags returns the flags by section.
func (o *Options) Flags() flag.NamedFlagSets {
	var all flag.NamedFlagSets
	all.FlagSet("configuration").StringVar(&o.ConfigFile, "config", o.ConfigFile, "Path of a file of kind "+configv1alpha1.GatewayKind+" ("+configv1alpha1.GroupVersion+"). Flags override its fields. If unset, all fields have their defaults.")
	o.Hub.AddFlags(all.FlagSet("hub"))
	o.Features.AddFlags(all.FlagSet("features"))
	o.Install.AddFlags(all.FlagSet("install"))
	o.Serving.AddFlags(all.FlagSet("serving"))
	o.Tunnels.AddFlags(all.FlagSet("tunnels"))
	o.Registration.AddFlags(all.FlagSet("registration"))
	o.Placement.AddFlags(all.FlagSet("placement"))
	o.Process.AddFlags(all.FlagSet("process"))
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
	for _, section := range o.sections() {
		all = append(all, section.Validate()...)
	}
	at := field.NewPath("placement")
	all = append(all, configfile.Without(at.Child("standardDecisions"), o.Placement.StandardDecisions && !o.Features.Serves(APIProfile),
		"clusterprofile in features.apis (--apis), because decisions name ClusterProfiles")...)
	all = append(all, configfile.Without(at.Child("tenancy"), o.Placement.LimitsTenants() && !o.Features.ServesOCM(OCMRegistration),
		"ocm in features.apis (--apis) and registration in features.ocm (--ocm), which manage the sets")...)
	return configfile.Explain(all, New().Flags())
}
