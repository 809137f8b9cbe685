// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/status"
)

// The four directions of packets as upstream's metrics name them.
const (
	fromClient = "from_client"
	toClient   = "to_client"
	fromAgent  = "from_agent"
	toAgent    = "to_agent"
)

// Metrics of a gateway, of both its listeners. Those whose names begin with konnectivity_ have the
// meaning and the labels of upstream's server, so that its dashboards and alerts continue to work.
type Metrics struct {
	dialSeconds        prometheus.Histogram
	frontendWrites     prometheus.Histogram
	grpcConnections    *prometheus.GaugeVec
	httpConnections    prometheus.Gauge
	readyConnections   prometheus.Gauge
	readyBackends      *prometheus.GaugeVec
	pendingDials       prometheus.Gauge
	established        prometheus.Gauge
	fullChannels       *prometheus.GaugeVec
	dialFailures       *prometheus.CounterVec
	packets, errors    *prometheus.CounterVec
	sessions, conns    *prometheus.GaugeVec
	bytes              *prometheus.CounterVec
	overflows, refused *prometheus.CounterVec
	foreignPackets     *prometheus.CounterVec
}

// upstreamBuckets are those of upstream's server, in seconds.
var upstreamBuckets = [...]float64{0.000001, 0.00001, 0.0001, 0.005, 0.025, 0.1, 0.5, 2.5, 12.5}

// NewMetrics registers the metrics; without a registerer nothing is exported.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	const server = "konnectivity_network_proxy_server_"
	m := &Metrics{
		dialSeconds:     histogram(server+"dial_duration_seconds", "Latency of dials to the remote endpoint."),
		frontendWrites:  histogram(server+"frontend_write_duration_seconds", "Latency of writes to a frontend."),
		grpcConnections: gauges(server+"grpc_connections", "Number of open gRPC streams by service method.", "service_method"),
		httpConnections: gauge(server+"http_connections", "Number of open HTTP CONNECT connections."),
		// The first metric is the older name of the second; upstream has both since it has
		// strategies.
		readyConnections: gauge(server+"ready_backend_connections", "Number of streams of agents."),
		readyBackends:    gauges(server+"ready_backends", "Number of streams of agents.", "proxy_strategy"),
		pendingDials:     gauge(server+"pending_backend_dials", "Number of dials without a response from the agent yet."),
		established:      gauge(server+"established_connections", "Number of connections that agents have established."),
		fullChannels:     gauges(server+"full_receive_channels", "Number of streams on which receiving waits for a slow reader.", "service_method"),
		dialFailures:     counters(server+"dial_failure_count", "Number of failed dials, by reason.", "reason"),
		packets:          counters(server+"stream_packets_total", "Number of packets by segment and type.", "segment", "packet_type"),
		errors:           counters(server+"stream_errors_total", "Number of stream errors by segment, gRPC code and packet type.", "segment", "code", "packet_type"),

		sessions: gauges("fleetgate_konnectivity_sessions", "Number of streams of a member's Konnectivity agents to this gateway.", "member"),
		conns:    gauges("fleetgate_konnectivity_connections", "Number of open connections to a member.", "member"),
		bytes:    counters("fleetgate_konnectivity_bytes_total", "Bytes sent to or received from a member in connections.", "member", "direction"),
		overflows: counters("fleetgate_konnectivity_overflows_total",
			"Number of connections that were reset because their reader was too slow for a stream without flow control. More streams per agent, or fleetgate's own agent, help.", "member"),
		refused: counters("fleetgate_konnectivity_refused_total", "Number of rejected agents and frontend dials, by listener and reason.", "listener", "reason"),
		foreignPackets: counters("fleetgate_konnectivity_ignored_packets_total",
			"Number of packets that belong to no connection of their stream or have no meaning here, by type. A few occur when both sides close a connection at the same time.", "segment", "packet_type"),
	}
	if registerer == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{
		m.dialSeconds, m.frontendWrites, m.grpcConnections, m.httpConnections, m.readyConnections, m.readyBackends, m.pendingDials, m.established,
		m.fullChannels, m.dialFailures, m.packets, m.errors, m.sessions, m.conns, m.bytes, m.overflows, m.refused, m.foreignPackets,
	} {
		if err := registerer.Register(c); err != nil {
			return nil, fmt.Errorf("registering Konnectivity's metrics: %w", err)
		}
	}
	return m, nil
}

// forget drops a member's series.
func (m *Metrics) forget(member string) {
	labels := prometheus.Labels{"member": member}
	m.sessions.DeletePartialMatch(labels)
	m.conns.DeletePartialMatch(labels)
	m.bytes.DeletePartialMatch(labels)
	m.overflows.DeletePartialMatch(labels)
}

// backends counts streams of agents. The member and the load decide which of them a dial uses,
// whatever strategy upstream's dashboards expect.
func (m *Metrics) backends(change float64) {
	m.readyConnections.Add(change)
	m.readyBackends.WithLabelValues("default").Add(change)
}

// dialFailure counts a failed dial by upstream's reasons.
func (m *Metrics) dialFailure(reason string) { m.dialFailures.WithLabelValues(reason).Inc() }

