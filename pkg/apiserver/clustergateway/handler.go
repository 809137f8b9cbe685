// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

const (
	// copyBuffer is the size of the buffer that copies a reply.
	copyBuffer = 32 << 10
	// watchBuffer is the same for a watch, which keeps its buffer while nothing happens. Most
	// events fit into it.
	watchBuffer = 4 << 10
	// passedBuffer is the same for a reply whose body is passed: only that of an error is copied.
	passedBuffer = 512
)

// Handler forwards requests to members. Authentication, authorization and WithParsed run before it.
type Handler struct {
	config      Config
	access      *access
	routes      *routes
	serializer  runtime.NegotiatedSerializer
	short, long limits
	reviews     *reviews
	metrics     *metrics
	spans       spans
	// replies, watches and passed differ in the size of their copy buffers.
	replies, watches, passed *httputil.ReverseProxy
	watching, streaming      inFlight
}

// New returns a Handler for a Config with defaults. The serializer encodes refusals in the format that the caller accepts.
func New(c Config, hub Authorizers, serializer runtime.NegotiatedSerializer) (*Handler, error) {
	metrics, err := newMetrics(c.Metrics)
	if err != nil {
		return nil, err
	}
	h := &Handler{
		config: c, serializer: serializer, metrics: metrics, spans: newSpans(c.Spans),
		short: limits{
			what: "requests", remedy: "retry later",
			perUser: newCounter(c.MaxInFlightPerUser), perMember: newCounter(c.MaxInFlightPerMember),
		},
		long: limits{
			what: "long-running requests", remedy: "end some, such as watches and port-forwards, or raise proxy.maxLongRequestsPerUser and proxy.maxLongRequestsPerMember",
			perUser: newCounter(c.MaxLongPerUser), perMember: newCounter(c.MaxLongPerMember),
		},
		reviews: newReviews(orDefault(c.ReviewPeriod, DefaultReviewPeriod), hub.Reviews),
	}
	readers := newSlowReaders(c.SlowReaders, metrics)
	dialer := h.spans.ofDials(c.Dialer)
	h.routes = &routes{byMember: map[string]*route{}, newRoute: func(member string) *route { return newRoute(member, c, dialer, readers) }}
	h.access = &access{members: c.Members, routes: h.routes, authorizer: hub.Requests, memberRequests: c.AuthorizeMemberRequests, memberGroups: c.MemberGroups}
	h.replies, h.watches, h.passed = h.newProxy(copyBuffer), h.newProxy(watchBuffer), h.newProxy(passedBuffer)
	c.Members.OnGone(func(member string) {
		h.routes.forget(member)
		h.metrics.forget(member)
	})
	return h, nil
}

func (h *Handler) newProxy(buffer int) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite:        h.rewrite,
		Transport:      roundTripperFunc(roundTrip),
		ModifyResponse: checkReply,
		ErrorHandler:   h.fail,
		BufferPool:     &bufferPool{size: buffer},
		ErrorLog:       log.New(io.Discard, "", 0),
	}
}

// Drain ends requests that a stopping server need not finish. Watches end at once, because their
// callers resume at another replica. Requests that cannot be resumed, such as exec, port-forward or
// a followed log, may continue until ctx ends. Drain returns when the last one has ended.
func (h *Handler) Drain(ctx context.Context) {
	h.watching.stop()
	h.streaming.wait(ctx)
	h.streaming.stop()
}

// Close closes idle connections.
func (h *Handler) Close() { h.routes.closeAll() }

// Handles is true for a request that the hub has authorized for the subresource proxy of a
// ClusterGateway. The authorized request must equal the parsed one, so a path with a namespace or a
// verb does not count.
func Handles(r *http.Request) bool {
	name, ok := ProxyOf(r, gatewayv1alpha1.Resource)
	if !ok {
		return false
	}
	p, ok := parsedFrom(r.Context())
	return ok && (p.err != nil || p.request.Member == name)
}

// ProxyOf is the name in a request that the hub has authorized for the subresource proxy of a
// cluster-scoped resource of group cluster.core.oam.dev.
func ProxyOf(r *http.Request, resource string) (name string, ok bool) {
	info, ok := apirequest.RequestInfoFrom(r.Context())
	if !ok || !info.IsResourceRequest || info.APIPrefix != "apis" || info.Namespace != "" ||
		info.APIGroup != gatewayv1alpha1.GroupName || info.APIVersion != gatewayv1alpha1.GroupVersion.Version ||
		info.Resource != resource || info.Subresource != gatewayv1alpha1.SubresourceProxy {
		return "", false
	}
	return info.Name, true
}

// ServeHTTP forwards a request to its member, or refuses it with the reason.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p, ok := parsedFrom(r.Context())
	if !ok || p.err != nil {
		h.refuse(w, r, apierrors.NewBadRequest(fmt.Sprintf("refusing the request for a member: %v", p.err)))
		return
	}
	counted, record := &CountedWriter{ResponseWriter: w}, newRecord(r, p.request, time.Now())
	x, err := h.access.admit(r, p.request)
	defer func() {
		record.Code, record.Bytes, record.Took = counted.Status(), counted.Bytes(), time.Since(record.Began)
		record.Ended = x.endedBy()
		annotateEnd(r.Context(), record)
		h.config.Recorder(r.Context(), record)
	}()
	if x == nil {
		h.refuse(counted, r, err)
		return
	}
	inFlight := h.metrics.inFlight.WithLabelValues(p.request.Member)
	inFlight.Inc()
	defer func() {
		inFlight.Dec()
		h.metrics.finished(p.request, counted.Status(), time.Since(record.Began))
	}()
	if err != nil {
		h.refuse(counted, r, err)
		return
	}
	record.As = untrusted.Excerpt(x.as.User, maxRecorded)
	if x.ownAccount {
		record.As = "ServiceAccount " + authenticationv1beta1.GatewayAccount
	}
	annotate(r.Context(), record)
	ctx, end := h.spans.begin(r.Context(), p.request)
	defer func() { end(counted.Status()) }()
	x.written = counted
	h.forward(counted, r.WithContext(ctx), x)
}
