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

func TestWay_SetsGaugeOfCurrentPathOnly(t *testing.T) {
	registry := prometheus.NewRegistry()
	w, err := newWay(registry)
	if err != nil {
		t.Fatal(err)
	}
	const name = "fleetgate_agent_tunnel_connected"
	for _, state := range []tunnel.State{
		{}, {Connected: true, Way: tunnel.ViaHub}, {Connected: true, Way: tunnel.ViaPort}, {}, {Connected: true, Way: tunnel.ViaKonnectivity},
	} {
		w.set(state)
		var want strings.Builder
		for _, each := range []tunnel.Way{tunnel.ViaHub, tunnel.ViaKonnectivity, tunnel.ViaPort} {
			value := "0"
			if state.Connected && each == state.Way {
				value = "1"
			}
			want.WriteString(name + `{way="` + string(each) + `"} ` + value + "\n")
		}
		help := "# HELP " + name + " 1 for the path of the agent's tunnel: through the hub's API server (hub), to the gateway's port (port), or with the Konnectivity protocol (konnectivity).\n# TYPE " + name + " gauge\n"
		if err := testutil.CollectAndCompare(w.gauge, strings.NewReader(help+want.String()), name); err != nil {
			t.Errorf("%+v: %v", state, err)
		}
	}
}
