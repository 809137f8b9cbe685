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

// tunnelStatus reports the path of the current tunnel in a metric and to the hub.
type tunnelStatus struct {
	gauge    *prometheus.GaugeVec
	reported *heartbeat.Tunnel
	// last is the path of the current tunnel, or of the last one while none is up; nil before the
	// first.
	last atomic.Pointer[tunnel.Path]
	// turn counts the tunnels that were started.
	turn atomic.Int64
}

// reasons returns the condition reason of each path.
func reasons() map[tunnel.Path]string {
	return map[tunnel.Path]string{
		tunnel.ViaHub:          clusterv1beta1.ReasonTunnelViaHub,
		tunnel.ViaPort:         clusterv1beta1.ReasonTunnelViaPort,
		tunnel.ViaKonnectivity: clusterv1beta1.ReasonTunnelViaKonnectivity,
	}
}

func newTunnelStatus(registerer prometheus.Registerer) (*tunnelStatus, error) {
	s := &tunnelStatus{reported: heartbeat.NewTunnel(clock.RealClock{}), gauge: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "fleetgate_agent_tunnel_connected",
		Help: "1 for the path of the agent's tunnel: through the hub's API server (hub), to the gateway's port (port), or with the Konnectivity protocol (konnectivity).",
	}, []string{"path"})}
	if err := registerer.Register(s.gauge); err != nil {
		return nil, fmt.Errorf("registering the tunnel's metric: %w", err)
	}
	s.count(tunnel.State{})
	return s, nil
}

// newest returns a callback for the state changes of a new tunnel. It ignores them once a newer
// tunnel exists.
func (s *tunnelStatus) newest() func(tunnel.State) {
	mine := s.turn.Add(1)
	return func(state tunnel.State) {
		if s.turn.Load() == mine {
			s.set(state)
		}
	}
}

// set records a state change of the tunnel.
func (s *tunnelStatus) set(state tunnel.State) {
	s.count(state)
	if state.Connected {
		s.reported.Up(reasons()[state.Path])
	} else {
		s.reported.Down(state.Reason)
	}
}

// forget clears the state of a tunnel that is no longer kept.
func (s *tunnelStatus) forget() {
	s.count(tunnel.State{})
	s.reported.Forget()
}

// hasUsed reports whether the tunnel has this path, or had it last.
func (s *tunnelStatus) hasUsed(one tunnel.Path) bool {
	last := s.last.Load()
	return last != nil && *last == one
}

func (s *tunnelStatus) count(state tunnel.State) {
	if state.Connected {
		s.last.Store(&state.Path)
	}
	for each := range reasons() {
		value := 0.0
		if state.Connected && state.Path == each {
			value = 1
		}
		s.gauge.WithLabelValues(string(each)).Set(value)
	}
}
