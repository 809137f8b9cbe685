// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/cluster/agent/heartbeat"
	"fleetgate.io/fleetgate/pkg/tunnel"
)

// way reports the path of the current tunnel in a metric and to the hub.
type way struct {
	gauge *prometheus.GaugeVec
	told  *heartbeat.Tunnel
	// last is the path of the current tunnel, or of the last one while none is up; nil before the
	// first.
	last atomic.Pointer[tunnel.Way]
	// turn counts the tunnels that were started.
	turn atomic.Int64
}

// reasons returns the condition reason of each path.
func reasons() map[tunnel.Way]string {
	return map[tunnel.Way]string{
		tunnel.ViaHub:          clusterv1beta1.ReasonTunnelViaHub,
		tunnel.ViaPort:         clusterv1beta1.ReasonTunnelViaPort,
		tunnel.ViaKonnectivity: clusterv1beta1.ReasonTunnelViaKonnectivity,
	}
}

func newWay(registerer prometheus.Registerer) (*way, error) {
	w := &way{told: heartbeat.NewTunnel(clock.RealClock{}), gauge: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "fleetgate_agent_tunnel_connected",
		Help: "1 for the path of the agent's tunnel: through the hub's API server (hub), to the gateway's port (port), or with the Konnectivity protocol (konnectivity).",
	}, []string{"way"})}
	if err := registerer.Register(w.gauge); err != nil {
		return nil, fmt.Errorf("registering the tunnel's metric: %w", err)
	}
	w.count(tunnel.State{})
	return w, nil
}

// newest returns a callback for the state changes of a new tunnel. It ignores them once a newer
// tunnel exists.
func (w *way) newest() func(tunnel.State) {
	mine := w.turn.Add(1)
	return func(state tunnel.State) {
		if w.turn.Load() == mine {
			w.set(state)
		}
	}
}

// set records a state change of the tunnel.
func (w *way) set(state tunnel.State) {
	w.count(state)
	if state.Connected {
		w.told.Up(reasons()[state.Way])
	} else {
		w.told.Down(state.Reason)
	}
}

// forget clears the state of a tunnel that is no longer kept.
func (w *way) forget() {
	w.count(tunnel.State{})
	w.told.Forget()
}

// went reports whether the tunnel has this path, or had it last.
func (w *way) went(one tunnel.Way) bool {
	last := w.last.Load()
	return last != nil && *last == one
}

func (w *way) count(state tunnel.State) {
	if state.Connected {
		w.last.Store(&state.Way)
	}
	for each := range reasons() {
		value := 0.0
		if state.Connected && state.Way == each {
			value = 1
		}
		w.gauge.WithLabelValues(string(each)).Set(value)
	}
}
