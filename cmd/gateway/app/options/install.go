// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation/field"

	configv1alpha1 "fleetgate.io/fleetgate/pkg/apis/config/v1alpha1"
	"fleetgate.io/fleetgate/pkg/kube/configfile"
	"fleetgate.io/fleetgate/pkg/webhook/policies"
)

// Install configures the objects that the gateway installs on the hub.
type Install struct {
	*configv1alpha1.InstallConfiguration
}

func defaultInstall() configv1alpha1.InstallConfiguration {
	return configv1alpha1.InstallConfiguration{
		GuardRails: string(policies.GuardRailsSelected), ConfirmDelete: string(policies.ConfirmDeleteWarn), ConfirmDeleteMembers: 10,
	}
}

// AddFlags binds the options to a command line.
func (o *Install) AddFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.Enabled, "install", o.Enabled, "Install or update CustomResourceDefinitions, APIServices, policies and webhook configurations on the hub.")
	flags.BoolVar(&o.Adopt, "adopt", o.Adopt, "With --install: take over objects of another product that serves the same APIs and no longer runs.")
	flags.StringVar(&o.ExternalName, "external-name", o.ExternalName, "With --install: DNS name or IPv4 address of a gateway that runs outside the hub. The Service becomes type ExternalName and points there.")
	configfile.Override(flags, "install", "install.enabled")
	configfile.Override(flags, "adopt", "install.adopt")
	configfile.Override(flags, "external-name", "install.externalName")
}

// Validate returns every error at once.
func (o *Install) Validate() field.ErrorList {
	at := field.NewPath("install")
	all := configfile.Without(at.Child("adopt"), o.Adopt && !o.Enabled, "install.enabled (--install)")
	all = append(all, configfile.Without(at.Child("externalName"), o.ExternalName != "" && !o.Enabled, "install.enabled (--install)")...)
	if strings.Contains(o.ExternalName, ":") {
		all = append(all, field.Invalid(at.Child("externalName"), o.ExternalName, "an ExternalName Service cannot have an IPv6 address or a port: use a DNS name"))
	}
	all = append(all, configfile.OneOf(at.Child("guardRails"), o.GuardRails, texts(policies.AllGuardRails())...)...)
	all = append(all, configfile.OneOf(at.Child("confirmDelete"), o.ConfirmDelete, texts(policies.AllConfirmDelete())...)...)
	if o.ConfirmDeleteMembers < 0 {
		all = append(all, field.Invalid(at.Child("confirmDeleteMembers"), o.ConfirmDeleteMembers, "must not be negative"))
	}
	return all
}

func texts[T ~string](modes []T) []string {
	var all []string
	for _, mode := range modes {
		all = append(all, string(mode))
	}
	return all
}
