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
)

const (
	// DefaultMaxInFlight is how many short requests for one member may be under way.
	DefaultMaxInFlight = 400
	// DefaultMaxInFlightPerUser is how many of one caller may be, for all members.
	DefaultMaxInFlightPerUser = 200
	// DefaultMaxLong is how many requests that last (watches, logs that are followed, exec,
	// attach, port-forward) for one member may be under way.
	DefaultMaxLong = 5000
	// DefaultMaxLongPerUser is how many of one caller may be, for all members: a controller
	// that watches 100 kinds on 200 members.
	DefaultMaxLongPerUser = 20000
)

const (
	// copyBuffer is what a reply is copied with.
	copyBuffer = 32 << 10
	// watchBuffer is the same for a watch, which holds it while nothing happens. It
	// takes most events in one piece.
	watchBuffer = 4 << 10
)

// Config is what a Handler needs. Those up to Serializer are required.
type Config struct {
	Members     *Inventory
	Credentials Credentials
	Dialer      Dialer
	// Authorizer decides on the hub what the verb of the outer request does not
	// say.
	Authorizer authorizer.UnconditionalAuthorizer
	// Serializer writes refusals in the form that the caller asked for.
	Serializer runtime.NegotiatedSerializer

	// NotConnected is what the Dialer's errors are if no agent of the member is
	// connected.
	NotConnected error
	// Answers asks a member's agent for a sign of life, and is false if it gave none. A
	// request whose reply does not come is given up then, with an error that Is Silent,
	// which dials return too as long as the agent is so. If nil, nobody asks.
	Answers func(ctx context.Context, member string) bool
	Silent  error
	// Connected says whether a dial to the member may succeed. If nil, nobody knows.
	Connected func(member string) bool
	// Expected says whether the agent of a member that is not connected may well be back
	// in seconds; nil expects all.
	Expected func(member string) bool
	// Departed is when the member last lost a way through a tunnel: connections made before
	// are not used for further requests. If nil, all are used until they end.
	Departed func(member string) time.Time
	// MaxInFlight is how many short requests for one member may be under way, by
	// default DefaultMaxInFlight.
	MaxInFlight int
	// MaxInFlightPerUser is how many short requests of one caller may be under way,
	// by default DefaultMaxInFlightPerUser.
	MaxInFlightPerUser int
	// MaxLong and MaxLongPerUser are the same for requests that last, by default
	// DefaultMaxLong and DefaultMaxLongPerUser.
	MaxLong, MaxLongPerUser int
	// ReviewPeriod is how often it is asked again whether a request that lasts may go on,
	// by default DefaultReviewPeriod.
	ReviewPeriod time.Duration
	// AuthorizeMemberRequests has the hub asked about each request on the member too, in
	// group InnerGroup.
	AuthorizeMemberRequests bool
	// Recorder keeps a record of each request; nil keeps none.
	Recorder Recorder
	// ServerName is what the certificates of the members' API servers are valid
	// for, by default MemberServerName.
	ServerName string
	// Metrics are registered here; nil means that nobody reads them.
	Metrics prometheus.Registerer
	// Spans are made here.
	Spans trace.TracerProvider
}

// Handler forwards requests to members. It is behind authentication and
// authorization, and in front of it is WithParsed.
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
	record       Recorder
	serverName   string
	metrics      *metrics
	spans        spans
	// replies and watches differ in the buffers that they copy with.
	replies, watches    *httputil.ReverseProxy
	watching, streaming lasting
}

