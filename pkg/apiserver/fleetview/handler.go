// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	viewv1alpha1 "fleetgate.io/fleetgate/pkg/apis/view/v1alpha1"
	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
)

// Gateway forwards to single members. Package clustergateway implements it.
type Gateway interface {
	// ServeMember forwards a request to a member as its caller.
	ServeMember(w http.ResponseWriter, r *http.Request, view, member string, inner *url.URL)
	// EnterUser counts a request of a user, once for all members.
	EnterUser(user, view string, longRunning bool) (leave func(), err error)
	// Record records a request for a view.
	Record(r *http.Request, view string, info *apirequest.RequestInfo, path string, code int, bytes int64, began time.Time)
}

// Config is what a Handler needs. The fields up to Serializer are required.
type Config struct {
	Gateway   Gateway
	Inventory *clustergateway.Inventory
	Views     Views
	// Authorizers ask the hub which members a caller may reach: Requests about all of them, Reviews
	// about each of them, and again during a watch.
	Authorizers clustergateway.Authorizers
	// Serializer encodes refusals in the format that the caller accepts.
	Serializer runtime.NegotiatedSerializer
	// Parallel is how many members get a request at once, by default DefaultParallel.
	Parallel int
	// Busy is true while further requests to many members should wait, by default while goroutines wait
	// for a CPU.
	Busy func() bool
	// ReviewPeriod is how often a watch's authorization and members are checked again, by default
	// DefaultReviewPeriod.
	ReviewPeriod time.Duration
	// Remembered limits the bytes that watches use to remember what they have sent, by default
	// DefaultRemembered. Beyond it, a member that leaves ends a watch, whose caller lists again.
	Remembered int64
}

// Handler serves requests for views. Authentication, authorization and WithParsed run before it.
type Handler struct {
	gateway    Gateway
	inventory  *clustergateway.Inventory
	views      Views
	hub        clustergateway.Authorizers
	serializer runtime.NegotiatedSerializer
	parallel   int
	pace       *pace
	documents  *documents
	reviewed   time.Duration
	remembered budget
	ahead      budget
	cursors    *cursors
	// stopping is closed, once, when watches have to end.
	stopping chan struct{}
	stop     sync.Once
}

// New returns a Handler with defaults for what the Config leaves out.
func New(c Config) *Handler {
	h := &Handler{
		gateway: c.Gateway, inventory: c.Inventory, views: c.Views, hub: c.Authorizers, serializer: c.Serializer,
		parallel: cmp.Or(c.Parallel, DefaultParallel), documents: newDocuments(), stopping: make(chan struct{}),
		reviewed: cmp.Or(c.ReviewPeriod, DefaultReviewPeriod), cursors: newCursors(trailsLimit), ahead: budget{limit: aheadOfAll},
	}
	if c.Busy == nil {
		c.Busy = isBusy
	}
	h.pace = newPace(c.Busy)
	h.remembered.limit = cmp.Or(c.Remembered, DefaultRemembered)
	return h
}

// Stop ends watches: their callers resume at another replica.
func (h *Handler) Stop() { h.stop.Do(func() { close(h.stopping) }) }

// exchange is one request for a view in flight.
type exchange struct {
	*request
	view     *view
	members  []string
	query    url.Values
	deadline time.Duration
}

// ServeHTTP serves a request for a view, or refuses it with the reason.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p, ok := parsedFrom(r.Context())
	if !ok || p.err != nil {
		h.refuse(w, r, apierrors.NewBadRequest(fmt.Sprintf("refusing the request for a view: %v", p.err)))
		return
	}
	began, counted := time.Now(), &clustergateway.CountedWriter{ResponseWriter: w}
	defer func() {
		h.gateway.Record(r, p.request.view, p.request.info, p.request.url.Path, counted.Code(), counted.Bytes(), began)
	}()
	x, leave, err := h.admit(r, p.request)
	if err != nil {
		h.refuse(counted, r, err)
		return
	}
	defer leave()
	if err := h.dispatch(counted, r, x); err != nil {
		h.refuse(counted, r, err)
	}
}