// streamMeter returns the meter of one agent's stream.
func (m *Metrics) streamMeter(member string) *meter {
	return &meter{
		out: packetCounters(m.packets, toAgent), in: packetCounters(m.packets, fromAgent),
		ignored: packetCounters(m.foreignPackets, fromAgent),
		bytesIn: m.bytes.WithLabelValues(member, "received"), bytesOut: m.bytes.WithLabelValues(member, "sent"),
		overflows: m.overflows.WithLabelValues(member),
		full:      m.fullChannels.WithLabelValues("Connect"),
	}
}

// frontend returns the meter of frontends' streams.
func (m *Metrics) frontend() *meter {
	return &meter{
		out: packetCounters(m.packets, toClient), in: packetCounters(m.packets, fromClient),
		ignored: packetCounters(m.foreignPackets, fromClient),
	}
}

// streamError counts a stream that ended with an unexpected error.
func (m *Metrics) streamError(segment string, err error) {
	if err != nil {
		m.errors.WithLabelValues(segment, status.Code(err).String(), nothing.String()).Inc()
	}
}

// AgentMetrics are those of an agent, under the names of upstream's.
type AgentMetrics struct {
	dialSeconds     prometheus.Histogram
	serverFailures  *prometheus.CounterVec
	dialFailures    *prometheus.CounterVec
	servers         prometheus.Gauge
	knownServers    prometheus.Gauge
	endpoints       prometheus.Gauge
	packets, errors *prometheus.CounterVec
	ignored         *prometheus.CounterVec
}

// NewAgentMetrics registers the metrics; without a registerer nothing is exported.
func NewAgentMetrics(registerer prometheus.Registerer) (*AgentMetrics, error) {
	const agent = "konnectivity_network_proxy_agent_"
	m := &AgentMetrics{
		dialSeconds:    histogram(agent+"dial_duration_seconds", "Latency of dials to the remote endpoint."),
		serverFailures: counters(agent+"server_connection_failure_count", "Number of failures to send to or receive from a server.", "direction"),
		dialFailures:   counters(agent+"endpoint_dial_failure_total", "Number of failed dials to endpoints, by reason.", "reason"),
		servers:        gauge(agent+"open_server_connections", "Number of open streams to servers."),
		knownServers:   gauge(agent+"known_server_count", "Number of servers that the agent connects to."),
		endpoints:      gauge(agent+"open_endpoint_connections", "Number of open connections to endpoints."),
		packets:        counters(agent+"stream_packets_total", "Number of packets by segment and type.", "segment", "packet_type"),
		errors:         counters(agent+"stream_errors_total", "Number of stream errors by segment, gRPC code and packet type.", "segment", "code", "packet_type"),
		ignored: counters("fleetgate_konnectivity_agent_ignored_packets_total",
			"Number of packets that belong to no connection of their stream or have no meaning here, by type. A few occur when both sides close a connection at the same time.", "segment", "packet_type"),
	}
	if registerer == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{
		m.dialSeconds, m.serverFailures, m.dialFailures, m.servers, m.knownServers, m.endpoints, m.packets, m.errors, m.ignored,
	} {
		if err := registerer.Register(c); err != nil {
			return nil, fmt.Errorf("registering Konnectivity's metrics: %w", err)
		}
	}
	return m, nil
}

func (m *AgentMetrics) streamMeter() *meter {
	return &meter{
		out: packetCounters(m.packets, fromAgent), in: packetCounters(m.packets, toAgent), ignored: packetCounters(m.ignored, toAgent),
	}
}

// meter holds one stream's series, looked up once, so that a packet costs one addition. Nil series
// are not counted.
type meter struct {
	out, in, ignored  map[packetType]prometheus.Counter
	bytesIn, bytesOut prometheus.Counter
	overflows         prometheus.Counter
	full              prometheus.Gauge
}

func (m *meter) sent(p *packet) {
	count(m.out, p.kind)
	if m.bytesOut != nil && p.kind == data {
		m.bytesOut.Add(float64(p.payload.Len()))
	}
}

func (m *meter) received(p *packet) {
	count(m.in, p.kind)
	if p.kind == nothing {
		count(m.ignored, p.kind)
	}
	if m.bytesIn != nil && p.kind == data {
		m.bytesIn.Add(float64(p.payload.Len()))
	}
}

// foreign counts a packet for an unknown connection.
func (m *meter) foreign(kind packetType) { count(m.ignored, kind) }

func (m *meter) overflowed() {
	if m.overflows != nil {
		m.overflows.Inc()
	}
}

// stalls counts a receiver that waits until the returned function is called.
func (m *meter) stalls() func() {
	if m.full == nil {
		return func() {}
	}
	m.full.Inc()
	return m.full.Dec
}

func count(of map[packetType]prometheus.Counter, kind packetType) {
	if c, ok := of[kind]; ok {
		c.Inc()
	}
}

func packetCounters(all *prometheus.CounterVec, segment string) map[packetType]prometheus.Counter {
	of := map[packetType]prometheus.Counter{}
	for _, kind := range []packetType{dialRequest, dialResponse, closeRequest, closeResponse, data, dialClose, drain, credit, end, nothing} {
		of[kind] = all.WithLabelValues(segment, kind.String())
	}
	return of
}

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

func gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func histogram(name, help string) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: upstreamBuckets[:]})
}

// since observes how long something took.
func since(h prometheus.Histogram, began time.Time) { h.Observe(time.Since(began).Seconds()) }
