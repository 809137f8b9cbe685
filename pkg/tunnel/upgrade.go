// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// UpgradeProtocol is the token in the Upgrade header with which an agent requests a session. Its
// number changes with incompatible changes of the protocol.
const UpgradeProtocol = "fleetgate-tunnel/1"

// upgradeWriteTime limits the writing of the 101 response.
const upgradeWriteTime = 10 * time.Second

// UpgradeHandler accepts the member's sessions as upgraded HTTP/1.1 requests, as SPEC.md specifies.
// It returns when the session has ended. It refuses with a Kubernetes Status in JSON. It is
// responsible only for the protocol: the caller has authenticated the agent, verified that it is
// the member's, and treats the request as long-running, since the end of its context ends the
// session.
func (r *Registry) UpgradeHandler(member string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { r.ServeUpgrade(w, req, member, Credential{}) })
}

// ServeUpgrade is UpgradeHandler for an agent whose credential is reviewed during the session.
func (r *Registry) ServeUpgrade(w http.ResponseWriter, req *http.Request, member string, c Credential) {
	if conn := r.upgrade(w, req, member); conn != nil {
		r.serveUpgraded(req.Context(), member, conn, c)
	}
}

// upgrade takes over the request's connection. It returns nil if it has refused.
func (r *Registry) upgrade(w http.ResponseWriter, req *http.Request, member string) net.Conn {
	if refusal := r.refuseUpgrade(member, req); refusal != nil {
		writeStatus(w, refusal)
		return nil
	}
	conn, err := hijack(w, UpgradeProtocol)
	if err != nil {
		writeStatus(w, refusalOf(http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error()))
		return nil
	}
	return conn
}

// serveUpgraded serves a session to its end.
func (r *Registry) serveUpgraded(ctx context.Context, member string, conn net.Conn, c Credential) {
	if err := r.ServeReviewed(ctx, member, conn, c); err != nil {
		klog.FromContext(ctx).V(2).Info("Tunnel session ended", "member", member, "reason", err.Error())
	}
}

// refuseRequest returns why the request is no request for the protocol, or nil.
func refuseRequest(req *http.Request, protocol string) *metav1.Status {
	switch {
	case req.ProtoMajor != 1 || req.ProtoMinor != 1:
		return refusalOf(http.StatusHTTPVersionNotSupported, metav1.StatusReasonBadRequest, "a tunnel needs an HTTP/1.1 request, this one is "+req.Proto)
	case req.Method != http.MethodPost:
		return refusalOf(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "a tunnel is opened by POST, not by "+req.Method)
	case !hasToken(req.Header, "Connection", "upgrade"), !hasToken(req.Header, "Upgrade", protocol):
		return refusalOf(http.StatusUpgradeRequired, metav1.StatusReasonBadRequest, "a tunnel needs the headers Connection: Upgrade and Upgrade: "+protocol)
	case req.ContentLength != 0:
		return refusalOf(http.StatusBadRequest, metav1.StatusReasonBadRequest, "a tunnel's request has no body")
	}
	return nil
}

// refuseUpgrade returns why the member gets no session, or nil.
func (r *Registry) refuseUpgrade(member string, req *http.Request) *metav1.Status {
	if refusal := refuseRequest(req, UpgradeProtocol); refusal != nil {
		return refusal
	}
	err := r.admits(member)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrTooManySessions):
		return refusalOf(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, err.Error()+": another agent serves the same member")
	}
	return refusalOf(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, err.Error())
}

// hijack responds 101 and takes over the connection.
func hijack(w http.ResponseWriter, protocol string) (net.Conn, error) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, fmt.Errorf("taking over the connection: %w", err)
	}
	response := "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + protocol + "\r\n\r\n"
	// The server's deadlines are for a request; the session has its own.
	_ = conn.SetDeadline(time.Now().Add(upgradeWriteTime))
	_, err = io.WriteString(conn, response)
	_ = conn.SetDeadline(time.Time{})
	if err != nil {
		// The client has disconnected: the session that starts on it ends at once.
		_ = conn.Close()
	}
	return readAhead(conn, buffered.Reader), nil
}

// readAhead returns the connection with the bytes that a buffered reader has already read.
func readAhead(conn net.Conn, buffered *bufio.Reader) net.Conn {
	n := buffered.Buffered()
	if n == 0 {
		return conn
	}
	peeked, _ := buffered.Peek(n)
	return &aheadConn{Conn: conn, peeked: slices.Clone(peeked)}
}

// aheadConn reads the buffered bytes before it reads the connection.
type aheadConn struct {
	net.Conn
	peeked []byte
}

func (c *aheadConn) Read(p []byte) (int, error) {
	if len(c.peeked) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.peeked)
	c.peeked = c.peeked[n:]
	return n, nil
}

// hasToken looks for a token in a header that is a list. HTTP compares tokens without case.
func hasToken(h http.Header, name, token string) bool {
	for _, line := range h.Values(name) {
		for part := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(part), token) {
				return true
			}
		}
	}
	return false
}

func refusalOf(code int, reason metav1.StatusReason, message string) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Code:     int32(code),
		Reason:   reason,
		Message:  message,
	}
}

func writeStatus(w http.ResponseWriter, status *metav1.Status) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	switch status.Code {
	case http.StatusUpgradeRequired:
		h.Set("Connection", "Upgrade")
		h.Set("Upgrade", UpgradeProtocol)
	case http.StatusMethodNotAllowed:
		h.Set("Allow", http.MethodPost)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		h.Set("Retry-After", "1")
	}
	w.WriteHeader(int(status.Code))
	// A client that has disconnected does not need the rest.
	_ = json.NewEncoder(w).Encode(status)
}
