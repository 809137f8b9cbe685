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

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// ReasonBadGateway is the reason of a 502: the member was reached, but its reply is not usable.
const ReasonBadGateway metav1.StatusReason = "BadGateway"

// reasonUnreachable is the reason of a 502 in plain text (see inText). For 503 and 504, clients print only
// sentences of their own.
const reasonUnreachable metav1.StatusReason = "MemberUnreachable"

const retryAfterSeconds = 1

var proxyResource = schema.GroupResource{Group: "cluster.core.oam.dev", Resource: "clustergateways/proxy"}

// failure is a Status that names the member, says which hop failed and, if a retry makes sense,
// after how many seconds.
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

// errClientGone means that the caller no longer waits for the reply.
var errClientGone = errors.New("the caller has gone")

// errStopping is the cause with which a stopping gateway ends long-running requests.
var errStopping = errors.New("the gateway is stopping")

// disconnected is the error for a member without a connected agent. If the agent is expected to
// reconnect, the reply has Retry-After: client-go then retries up to ten times, once a second.
// Otherwise the client is not told to retry; clients that begin with discovery get a format that
// they print.
func (h *Handler) disconnected(request *Request) *apierrors.StatusError {
	message := fmt.Sprintf("member %q is not connected: its agent has no tunnel to this hub", request.Member)
	if h.mayReconnect(request.Member) {
		return unavailable(request.Member, message)
	}
	return noRetry(request, message)
}

// unresponsive is the error for a member whose agent has a tunnel but did not respond to a probe.
// When it will respond is unknown.
func unresponsive(request *Request) *apierrors.StatusError {
	return noRetry(request, fmt.Sprintf("member %q does not respond: its agent has a tunnel to this hub, but it did not respond to a probe", request.Member))
}

// noRetry is the error for a member that is not expected to recover soon.
func noRetry(request *Request, message string) *apierrors.StatusError {
	if describesMember(request) {
		return failure(request.Member, http.StatusBadGateway, reasonUnreachable, 0, message)
	}
	return failure(request.Member, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, 0, message)
}

// mayReconnect is true if the agent of a disconnected member may reconnect within seconds. A gateway
// that has just started expects all agents, except those whose last heartbeat on the hub is too
// old.
func (h *Handler) mayReconnect(name string) bool {
	if member, known := h.config.Members.Get(name); known {
		if _, unreachable := member.SilentSince(); unreachable {
			return false
		}
	}
	return h.config.Liveness.Expected(name)
}

// failureOf turns an error of a request to the member into a Status. The error's text may come from a
// member, so its length is limited.
func (h *Handler) failureOf(ctx context.Context, request *Request, err error) error {
	member := request.Member
	var status *apierrors.StatusError
	var certificate *tls.CertificateVerificationError
	var network net.Error
	text := untrusted.Excerpt(err.Error(), 512)
	switch {
	case errors.As(err, &status):
		return status
	case errors.Is(err, errUnresponsive), errors.Is(err, h.config.Unresponsive):
		return unresponsive(request)
	case errors.Is(err, h.config.NotConnected):
		return h.disconnected(request)
	case errors.Is(context.Cause(ctx), errRightLost):
		return apierrors.NewForbidden(proxyResource, member, context.Cause(ctx))
	case errors.Is(context.Cause(ctx), errStopping):
		return unavailable(member, "the gateway is stopping: retry")
	case errors.Is(err, errForeignIdentity):
		return failure(member, http.StatusInternalServerError, metav1.StatusReasonInternalError, 0, text)
	case errors.Is(err, errCredential):
		return unavailable(member, fmt.Sprintf("the gateway cannot authenticate to member %q yet: %s", member, text))
	case errors.Is(err, errClientGone), errors.Is(err, context.Canceled) && ctx.Err() != nil:
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
