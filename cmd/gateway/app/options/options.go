// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"

	"github.com/spf13/pflag"
)

// Options are the flags of the gateway, by subject.
type Options struct {
	Hub          Hub
	Parts        Parts
	Process      Process
	Serving      Serving
	Reviews      Reviews
	Proxy        Proxy
	Tunnels      Tunnels
	Install      Install
	Placement    Placement
	Members      Members
	Registration Registration
	Klusterlets  Klusterlets
}

// New returns the defaults.
func New() *Options {
	return &Options{
		Hub:          newHub(),
		Parts:        newParts(),
		Process:      newProcess(),
		Serving:      newServing(),
		Reviews:      newReviews(),
		Proxy:        newProxy(),
		Tunnels:      newTunnels(),
		Install:      newInstall(),
		Placement:    newPlacement(),
		Members:      newMembers(),
		Registration: newRegistration(),
	}
}

// part has the flags of one subject.
type part interface {
	AddFlags(*pflag.FlagSet)
	Validate() []error
}

func (o *Options) parts() []part {
	return []part{
		&o.Hub, &o.Parts, &o.Process, &o.Serving, &o.Reviews, &o.Proxy, &o.Tunnels, &o.Install, &o.Placement, &o.Members, &o.Registration,
		&o.Klusterlets,
	}
}

// AddFlags binds the options to a command line.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	for _, part := range o.parts() {
		part.AddFlags(flags)
	}
}

// Validate returns every error at once.
func (o *Options) Validate() error {
	var all []error
	for _, part := range o.parts() {
		all = append(all, part.Validate()...)
	}
	if o.Placement.StandardDecisions && !o.Parts.Serves(APIProfile) {
		all = append(all, errors.New("--standard-decisions needs clusterprofile in --apis, because decisions name ClusterProfiles"))
	}
	if o.Placement.LimitsTenants() && !o.Parts.ServesOCM(OCMRegistration) {
		all = append(all, errors.New("--placement-tenancy=cluster-sets needs ocm in --apis and registration in --ocm, which manage the sets"))
	}
	return errors.Join(all...)
}
