// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ReasonBadGateway is the reason of a 502: the member was reached, and did not
// answer as a member should.
const ReasonBadGateway metav1.StatusReason = "BadGateway"

// reasonAway is the reason of a 502 that is told in plain text (see inText): of 503 and 504
// clients tell sentences of their own only.
const reasonAway metav1.StatusReason = "MemberAway"

const retryAfterSeconds = 1

var proxyResource = schema.GroupResource{Group: "cluster.core.oam.dev", Resource: "clustergateways/proxy"}

// failure is a Status that names the member, says which hop failed and, if the
// caller does well to ask again, when.
func failure(member string, code int32, reason metav1.StatusReason, retryAfter int32, message string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    code,
		Reason:  reason,
		Message: message,
		Details: &metav1.StatusDetails{
			Group: proxyResource.Group, Kind: "clustergateways", Name: member, RetryAfterSeconds: retryAfter,
		},
	}}
}

func unavailable(member, message string) *apierrors.StatusError {
	return failure(member, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, retryAfterSeconds, message)
}

func tooMany(member, message string) *apierrors.StatusError {
	return failure(member, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, retryAfterSeconds, message)
}

func badGateway(member, message string) *apierrors.StatusError {
	return failure(member, http.StatusBadGateway, ReasonBadGateway, 0, message)
}

// errClientGone means that nobody waits for the reply.
var errClientGone = errors.New("the caller has gone")

// errStopping is the cause with which the gateway ends long requests.
var errStopping = errors.New("the gateway is stopping")

// away answers for a member without an agent. Who is expected back is worth another try:
// client-go makes ten, one for each second, of what says Retry-After. Who is not is told
// once, to clients that begin with discovery in a form that they pass on.
func (h *Handler) away(request *Request) *apierrors.StatusError {
	message := fmt.Sprintf("member %q is not connected: its agent has no tunnel to this hub", request.Member)
	if h.mayComeBack(request.Member) {
		return unavailable(request.Member, message)
	}
	return toldOnce(request, message)
}

// standsStill answers for a member whose agent has a tunnel, and gave no sign of life when it
// was asked. Nobody knows when it will.
func standsStill(request *Request) *apierrors.StatusError {
	return toldOnce(request, fmt.Sprintf("member %q does not answer: its agent has a tunnel to this hub, and gave no sign of life when it was asked", request.Member))
}

// toldOnce answers for who will not come back soon.
func toldOnce(request *Request, message string) *apierrors.StatusError {
	if describesMember(request) {
		return failure(request.Member, http.StatusBadGateway, reasonAway, 0, message)
	}
	return failure(request.Member, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, 0, message)
}

// mayComeBack says that a member without an agent may be back in seconds. A gateway that has
// just begun expects all, but not those of whom the hub has heard nothing for longer.
func (h *Handler) mayComeBack(name string) bool {
	if member, known := h.members.Get(name); known {
		if _, silent := member.SilentSince(); silent {
			return false
		}
	}
	return h.expected(name)
}

// failureOf turns what went wrong on the way to the member into a Status. The
// error's text may come from a member, so it is bounded.
func (h *Handler) failureOf(ctx context.Context, request *Request, err error) error {
	member := request.Member
	var status *apierrors.StatusError
	var certificate *tls.CertificateVerificationError
	var network net.Error
	text := Printable(err.Error(), 512)
	switch {
	case errors.As(err, &status):
		return status
	case h.silent != nil && errors.Is(err, h.silent):
		return standsStill(request)
	case h.notConnected != nil && errors.Is(err, h.notConnected):
		return h.away(request)
	case errors.Is(context.Cause(ctx), errRightLost):
		return apierrors.NewForbidden(proxyResource, member, context.Cause(ctx))
	case errors.Is(context.Cause(ctx), errStopping):
		return unavailable(member, "the gateway is stopping: ask again")
	case errors.Is(err, errForeignIdentity):
		return failure(member, http.StatusInternalServerError, metav1.StatusReasonInternalError, 0, text)
	case errors.Is(err, errCredential):
		return unavailable(member, fmt.Sprintf("the gateway cannot prove itself to member %q yet: %s", member, text))
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return errClientGone
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return failure(member, http.StatusGatewayTimeout, metav1.StatusReasonTimeout, 0,
			fmt.Sprintf("member %q did not answer in time: %s", member, text))
	case errors.As(err, &certificate):
		return badGateway(member, fmt.Sprintf(
			"the certificate of member %q's API server does not match the CA that came with the gateway's token: %s", member, text))
	}
	return badGateway(member, fmt.Sprintf("the connection to member %q failed: %s", member, text))
}
