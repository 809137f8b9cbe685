// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

const (
	// DefaultMaxInFlight limits short requests in flight for one member.
	DefaultMaxInFlight = 400
	// DefaultMaxInFlightPerUser limits short requests in flight of one caller for all members.
	DefaultMaxInFlightPerUser = 200
	// DefaultMaxLong limits long-running requests in flight (watches, followed logs, exec, attach,
	// port-forward) for one member.
	DefaultMaxLong = 5000
	// DefaultMaxLongPerUser limits those of one caller for all members. It suffices for a
	// controller that watches 100 kinds on 200 members.
	DefaultMaxLongPerUser = 20000
)

const (
	// copyBuffer is the size of the buffer that copies a reply.
	copyBuffer = 32 << 10
	// watchBuffer is the same for a watch, which keeps its buffer while nothing happens. Most
	// events fit into it.
	watchBuffer = 4 << 10
)

// Config is what a Handler needs. The fields up to Serializer are required.
type Config struct {
	Members     *Inventory
	Credentials Credentials
	Dialer      Dialer
	// Authorizer asks the hub about permissions that the outer request's verb does not show.
	Authorizer authorizer.UnconditionalAuthorizer
	// Reviewer asks the hub about long-running requests again. If unset, it is Authorizer.
	Reviewer authorizer.UnconditionalAuthorizer
	// Serializer encodes refusals in the format that the caller asked for.
	Serializer runtime.NegotiatedSerializer

	// NotConnected is the Dialer's error if no agent of the member is connected.
	NotConnected error
	// Responds probes a member's agent and is false if the agent did not respond. A request without
	// a reply is then aborted with an error that Is Silent. Dials return the same error while the
	// agent does not respond. If nil, agents are not probed.
	Responds func(ctx context.Context, member string) bool
	Silent   error
	// Connected is true if a dial to the member can succeed. If nil, that is unknown.
	Connected func(member string) bool
	// Expected is true if the agent of a disconnected member probably reconnects within seconds. If
	// nil, every agent is expected to reconnect.
	Expected func(member string) bool
	// LastSessionChange returns when the member last got or lost a tunnel. Connections that were opened before
	// that time take no further requests. If nil, connections are used until they end.
	LastSessionChange func(member string) time.Time
	// MaxInFlight limits short requests in flight for one member, by default DefaultMaxInFlight.
	MaxInFlight int
	// MaxInFlightPerUser limits short requests in flight of one caller, by default
	// DefaultMaxInFlightPerUser.
	MaxInFlightPerUser int
	// MaxLong and MaxLongPerUser are the same limits for long-running requests, by default
	// DefaultMaxLong and DefaultMaxLongPerUser.
	MaxLong, MaxLongPerUser int
	// SlowReaders limits what is buffered for slow readers, by default to DefaultUnread in all.
	SlowReaders SlowReaders
	// ReviewPeriod is how often the authorization of a long-running request is checked again, by
	// default DefaultReviewPeriod.
	ReviewPeriod time.Duration
	// AuthorizeMemberRequests also authorizes each request to a member on the hub, in group InnerGroup.
	AuthorizeMemberRequests bool
	// MemberGroups maps groups of the hub to groups that members see instead.
	MemberGroups map[string]string
	// Recorder records each request. If nil, requests are not recorded.
	Recorder Recorder
	// ServerName is the name in the certificates of the members' API servers, by default
	// MemberServerName.
	ServerName string
	// Metrics registers the handler's metrics. If nil, there are none.
	Metrics prometheus.Registerer
	// Spans creates the handler's spans.
	Spans trace.TracerProvider
}

// Handler forwards requests to members. Authentication, authorization and WithParsed run before it.
type Handler struct {
	members      *Inventory
	credentials  Credentials
	routes       *routes
	authorizer   authorizer.UnconditionalAuthorizer
	serializer   runtime.NegotiatedSerializer
	notConnected error
	silent       error
	connected    func(member string) bool
	expected     func(member string) bool
	short, long  limits
	reviews      *reviews
	inner        bool
	memberGroups map[string]string
	record       Recorder
	serverName   string
	metrics      *metrics
	spans        spans
	// replies and watches differ in the size of their copy buffers.
	replies, watches    *httputil.ReverseProxy
	watching, streaming lasting
}

