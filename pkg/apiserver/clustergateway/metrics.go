// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	labelMember = "member"
	labelVerb   = "verb"
	labelCode   = "code"
	labelLimit  = "limit"
)

// Values of labelLimit.
const (
	limitMember = "member"
	limitUser   = "user"
	limitTotal  = "total"
)

// metrics count requests to members. Their labels are bounded: known members, known verbs and
// codes, but no path, resource or user.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight *prometheus.GaugeVec
	// unread and slowReaders are about replies whose readers are behind.
	unread      prometheus.Gauge
	slowReaders *prometheus.CounterVec
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fleetgate_proxy_requests_total",
			Help: "Number of requests to members by member, verb on the member and status code. 503: the member is unreachable. 502 and 504: it was reached and failed to respond.",
		}, []string{labelMember, labelVerb, labelCode}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "fleetgate_proxy_request_duration_seconds",
			Help:    "Latency in seconds of short requests to members, by verb on the member.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 13),
		}, []string{labelVerb}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fleetgate_proxy_requests_in_flight",
			Help: "Number of requests to members in flight, by member, including long-running requests.",
		}, []string{labelMember}),
		unread: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "fleetgate_proxy_unread_bytes",
			Help: "Number of bytes that the gateway may buffer for readers of replies that are behind.",
		}),
		slowReaders: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fleetgate_proxy_slow_readers_total",
			Help: "Number of replies that the gateway ended because their readers were too slow, by the limit that was exceeded: member, user or total.",
		}, []string{labelLimit}),
	}
	for _, limit := range []string{limitMember, limitUser, limitTotal} {
		m.slowReaders.WithLabelValues(limit)
	}
	if registerer == nil {
		return m, nil
	}
	var errs []error
	for _, collector := range []prometheus.Collector{m.requests, m.duration, m.inFlight, m.unread, m.slowReaders} {
		errs = append(errs, registerer.Register(collector))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	return m, nil
}

func (m *metrics) finished(request *Request, code int, took time.Duration) {
	verb := verbLabel(request)
	m.requests.WithLabelValues(request.Member, verb, strconv.Itoa(code)).Inc()
	if !request.LongRunning {
		m.duration.WithLabelValues(verb).Observe(took.Seconds())
	}
}

func (m *metrics) forget(member string) {
	m.requests.DeletePartialMatch(prometheus.Labels{labelMember: member})
	m.inFlight.DeletePartialMatch(prometheus.Labels{labelMember: member})
}

var knownVerbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

func verbLabel(request *Request) string {
	switch {
	case request.Upgrade:
		return "connect"
	case request.Info.IsResourceRequest && slices.Contains(knownVerbs, request.Info.Verb):
		return request.Info.Verb
	case !request.Info.IsResourceRequest:
		return "nonresource"
	}
	return "other"
}
