// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheCertificateIsForTheNamesThatKonnectivityVerifies(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Options)
		want   []string
	}{
		"no Konnectivity": {func(o *Options) { o.Tunnels.AgentsAddress = "agents.example:8091" }, nil},
		"agents at a name": {func(o *Options) {
			o.Tunnels.AgentsAddress, o.Tunnels.Konnectivity.Agents = "agents.example:8091", true
		}, []string{"agents.example"}},
		"agents at an address": {func(o *Options) {
			o.Tunnels.AgentsAddress, o.Tunnels.Konnectivity.Agents = "10.0.0.1:8091", true
		}, nil},
		"frontends of a member": {func(o *Options) {
			o.Tunnels.Konnectivity.FrontendsAddress, o.Tunnels.Konnectivity.FrontendsDomain = ":8090", ".fleet.example"
		}, []string{"*.fleet.example"}},
		"a domain that nobody is served at": {func(o *Options) { o.Tunnels.Konnectivity.FrontendsDomain = "fleet.example" }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			given := New()
			test.change(given)
			if diff := cmp.Diff(test.want, given.Tunnels.Names()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