// New returns a Handler with defaults for what the Config leaves out.
func New(c Config) (*Handler, error) {
	metrics, err := newMetrics(c.Metrics)
	if err != nil {
		return nil, err
	}
	h := &Handler{
		members: c.Members, credentials: c.Credentials, authorizer: c.Authorizer, serializer: c.Serializer,
		notConnected: c.NotConnected, silent: c.Silent, connected: c.Connected, expected: c.Expected, serverName: c.ServerName, metrics: metrics,
		inner: c.AuthorizeMemberRequests, memberGroups: c.MemberGroups, record: c.Recorder, spans: newSpans(c.Spans),
		short: limits{
			what: "requests", remedy: "retry later",
			perUser:   newCounter(orDefault(c.MaxInFlightPerUser, DefaultMaxInFlightPerUser)),
			perMember: newCounter(orDefault(c.MaxInFlight, DefaultMaxInFlight)),
		},
		long: limits{
			what: "long-running requests", remedy: "end some, such as watches and port-forwards, or raise proxy.maxLongRequestsPerUser and proxy.maxLongRequestsPerMember",
			perUser:   newCounter(orDefault(c.MaxLongPerUser, DefaultMaxLongPerUser)),
			perMember: newCounter(orDefault(c.MaxLong, DefaultMaxLong)),
		},
		reviews: &reviews{period: orDefault(c.ReviewPeriod, DefaultReviewPeriod), authorizer: c.Reviewer, running: map[string]*review{}},
	}
	if h.reviews.authorizer == nil {
		h.reviews.authorizer = c.Authorizer
	}
	if h.record == nil {
		h.record = func(context.Context, Record) {}
	}
	if h.expected == nil {
		h.expected = func(string) bool { return true }
	}
	if h.serverName == "" {
		h.serverName = MemberServerName
	}
	lastSessionChange := c.LastSessionChange
	if lastSessionChange == nil {
		lastSessionChange = func(string) time.Time { return time.Time{} }
	}
	readers := newSlowReaders(c.SlowReaders, metrics)
	h.routes = &routes{byMember: map[string]*route{}, newRoute: func(member string) *route {
		watch := agentProbe{member: member, responds: c.Responds, silent: c.Silent}
		made := &route{
			member: member, credentials: c.Credentials, dialer: h.spans.ofDials(c.Dialer), readers: readers,
			serverName: h.serverName, grants: newGrants(member, c.Dialer, watch), agentProbe: watch, lastSessionChange: lastSessionChange,
		}
		made.actions = newActions(h.serverName, made.send)
		return made
	}}
	h.replies, h.watches = h.newProxy(copyBuffer), h.newProxy(watchBuffer)
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
		h.refuse(w, r, badPath(p.err))
		return
	}
	counted, record := &CountedWriter{ResponseWriter: w}, newRecord(r, p.request, time.Now())
	x, err := h.admit(r, p.request)
	defer func() {
		record.Code, record.Bytes, record.Took = counted.Status(), counted.Bytes(), time.Since(record.Began)
		record.Ended = x.endedBy()
		annotateEnd(r.Context(), record)
		h.record(r.Context(), record)
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
	if x.own {
		record.As = "ServiceAccount " + authenticationv1beta1.GatewayAccount
	}
	annotate(r.Context(), record)
	ctx, end := h.spans.begin(r.Context(), p.request)
	defer func() { end(counted.Status()) }()
	h.forward(counted, r.WithContext(ctx), x)
}

func orDefault[T int | time.Duration](value, otherwise T) T {
	if value <= 0 {
		return otherwise
	}
	return value
}

func badPath(err error) error {
	if err == nil {
		err = errors.New("the path could not be read")
	}
	return apierrors.NewBadRequest("refusing the request for a member: " + err.Error())
}

// admit decides whether a request is forwarded. The order matters: a caller without permission must
// learn nothing about members. The exchange is nil unless the member exists.
func (h *Handler) admit(r *http.Request, request *Request) (*exchange, error) {
	ctx := r.Context()
	outer, err := filters.GetAuthorizerAttributes(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading who asks for what: %w", err)
	}
	asked, err := h.authorizeMore(ctx, outer, r.Method, request)
	if err != nil {
		return nil, err
	}
	member, ok := h.members.Get(request.Member)
	if !ok {
		return nil, notFound(request.Member)
	}
	x := &exchange{request: request, route: h.routes.of(request.Member), caller: outer.GetUser().GetName(), fanned: fannedFrom(ctx) != ""}
	x.rights = rights{caller: outer.GetUser(), asked: asked, fanned: x.fanned, route: x.route, action: actionOf(request)}
	if x.own = member.Labels[authenticationv1beta1.LabelIdentity] == authenticationv1beta1.IdentityServiceAccount; x.own {
		return x, nil
	}
	as, refusal := Impersonate(outer.GetUser(), h.memberGroups)
	if refusal != "" {
		return x, apierrors.NewForbidden(proxyResource, request.Member, errors.New(refusal))
	}
	x.as, x.rights.as = as, as
	return x, nil
}

// authorizeMore checks the permissions that the HTTP method does not show, and those for the
// request on the member. It returns everything that the request needs on the hub.
func (h *Handler) authorizeMore(ctx context.Context, outer authorizer.Attributes, method string, request *Request) ([]authorizer.Attributes, error) {
	switch outer.GetVerb() {
	case "get", "create", "update", "patch", "delete":
	default:
		return nil, apierrors.NewMethodNotSupported(proxyResource, method)
	}
	var more []authorizer.AttributesRecord
	if request.Upgrade && outer.GetVerb() != "create" {
		more = append(more, withVerb(outer, "create"))
	}
	if request.DeletesCollection(method) {
		more = append(more, withVerb(outer, "deletecollection"))
	}
	if h.inner {
		more = append(more, innerAttributes(outer.GetUser(), request))
	}
	all := []authorizer.Attributes{outer}
	for _, attributes := range more {
		if err := h.decide(ctx, attributes); err != nil {
			return nil, err
		}
		all = append(all, attributes)
	}
	return all, nil
}

func withVerb(outer authorizer.Attributes, verb string) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{
		User: outer.GetUser(), Verb: verb, Name: outer.GetName(),
		APIGroup: outer.GetAPIGroup(), APIVersion: outer.GetAPIVersion(),
		Resource: outer.GetResource(), Subresource: outer.GetSubresource(),
		ResourceRequest: true, Path: outer.GetPath(),
	}
}

// decide asks the hub. A failed review counts as a denial.
func (h *Handler) decide(ctx context.Context, attributes authorizer.AttributesRecord) error {
	decision, reason, err := h.authorizer.Authorize(ctx, attributes)
	if decision == authorizer.DecisionAllow {
		return nil
	}
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("authorizing %s: %w", attributes.Verb, err))
	}
	return responsewriters.ForbiddenStatusError(attributes, reason)
}