// New makes a Handler.
func New(c Config) (*Handler, error) {
	metrics, err := newMetrics(c.Metrics)
	if err != nil {
		return nil, err
	}
	h := &Handler{
		members: c.Members, credentials: c.Credentials, authorizer: c.Authorizer, serializer: c.Serializer,
		notConnected: c.NotConnected, silent: c.Silent, connected: c.Connected, expected: c.Expected, serverName: c.ServerName, metrics: metrics,
		inner: c.AuthorizeMemberRequests, record: c.Recorder, spans: newSpans(c.Spans),
		short: limits{
			what: "requests", remedy: "ask again",
			perUser:   newCounter(orDefault(c.MaxInFlightPerUser, DefaultMaxInFlightPerUser)),
			perMember: newCounter(orDefault(c.MaxInFlight, DefaultMaxInFlight)),
		},
		long: limits{
			what: "requests that last", remedy: "end some, such as watches and port-forwards, or raise --max-long-requests-per-user and --max-long-requests-per-member",
			perUser:   newCounter(orDefault(c.MaxLongPerUser, DefaultMaxLongPerUser)),
			perMember: newCounter(orDefault(c.MaxLong, DefaultMaxLong)),
		},
		reviews: &reviews{period: orDefault(c.ReviewPeriod, DefaultReviewPeriod), authorizer: c.Authorizer, running: map[string]*review{}},
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
	departed := c.Departed
	if departed == nil {
		departed = func(string) time.Time { return time.Time{} }
	}
	h.routes = &routes{byMember: map[string]*route{}, newRoute: func(member string) *route {
		watch := vigil{member: member, answers: c.Answers, silent: c.Silent}
		made := &route{
			member: member, credentials: c.Credentials, dialer: h.spans.ofDials(c.Dialer),
			serverName: h.serverName, grants: newGrants(member, c.Dialer, watch), vigil: watch, departed: departed,
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

// Drain ends what a server that stops need not finish. Watches end at once, their callers
// go on with another replica. What nobody can go on with, such as exec, port-forward or
// a log that is followed, may go on until ctx ends; Drain returns when the last one has.
func (h *Handler) Drain(ctx context.Context) {
	h.watching.stop()
	h.streaming.wait(ctx)
	h.streaming.stop()
}

// Close ends connections that nothing uses.
func (h *Handler) Close() { h.routes.closeAll() }

// Handles is true for a request that the hub has authorized as one for the
// subresource proxy of a ClusterGateway. What was authorized must be what was
// parsed: a path with a namespace, or with a verb in it, is neither.
func Handles(r *http.Request) bool {
	name, ok := ProxyOf(r, gatewayv1alpha1.Resource)
	if !ok {
		return false
	}
	p, ok := parsedFrom(r.Context())
	return ok && (p.err != nil || p.request.Member == name)
}

// ProxyOf is the name in a request that the hub has authorized as one for the subresource
// proxy of a resource of group cluster.core.oam.dev, which has no namespaces.
func ProxyOf(r *http.Request, resource string) (name string, ok bool) {
	info, ok := apirequest.RequestInfoFrom(r.Context())
	if !ok || !info.IsResourceRequest || info.APIPrefix != "apis" || info.Namespace != "" ||
		info.APIGroup != gatewayv1alpha1.GroupName || info.APIVersion != gatewayv1alpha1.GroupVersion.Version ||
		info.Resource != resource || info.Subresource != gatewayv1alpha1.SubresourceProxy {
		return "", false
	}
	return info.Name, true
}

// ServeHTTP forwards a request to its member, or says why not.
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
	record.As = Printable(x.as.User, maxRecorded)
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

// admit says whether a request may go to its member. The order matters: whoever
// has no right learns nothing about members. The exchange is nil unless the
// member exists.
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
	x.rights = rights{caller: outer.GetUser(), asked: asked, route: x.route, action: actionOf(request)}
	if x.own = member.Labels[authenticationv1beta1.LabelIdentity] == authenticationv1beta1.IdentityServiceAccount; x.own {
		return x, nil
	}
	as, refusal := Impersonate(outer.GetUser())
	if refusal != "" {
		return x, apierrors.NewForbidden(proxyResource, request.Member, errors.New(refusal))
	}
	x.as, x.rights.as = as, as
	return x, nil
}

// authorizeMore asks for the rights that the HTTP method does not show, and for those to
// the request on the member. It returns all that the request needs on the hub.
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

// decide asks the hub. An answer that could not be had is not a yes.
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