// admit decides which members are read. A caller without permission learns nothing about members.
func (h *Handler) admit(r *http.Request, of *request) (x *exchange, leave func(), err error) {
	caller, err := filters.GetAuthorizerAttributes(r.Context())
	if err != nil {
		return nil, nil, fmt.Errorf("reading the attributes of the request: %w", err)
	}
	if err := onlyReads(r.Method, of); err != nil {
		return nil, nil, err
	}
	x = &exchange{request: of}
	if x.view, err = h.viewOf(r.Context(), of.view); err != nil {
		return nil, nil, err
	}
	if x.query, err = url.ParseQuery(of.url.RawQuery); err != nil {
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("the query cannot be read: %v", err))
	}
	if x.deadline, err = deadlineOf(x.query); err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	x.query.Del(deadlineParameter)
	if leave, err = h.gateway.EnterUser(caller.GetUser().GetName(), of.view, of.longRunning); err != nil {
		return nil, nil, err
	}
	if x.members, err = h.reachable(r.Context(), h.hub.Requests, caller, h.members(x.view)); err != nil {
		leave()
		return nil, nil, err
	}
	if len(x.members) == 0 {
		leave()
		return nil, nil, apierrors.NewForbidden(viewResource, of.view, errors.New(
			"it shows no member that you can reach: ask an administrator of the hub for get on clustergateways/proxy of the members that you need"))
	}
	return x, leave, nil
}

var viewResource = schema.GroupResource{Group: "cluster.core.oam.dev", Resource: "fleetviews/proxy"}

// selfReviews are callers' reviews of themselves, which are POSTs.
var selfReviews = []string{"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"}

func isSelfReview(info *apirequest.RequestInfo) bool {
	return info.IsResourceRequest && info.Verb == "create" && info.Subresource == "" && slices.Contains(selfReviews, info.Resource) &&
		(info.APIGroup == "authorization.k8s.io" || info.APIGroup == "authentication.k8s.io")
}

// writing are subresources that have effects, whatever their method is.
var writing = []string{"exec", "attach", "portforward", "proxy"}

func onlyReads(method string, of *request) error {
	reads := method == http.MethodGet || method == http.MethodPost && isSelfReview(of.info)
	if reads && !of.upgrade && !slices.Contains(writing, of.info.Subresource) {
		return nil
	}
	return readOnly(of.view, "a view of the fleet is read only")
}

// readOnly is a 405 that says how to reach one member.
func readOnly(view, reason string) error {
	err := failure(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, reason+
		": reach one member for this, with the kubeconfig that `gateway kubeconfig MEMBER` prints (/apis/cluster.core.oam.dev/v1alpha1/clustergateways/MEMBER/proxy)")
	err.ErrStatus.Details = &metav1.StatusDetails{Group: "cluster.core.oam.dev", Kind: viewv1alpha1.Resource, Name: view}
	return err
}

// dispatch dispatches the request by its kind.
func (h *Handler) dispatch(w http.ResponseWriter, r *http.Request, x *exchange) error {
	info := x.info
	switch {
	case r.Method == http.MethodPost:
		return h.review(w, r, x)
	case !info.IsResourceRequest:
		return h.describe(w, r, x)
	case info.Verb == "watch":
		return h.watch(w, r, x)
	case info.Verb == "list":
		return h.list(w, r, x)
	case info.Subresource != "":
		return h.subresource(w, r, x)
	}
	return h.get(w, r, x)
}

func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if p, ok := parsedFrom(r.Context()); ok && p.request != nil && isDiscovery(p.request.url.Path) && apierrors.IsForbidden(err) {
		// Clients begin with discovery, and show only the plain text of a refusal there.
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	responsewriters.RespondWithError(w, r, err, h.serializer)
}

// setBody sets the body of a request that the gateway created.
func setBody(r *http.Request, body []byte) {
	r.Body, r.ContentLength, r.TransferEncoding = http.NoBody, 0, nil
	if body != nil {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
}
