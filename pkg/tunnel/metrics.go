// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics of one registry. The only label that grows is member. It holds members that have had a
// session, whose names the hub's API server has authorized.
type metrics struct {
	sessions     *prometheus.GaugeVec
	streams      *prometheus.GaugeVec
	bytes        *prometheus.CounterVec
	dials        *prometheus.CounterVec
	notConnected prometheus.Counter
	peersMissing prometheus.Gauge
	moves        prometheus.Counter
	data         *prometheus.CounterVec
}

// meter holds one member's series.
type meter struct {
	sessions, streams prometheus.Gauge
	sent, received    prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		sessions: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fleetgate_tunnel_sessions",
			Help: "Number of tunnel sessions of a member's agents to this gateway. 0 or absent: not connected.",
		}, []string{"member"}),
		streams: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fleetgate_tunnel_streams",
			Help: "Number of streams that are open, or being opened, to a member.",
		}, []string{"member"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fleetgate_tunnel_bytes_total",
			Help: "Bytes sent to or received from a member in streams.",
		}, []string{"member", "direction"}),
		dials: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fleetgate_tunnel_dials_total",
			Help: "Number of streams requested from a connected member, by result.",
		}, []string{"member", "result"}),
		notConnected: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "fleetgate_tunnel_dials_not_connected_total",
			Help: "Number of dials to members without a tunnel session.",
		}),
		peersMissing: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "fleetgate_tunnel_peer_links_missing",
			Help: "Number of serving replicas of the gateway to which this one has no link.",
		}),
		moves: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "fleetgate_tunnel_moves_requested_total",
			Help: "Number of tunnel sessions that this gateway asked to move to a replica with fewer sessions.",
		}),
	}
	m.data = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fleetgate_tunnel_data_connections_total",
		Help: "Number of data connections requested from agents, by result: opened; declined, when the tunnel carries the bytes; failed, when neither does.",
	}, []string{"member", "result"})
	if registerer == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.sessions, m.streams, m.bytes, m.dials, m.notConnected, m.peersMissing, m.moves, m.data} {
		if err := registerer.Register(c); err != nil {
			return nil, fmt.Errorf("registering the tunnel's metrics: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) of(member string) *meter {
	return &meter{
		sessions: m.sessions.WithLabelValues(member),
		streams:  m.streams.WithLabelValues(member),
		sent:     m.bytes.WithLabelValues(member, "sent"),
		received: m.bytes.WithLabelValues(member, "received"),
	}
}

// dialed counts the result of a dial.
func (m *metrics) dialed(member string, err error) {
	if errors.Is(err, ErrNotConnected) {
		m.notConnected.Inc()
		return
	}
	m.dials.WithLabelValues(member, dialResult(err)).Inc()
}

func dialResult(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, ErrRefused):
		return "refused"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	return "error"
}

// forget drops a member's series.
func (m *metrics) forget(member string) {
	labels := prometheus.Labels{"member": member}
	m.sessions.DeletePartialMatch(labels)
	m.streams.DeletePartialMatch(labels)
	m.bytes.DeletePartialMatch(labels)
	m.dials.DeletePartialMatch(labels)
	m.data.DeletePartialMatch(labels)
}
