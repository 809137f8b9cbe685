// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"fleetgate.io/fleetgate/pkg/tunnel"
)

func TestTunnelStatus_SetsGaugeOfCurrentPathOnly(t *testing.T) {
	registry := prometheus.NewRegistry()
	s, err := newTunnelStatus(registry)
	if err != nil {
		t.Fatal(err)
	}
	const name = "fleetgate_agent_tunnel_connected"
	for _, state := range []tunnel.State{
		{}, {Connected: true, Path: tunnel.ViaHub}, {Connected: true, Path: tunnel.ViaPort}, {}, {Connected: true, Path: tunnel.ViaKonnectivity},
	} {
		s.set(state)
		var want strings.Builder
		for _, each := range []tunnel.Path{tunnel.ViaHub, tunnel.ViaKonnectivity, tunnel.ViaPort} {
			value := "0"
			if state.Connected && each == state.Path {
				value = "1"
			}
			want.WriteString(name + `{path="` + string(each) + `"} ` + value + "\n")
		}
		help := "# HELP " + name + " 1 for the path of the agent's tunnel: through the hub's API server (hub), to the gateway's port (port), or with the Konnectivity protocol (konnectivity).\n# TYPE " + name + " gauge\n"
		if err := testutil.CollectAndCompare(s.gauge, strings.NewReader(help+want.String()), name); err != nil {
			t.Errorf("%+v: %v", state, err)
		}
	}
}
