// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"fleetgate.io/fleetgate/pkg/webhook/policies"
)

// Install configures the objects that the gateway installs on the hub.
type Install struct {
	Enabled bool
	Adopt   bool
	// ExternalName is the DNS name or address of a gateway outside the hub.
	ExternalName string
	GuardRails   string
	// ConfirmDelete is the action for unconfirmed deletions of placements on more than
	// ConfirmDeleteMembers members.
	ConfirmDelete        string
	ConfirmDeleteMembers int
}

func newInstall() Install {
	return Install{
		GuardRails: string(policies.GuardRailsSelected), ConfirmDelete: string(policies.ConfirmDeleteWarn), ConfirmDeleteMembers: 10,
	}
}

// AddFlags binds the options to a command line.
func (o *Install) AddFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.Enabled, "install", o.Enabled, "Install or update CustomResourceDefinitions, APIServices, policies and webhook configurations on the hub.")
	flags.BoolVar(&o.Adopt, "adopt", o.Adopt, "With --install: take over objects of another product that serves the same APIs and no longer runs.")
	flags.StringVar(&o.ExternalName, "external-name", o.ExternalName, "With --install: DNS name or IPv4 address of a gateway that runs outside the hub. The Service becomes type ExternalName and points there.")
	flags.StringVar(&o.GuardRails, "guard-rails", o.GuardRails, "With --install: what the hub rejects. off: nothing. selected: Pods and ReplicaSets in namespaces that a placement selects. reference: Pods and ReplicaSets in every namespace, and changes to reserved namespaces, members and CustomResourceDefinitions of the fleet. reference-with-workloads: like reference, but Pods and ReplicaSets are allowed.")
	flags.StringVar(&o.ConfirmDelete, "confirm-delete", o.ConfirmDelete, "With --install: off, warn or deny. Applies to the deletion of placements on many members and of namespaces that a placement selects, unless the object has the annotation "+policies.ConfirmDeleteAnnotation+"=true.")
	flags.IntVar(&o.ConfirmDeleteMembers, "confirm-delete-members", o.ConfirmDeleteMembers, "With --confirm-delete: number of members above which the deletion of a placement must be confirmed.")
}

// Validate returns every error at once.
func (o *Install) Validate() []error {
	var all []error
	if o.Adopt && !o.Enabled {
		all = append(all, errors.New("--adopt has no effect without --install"))
	}
	if o.ExternalName != "" && !o.Enabled {
		all = append(all, errors.New("--external-name has no effect without --install"))
	}
	if strings.Contains(o.ExternalName, ":") {
		all = append(all, fmt.Errorf("--external-name %q: an ExternalName Service cannot have an IPv6 address or a port: use a DNS name", o.ExternalName))
	}
	all = append(all, known("--guard-rails", []string{o.GuardRails}, texts(policies.AllGuardRails())),
		known("--confirm-delete", []string{o.ConfirmDelete}, texts(policies.AllConfirmDelete())))
	if o.ConfirmDeleteMembers < 0 {
		all = append(all, fmt.Errorf("--confirm-delete-members %d is negative", o.ConfirmDeleteMembers))
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
