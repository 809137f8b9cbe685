// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/klog/v2"

	"fleetgate.io/fleetgate/pkg/apiserver"
	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
	"fleetgate.io/fleetgate/test/support/bomb"
)

func oneMember(t *testing.T, options ...option) (*gateway, *member) {
	t.Helper()
	m := newMember(t, http.HandlerFunc(echo))
	return newGateway(t, map[string]*member{"m1": m}, options...), m
}

func TestProxy_ForwardsAsCaller(t *testing.T) {
	g, m := oneMember(t)
	res := g.do(http.MethodPost, prefix+"m1/proxy/api/v1/namespaces/a/configmaps?dryRun=All&fieldManager=x", "jane",
		strings.NewReader(`{"a":1}`), header("X-Remote-Group", "devs", "system:authenticated", "ops"),
		header("Content-Type", "application/json"))
	got := seenBy(t, res)
	if want := "/api/v1/namespaces/a/configmaps?dryRun=All&fieldManager=x"; got.URI != want {
		t.Errorf("got %s, want %s", got.URI, want)
	}
	if got.Body != `{"a":1}` {
		t.Errorf("got body %s", got.Body)
	}
	if got.Proto != "HTTP/2.0" {
		t.Errorf("got %s, want HTTP/2", got.Proto)
	}
	want := map[string][]string{
		"Impersonate-User": {"jane"}, "Impersonate-Group": {"devs", "ops"}, "Authorization": {"Bearer token-1"},
	}
	for name, values := range want {
		if diff := cmp.Diff(values, got.Header[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name := range got.Header {
		if strings.HasPrefix(name, "X-Remote-") {
			t.Errorf("the member got %s", name)
		}
	}
	if m.asked.Load() != 1 {
		t.Errorf("the agent got %d requests, want once", m.asked.Load())
	}
}

func TestProxy_KeepsPathAndQuery(t *testing.T) {
	g, _ := oneMember(t)
	for path, want := range map[string]string{
		"m1/proxy":              "/",
		"m1/proxy/":             "/",
		"m1/proxy/healthz":      "/healthz",
		"m1/proxy/api/v1/pods/": "/api/v1/pods/",
		"m1/proxy/api/v1/namespaces/a/services/https%3Aname%3Aport/proxy/x%20y?q=%zz&b=;": "/api/v1/namespaces/a/services/https%3Aname%3Aport/proxy/x%20y?q=%zz&b=;",
	} {
		if got := seenBy(t, g.do(http.MethodGet, prefix+path, "jane", nil)).URI; got != want {
			t.Errorf("%s: the member got %s, want %s", path, got, want)
		}
	}
}

func TestProxy_RefusesAmbiguousPaths(t *testing.T) {
	g, _ := oneMember(t)
	for _, path := range []string{
		"m1/proxy/api/v1/namespaces/a/../../nodes",
		"m1/proxy/api/v1/%2e%2e/x",
		"m1/proxy/api/v1/x%2fy",
		"m1/proxy//api",
		"m1/proxy/api//v1",
		"m1/proxy/api/v1/x%00",
		"m1/proxy/api/v1/x%5cy",
		"m1/%70roxy/api",
		"m1/proxy/api/./v1",
	} {
		_, _, res := g.raw("GET " + prefix + path + " HTTP/1.1\r\nHost: h\r\nX-Remote-User: jane\r\n\r\n")
		if res.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: got %d, want 400", path, res.StatusCode)
		}
	}
}

func TestProxy_OtherOuterPathsReachNoMember(t *testing.T) {
	g, m := oneMember(t)
	for _, path := range []string{
		"/apis/cluster.core.oam.dev/v1alpha1/namespaces/mine/clustergateways/m1/proxy/version",
		"/apis/cluster.core.oam.dev/v1alpha1/watch/clustergateways/m1/proxy/version",
		"/apis/cluster.core.oam.dev/v1alpha1/proxy/clustergateways/m1/proxy/version",
		"//apis/cluster.core.oam.dev/v1alpha1/clustergateways/m1/proxy/version",
		"/apis/cluster.core.oam.dev/v1alpha1/clustergateways//m1/proxy/version",
		"/apis/cluster.core.oam.dev/v1alpha1/clustergateways/m1/health/proxy/api",
	} {
		_, _, res := g.raw("GET " + path + " HTTP/1.1\r\nHost: h\r\nX-Remote-User: jane\r\n\r\n")
		if res.StatusCode < 300 {
			t.Errorf("%s: got %d", path, res.StatusCode)
		}
	}
	if m.dials.Load() != 0 {
		t.Error("a request reached the member")
	}
}

func TestProxy_ConnectionHeaderCannotRemoveIdentity(t *testing.T) {
	g, _ := oneMember(t)
	for name, lines := range map[string]string{
		"nominated":            "Connection: Impersonate-User, Impersonate-Group, Authorization",
		"nominated twice":      "Connection: impersonate-user\r\nconnection: Authorization, impersonate-group, X-Remote-User",
		"by TE and Trailer":    "Connection: TE, Impersonate-User\r\nTE: trailers\r\nTrailer: Impersonate-User",
		"keep-alive as a name": "Connection: keep-alive, Impersonate-User\r\nKeep-Alive: timeout=5",
	} {
		t.Run(name, func(t *testing.T) {
			_, _, res := g.raw("GET " + prefix + "m1/proxy/api HTTP/1.1\r\nHost: h\r\n" +
				"X-Remote-User: jane\r\nX-Remote-Group: devs\r\n" + lines + "\r\n\r\n")
			got := seenBy(t, res)
			if diff := cmp.Diff([]string{"jane"}, got.Header["Impersonate-User"]); diff != "" {
				t.Errorf("user (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"devs"}, got.Header["Impersonate-Group"]); diff != "" {
				t.Errorf("groups (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"Bearer token-1"}, got.Header["Authorization"]); diff != "" {
				t.Errorf("token (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProxy_RemovesIdentityHeadersOfCaller(t *testing.T) {
	g, _ := oneMember(t)
	_, _, res := g.raw("GET " + prefix + "m1/proxy/api HTTP/1.1\r\nHost: h\r\nX-Remote-User: jane\r\n" +
		"Cookie: a=b\r\nImpersonate_User: root\r\nX-Remote-Extra-Scopes: all\r\nX-Remote-Custom: x\r\n" +
		"X-Forwarded-For: 1.2.3.4\r\nForwarded: for=1.2.3.4\r\nProxy-Authorization: Basic x\r\n" +
		"Sec-WebSocket-Protocol: v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.YWJj\r\n\r\n")
	got := seenBy(t, res)
	for _, name := range []string{"Cookie", "Impersonate_User", "X-Remote-Extra-Scopes", "X-Remote-Custom", "X-Forwarded-For", "Forwarded", "Proxy-Authorization"} {
		if values, ok := got.Header[name]; ok {
			t.Errorf("the member got %s: %v", name, values)
		}
	}
	if diff := cmp.Diff([]string{"v5.channel.k8s.io"}, got.Header["Sec-Websocket-Protocol"]); diff != "" {
		t.Errorf("subprotocols (-want +got):\n%s", diff)
	}
}

func TestProxy_RefusesSystemMastersWithRemedy(t *testing.T) {
	g, m := oneMember(t)
	res := g.do(http.MethodGet, prefix+"m1/proxy/version", "root", nil, header("X-Remote-Group", "system:masters"))
	wantCode(t, res, http.StatusForbidden)
	if got := statusOf(t, res); got.Reason != metav1.StatusReasonForbidden || !strings.Contains(got.Message, "use an ordinary user") {
		t.Errorf("got %s: %s", got.Reason, got.Message)
	}
	if m.dials.Load() != 0 || m.asked.Load() != 0 {
		t.Error("the request reached the member")
	}
}

func TestProxy_ForbiddenDiscoveryIsPlainText(t *testing.T) {
	g, m := oneMember(t)
	for _, path := range []string{"m1/proxy/api", "m1/proxy/apis"} {
		res := g.do(http.MethodGet, prefix+path, "root", nil, header("X-Remote-Group", "system:masters"))
		wantCode(t, res, http.StatusForbidden)
		if got := text(t, res); !strings.Contains(res.Header.Get("Content-Type"), "text/plain") || !strings.Contains(got, "use an ordinary user") || strings.Contains(got, "{") {
			t.Errorf("got %s: %s", res.Header.Get("Content-Type"), got)
		}
	}
	m.disconnect()
	res := g.do(http.MethodGet, prefix+"m1/proxy/api", "jane", nil)
	wantCode(t, res, http.StatusServiceUnavailable)
	_ = statusOf(t, res)
}

func TestProxy_UnauthorizedCallerLearnsNothingAboutMembers(t *testing.T) {
	g, m := oneMember(t)
	g.allowOnly(func(a authorizer.Attributes) bool { return a.GetName() == "other" })
	for _, name := range []string{"m1", "no-such-member"} {
		wantCode(t, g.do(http.MethodGet, prefix+name+"/proxy/version", "jane", nil), http.StatusForbidden)
	}
	res := g.do(http.MethodGet, prefix+"other/proxy/version", "jane", nil)
	wantCode(t, res, http.StatusNotFound)
	if got := statusOf(t, res); got.Reason != metav1.StatusReasonNotFound || got.Details.Name != "other" {
		t.Errorf("got %+v", got)
	}
	if m.dials.Load() != 0 {
		t.Error("a request reached a member")
	}
}

func TestProxy_DisconnectedMemberIsUnavailableAtOnce(t *testing.T) {
	g, m := oneMember(t)
	m.disconnect()
	for _, when := range []string{"before the agent knows the caller", "after"} {
		res := g.do(http.MethodGet, prefix+"m1/proxy/version", "jane", nil)
		wantCode(t, res, http.StatusServiceUnavailable)
		if res.Header.Get("Retry-After") == "" {
			t.Errorf("%s: there is no Retry-After", when)
		}
		if got := statusOf(t, res); got.Reason != metav1.StatusReasonServiceUnavailable || !strings.Contains(got.Message, "not connected") {
			t.Errorf("%s: got %s: %s", when, got.Reason, got.Message)
		}
		m.connected.Store(true)
		wantCode(t, g.do(http.MethodGet, prefix+"m1/proxy/version", "jane", nil), http.StatusOK)
		m.disconnect()
	}
}

// reconnecting is the Liveness of members whose reconnection a test expects.
type reconnecting struct {
	connected
	expected *atomic.Bool
}

func (r reconnecting) Expected(string) bool { return r.expected.Load() }

func TestProxy_LongDisconnectedMemberHasNoRetryAndPlainText(t *testing.T) {
	m := newMember(t, http.HandlerFunc(echo))
	var expected atomic.Bool
	g := newGateway(t, map[string]*member{"m1": m}, func(c *apiserver.Config) {
		c.Liveness = reconnecting{expected: &expected}
	})
	m.disconnect()
	const sentence = `member "m1" is not connected: its agent has no tunnel to this hub`
	for _, path := range []string{"/api", "/apis", "/version", "/openapi/v3"} {
		res := g.do(http.MethodGet, prefix+"m1/proxy"+path, "jane", nil)
		wantCode(t, res, http.StatusBadGateway)
		if got := text(t, res); got != sentence+"\n" || !strings.Contains(res.Header.Get("Content-Type"), "text/plain") || res.Header.Get("Retry-After") != "" {
			t.Errorf("%s: got %s after %q: %s", path, res.Header.Get("Content-Type"), res.Header.Get("Retry-After"), got)
		}
	}
	for _, again := range []bool{false, true} {
		expected.Store(again)
		res := g.do(http.MethodGet, prefix+"m1/proxy/api/v1/namespaces", "jane", nil)
		wantCode(t, res, http.StatusServiceUnavailable)
		if got := statusOf(t, res); got.Message != sentence || (res.Header.Get("Retry-After") == "1") != again {
			t.Errorf("expected to reconnect: %v, got %q, to be retried after %q", again, got.Message, res.Header.Get("Retry-After"))
		}
	}
}

// A stopping gateway relayed a connection for another one. The other one used it for further
// requests until it was cut in the middle of one.
// changing is the Liveness of members whose last session change is known.
type changing struct {
	connected
	last *atomic.Pointer[time.Time]
}

func (c changing) LastSessionChange(string) time.Time {
	if at := c.last.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

func TestProxy_ConnectionFromBeforeTunnelLossIsNotReused(t *testing.T) {
	var lastSessionChange atomic.Pointer[time.Time]
	g, m := oneMember(t, func(c *apiserver.Config) {
		c.Liveness = changing{last: &lastSessionChange}
	})
	ask := func() {
		t.Helper()
		wantCode(t, g.do(http.MethodGet, prefix+"m1/proxy/api/v1/pods", "jane", nil), http.StatusOK)
	}
	ask()
	ask()
	before := m.dials.Load()
	now := time.Now()
	lastSessionChange.Store(&now)
	ask()
	if got := m.dials.Load(); got != before+1 {
		t.Errorf("%d connections were made after a way was lost, want one", got-before)
	}
	ask()
	if got := m.dials.Load(); got != before+1 {
		t.Errorf("%d connections were made for the requests after that", got-before-1)
	}
}

func TestProxy_QuotesRefusalOfAgent(t *testing.T) {
	g, m := oneMember(t)
	m.agentAnswers(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if want := `{"user":"jane","groups":[]}`; string(body) != want || r.URL.Path != "/v1/impersonations" {
			t.Errorf("the agent got %s %s", r.URL.Path, body)
		}
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(map[string]string{"message": "not\nin the chart"})
	})
	res := g.do(http.MethodGet, prefix+"m1/proxy/version", "jane", nil)
	wantCode(t, res, http.StatusForbidden)
	if got := statusOf(t, res); !strings.Contains(got.Message, "not in the chart") {
		t.Errorf("got %s", got.Message)
	}
	if m.dials.Load() != 0 {
		t.Error("the request reached the member")
	}
}

func TestGrants_AreRequestedOncePerCallerAndSession(t *testing.T) {
	g, m := oneMember(t)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { _ = text(t, g.do(http.MethodGet, prefix+"m1/proxy/version", "jane", nil)) })
	}
	wg.Wait()
	if got := m.asked.Load(); got != 1 {
		t.Errorf("the agent got %d requests, want once", got)
	}
	_ = text(t, g.do(http.MethodGet, prefix+"m1/proxy/version", "jane", nil, header("X-Remote-Group", "devs")))
	if got := m.asked.Load(); got != 2 {
		t.Errorf("the agent got %d requests after a new group, want twice", got)
	}
	m.disconnect()
	m.connected.Store(true)
	for m.asked.Load() < 3 {
		// The stream's reader notices the broken stream a moment later.
		if t.Context().Err() != nil {
			t.Fatal("the agent got no request in a new session")
		}
		_ = text(t, g.do(http.MethodGet, prefix+"m1/proxy/version", "jane", nil))
	}
}

func TestProxy_ExecRequiresCreate(t *testing.T) {
	g, m := oneMember(t)
	g.allowOnly(func(a authorizer.Attributes) bool { return a.GetVerb() == "get" && a.GetUser().GetName() == "viewer" })
	wantCode(t, g.do(http.MethodGet, prefix+"m1/proxy/api/v1/namespaces/a/pods", "viewer", nil), http.StatusOK)
	wantCode(t, g.do(http.MethodGet, prefix+"m1/proxy/api/v1/namespaces/a/pods/p/log?follow=true", "viewer", nil), http.StatusOK)
	dials := m.dials.Load()
	for _, lines := range []string{
		"Connection: Upgrade\r\nUpgrade: websocket",
		"Connection: keep-alive, upgrade\r\nUpgrade: SPDY/3.1",
		"Upgrade: websocket",
	} {
		_, _, res := g.raw("GET " + prefix + "m1/proxy/api/v1/namespaces/a/pods/p/exec?command=id HTTP/1.1\r\nHost: h\r\nX-Remote-User: viewer\r\n" + lines + "\r\n\r\n")
		if res.StatusCode != http.StatusForbidden {
			t.Errorf("%q: got %d, want 403", lines, res.StatusCode)
		}
	}
	if m.dials.Load() != dials {
		t.Error("a refused upgrade reached the member")
	}
}

func TestProxy_DeleteOfCollectionRequiresDeletecollection(t *testing.T) {
	g, _ := oneMember(t)
	g.allowOnly(func(a authorizer.Attributes) bool { return a.GetVerb() == "delete" })
	wantCode(t, g.do(http.MethodDelete, prefix+"m1/proxy/api/v1/namespaces/a/pods/p", "jane", nil), http.StatusOK)
	res := g.do(http.MethodDelete, prefix+"m1/proxy/api/v1/namespaces/a/pods", "jane", nil)
	wantCode(t, res, http.StatusForbidden)
	if got := statusOf(t, res).Message; !strings.Contains(got, `cannot deletecollection resource "clustergateways/proxy"`) {
		t.Errorf("got %s", got)
	}
}

func TestProxy_RefusesMethodWithoutVerb(t *testing.T) {
	g, m := oneMember(t)
	for _, method := range []string{http.MethodOptions, http.MethodTrace, "PROPFIND"} {
		wantCode(t, g.do(method, prefix+"m1/proxy/version", "jane", nil), http.StatusMethodNotAllowed)
	}
	if m.dials.Load() != 0 {
		t.Error("a request reached the member")
	}
}

func TestProxy_DoesNotFollowRedirects(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer elsewhere.Close()
	g, m := oneMember(t)
	for code := 301; code <= 308; code++ {
		if code == http.StatusNotModified || code == 305 || code == 306 {
			continue
		}
		for _, to := range []string{elsewhere.URL + "/x", "/same/host"} {
			m.serve(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/same/host" {
					t.Error("the redirect was followed")
				}
				w.Header().Set("Location", to)
				w.WriteHeader(code)
			})
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				res := g.do(method, prefix+"m1/proxy/version", "jane", nil)
				wantCode(t, res, http.StatusBadGateway)
				if res.Header.Get("Location") != "" {
					t.Error("the caller got the Location")
				}
			}
			_, _, res := g.raw("GET " + prefix + "m1/proxy/api HTTP/1.1\r\nHost: h\r\nX-Remote-User: jane\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			wantCode(t, res, http.StatusBadGateway)
		}
	}
}

func TestProxy_RefusedUpgradeIsNotHijacked(t *testing.T) {
	g, m := oneMember(t)
	var mu sync.Mutex
	var paths []string
	for _, code := range []int{http.StatusOK, http.StatusForbidden, http.StatusBadRequest} {
		m.serve(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			paths = append(paths, r.URL.Path)
			mu.Unlock()
			w.WriteHeader(code)
			_, _ = io.WriteString(w, "no")
		})
		conn, reader, res := g.raw("GET " + prefix + "m1/proxy/exec HTTP/1.1\r\nHost: h\r\nX-Remote-User: jane\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		wantCode(t, res, code)
		if got := text(t, res); got != "no" {
			t.Errorf("got %q", got)
		}
		// What follows on the connection is a request to the gateway with an authorization of its
		// own, and no data for the member.
		if _, err := io.WriteString(conn, "GET /smuggled HTTP/1.1\r\nHost: h\r\nX-Remote-User: jane\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if next, err := http.ReadResponse(reader, nil); err == nil && next.StatusCode != http.StatusNotFound {
			t.Errorf("the second request got %d", next.StatusCode)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for _, path := range paths {
		if path != "/exec" {
			t.Errorf("the member got %s", path)
		}
	}
}

const execRequest = "POST " + prefix + "m1/proxy/api/v1/namespaces/a/pods/p/exec HTTP/1.1\r\nHost: h\r\nX-Remote-User: jane\r\nContent-Length: 0\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n"

// switchProtocols answers execRequest as a member does, and takes its connection over.
func switchProtocols(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) {
	conn, brw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, nil, err
	}
	_, err = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n")
	return conn, brw, err
}

func TestProxy_UpgradePassesDataUnchanged(t *testing.T) {
	g, m := oneMember(t)
	m.serve(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Impersonate-User") != "jane" || r.ProtoMajor != 1 {
			t.Errorf("the member got %v over %s", r.Header, r.Proto)
		}
		conn, brw, err := switchProtocols(w)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		line, _ := brw.ReadString('\n')
		_, _ = io.WriteString(conn, "echo "+line)
	})
	conn, reader, res := g.raw(execRequest)
	wantCode(t, res, http.StatusSwitchingProtocols)
	if got := res.Header.Get("X-Stream-Protocol-Version"); got != "v4.channel.k8s.io" {
		t.Errorf("got protocol %q", got)
	}
	if _, err := io.WriteString(conn, "hello\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := reader.ReadString('\n'); err != nil || line != "echo hello\n" {
		t.Errorf("got %q, %v", line, err)
	}
}

func TestProxy_RefusesMemberWithWrongCA(t *testing.T) {
	m := newMember(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request reached the member") }))
	m.ca = newAuthority(t)
	g := newGateway(t, map[string]*member{"m1": m})
	res := g.do(http.MethodGet, prefix+"m1/proxy/version", "jane", nil)
	wantCode(t, res, http.StatusBadGateway)
	if got := statusOf(t, res).Message; !strings.Contains(got, "certificate") {
		t.Errorf("got %s", got)
	}
	_, _, res = g.raw("GET " + prefix + "m1/proxy/exec HTTP/1.1\r\nHost: h\r\nX-Remote-User: jane\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	wantCode(t, res, http.StatusBadGateway)
}

// An agent sends its member's CA. With this one, each handshake would keep a CPU of the gateway
// busy for a minute.
func TestProxy_RejectsCAThatIsExpensiveToVerify(t *testing.T) {
	m := newMember(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request reached the member") }))
	block, _ := pem.Decode(bomb.Authority(t))
	hostile, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	m.ca = &authority{t: t, cert: hostile}
	g := newGateway(t, map[string]*member{"m1": m})
	res := g.do(http.MethodGet, prefix+"m1/proxy/version", "jane", nil)
	wantCode(t, res, http.StatusServiceUnavailable)
	if got := statusOf(t, res).Message; !strings.Contains(got, "8192 bits in its RSA key") {
		t.Errorf("got %s", got)
	}
	if m.dials.Load() != 0 {
		t.Error("the member was dialed")
	}
}

func TestProxy_UsersShareOnePool(t *testing.T) {
	g, m := oneMember(t)
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			name := fmt.Sprintf("user-%d", worker%2)
			for range 100 {
				got := seenBy(t, g.do(http.MethodGet, prefix+"m1/proxy/version", name, nil, header("X-Remote-Group", "group-of-"+name)))
				if got.Header.Get("Impersonate-User") != name || got.Header.Get("Impersonate-Group") != "group-of-"+name {
					t.Errorf("the member saw %v for %s", got.Header, name)
					return
				}
			}
		})
	}
	wg.Wait()
	if got := m.dials.Load(); got > 8 {
		t.Errorf("%d connections for 800 requests: they were not shared", got)
	}
}

func TestProxy_TokenRotationKeepsConnections(t *testing.T) {
	g, m := oneMember(t)
	events := make(chan string)
	m.serve(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "true" {
			echo(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = http.NewResponseController(w).Flush()
		for event := range events {
			_, _ = io.WriteString(w, event+"\n")
			_ = http.NewResponseController(w).Flush()
		}
	})
	watch := g.do(http.MethodGet, prefix+"m1/proxy/api/v1/pods?watch=true", "jane", nil)
	wantCode(t, watch, http.StatusOK)
	lines := bufio.NewScanner(watch.Body)
	_ = seenBy(t, g.do(http.MethodGet, prefix+"m1/proxy/version", "jane", nil)) // Long-running requests have a connection of their own.
	dials := m.dials.Load()
	for i := range 10 {
		token := fmt.Sprintf("token-%d", i+2)
		m.setToken(token)
		got := seenBy(t, g.do(http.MethodGet, prefix+"m1/proxy/version", "jane", nil))
		if got.Header.Get("Authorization") != "Bearer "+token {
			t.Errorf("got %q after a rotation to %s", got.Header.Get("Authorization"), token)
		}
		event := fmt.Sprintf("event-%d", i)
		events <- event
		if !lines.Scan() || lines.Text() != event {
			t.Fatalf("got %q, want %s: %v", lines.Text(), event, lines.Err())
		}
	}
	close(events)
	if got := m.dials.Load(); got != dials {
		t.Errorf("%d new connections for 10 rotations", got-dials)
	}
}

func TestProxy_RetriesWithNewerToken(t *testing.T) {
	g, m := oneMember(t)
	m.serve(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer token-1" {
			m.setToken("token-2")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		echo(w, r)
	})
	wantCode(t, g.do(http.MethodGet, prefix+"m1/proxy/version", "jane", nil), http.StatusOK)
	m.setToken("token-1")
	if got := seenBy(t, g.do(http.MethodPost, prefix+"m1/proxy/version", "jane", strings.NewReader("a body"))).Body; got != "a body" {
		t.Errorf("the member got the body %q", got)
	}
	m.setToken("token-1")
	res := g.do(http.MethodPost, prefix+"m1/proxy/version", "jane", strings.NewReader(aLargeBody))
	wantCode(t, res, http.StatusServiceUnavailable)
	if got := statusOf(t, res).Message; !strings.Contains(got, "does not accept the gateway's token") {
		t.Errorf("got %s", got)
	}
}

// aLargeBody is larger than what the gateway keeps to send a request again.
var aLargeBody = strings.Repeat("x", 64<<10+1)

// shedding is an API server that refuses the first request of its first connection, as one does that
// stops: the request arrives after the GOAWAY was sent.
type shedding struct {
	t       *testing.T
	member  *member
	refused atomic.Int64
}

func (s *shedding) DialMember(ctx context.Context, _, target string) (net.Conn, error) {
	if target != "apiserver" || s.member.dials.Load() > 0 {
		return s.member.dial(ctx, target)
	}
	s.member.dials.Add(1)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", s.member.api.TLS)
	if err != nil {
		return nil, err
	}
	go s.serve(listener)
	var d net.Dialer
	return d.DialContext(ctx, "tcp", listener.Addr().String())
}

func (s *shedding) serve(listener net.Listener) {
	defer func() { _ = listener.Close() }()
	conn, err := listener.Accept()
	if err != nil {
		s.t.Errorf("accepting: %v", err)
		return
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		s.t.Errorf("reading the preface: %v", err)
		return
	}
	framer := http2.NewFramer(conn, conn)
	_ = framer.WriteSettings()
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				_ = framer.WriteSettingsAck()
			}
		case *http2.DataFrame:
			if frame.StreamEnded() {
				s.refused.Add(1)
				_ = framer.WriteGoAway(0, http2.ErrCodeNo, nil)
			}
		}
	}
}

func TestProxy_SendsBodyAgainWhenMemberShedsConnection(t *testing.T) {
	m := newMember(t, http.HandlerFunc(echo))
	api := &shedding{t: t, member: m}
	g := newGateway(t, map[string]*member{"m1": m}, func(c *apiserver.Config) { c.Dialer = api })
	got := seenBy(t, g.do(http.MethodPost, prefix+"m1/proxy/api/v1/namespaces/a/pods", "jane", strings.NewReader("a Pod")))
	if got.Body != "a Pod" || got.Header.Get("Impersonate-User") != "jane" {
		t.Errorf("the member got the body %q of %q", got.Body, got.Header.Get("Impersonate-User"))
	}
	if refused := api.refused.Load(); refused != 1 {
		t.Errorf("%d requests were refused, want 1", refused)
	}
}

func TestProxy_MemberWithoutCredentialIsUnavailable(t *testing.T) {
	g, m := oneMember(t)
	m.setToken("")
	res := g.do(http.MethodGet, prefix+"m1/proxy/version", "jane", nil)
	wantCode(t, res, http.StatusServiceUnavailable)
	if got := statusOf(t, res).Message; !strings.Contains(got, "cannot authenticate") {
		t.Errorf("got %s", got)
	}
}

// headersOfTheHub are headers that only the hub may set for its origin or itself.
var headersOfTheHub = []string{
	"Set-Cookie", "Set-Cookie2", "Www-Authenticate", "Proxy-Authenticate", "Alt-Svc", "Strict-Transport-Security", "Public-Key-Pins",
	"Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "X-Kubernetes-Pf-Flowschema-Uid",
	"Clear-Site-Data", "Refresh", "Nel", "Report-To", "Reporting-Endpoints", "Service-Worker-Allowed", "Sourcemap", "X-Sourcemap",
	"Link", "Location", "Content-Location", "Speculation-Rules", "Use-As-Dictionary", "Accept-Ch", "Origin-Agent-Cluster",
	"Cross-Origin-Opener-Policy", "Permissions-Policy", "Content-Security-Policy-Report-Only", "X-Frame-Options", "Server", "X-Of-Tomorrow",
}

func TestProxy_RemovesHeadersOfHostileReply(t *testing.T) {
	g, m := oneMember(t)
	for _, contentType := range []string{
		"text/html", "application/xhtml+xml", "image/svg+xml", "text/xml", "application/xml", "application/rss+xml; charset=utf-8",
		"multipart/x-mixed-replace; boundary=x", "application/pdf", "TEXT/HTML", "",
	} {
		m.serve(func(w http.ResponseWriter, _ *http.Request) {
			h := w.Header()
			for _, name := range headersOfTheHub {
				h.Set(name, "x")
			}
			h["Content-Type"] = []string{contentType}
			if contentType == "" {
				h["Content-Type"] = nil
			}
			h.Set("Content-Security-Policy", "script-src *")
			h.Set("X-Content-Type-Options", "x")
			h.Set("Audit-Id", "theirs")
			w.WriteHeader(http.StatusEarlyHints)
			_, _ = io.WriteString(w, "<svg xmlns='http://www.w3.org/2000/svg'><script>")
		})
		res := g.do(http.MethodGet, prefix+"m1/proxy/", "jane", nil)
		for _, name := range headersOfTheHub {
			if values := res.Header.Values(name); len(values) > 0 {
				t.Errorf("the caller got %s: %v", name, values)
			}
		}
		if got := res.Header.Values("Audit-Id"); len(got) != 1 || got[0] == "theirs" {
			t.Errorf("got Audit-Id %v", got)
		}
		if got := res.Header["Content-Security-Policy"]; len(got) != 1 || got[0] != "sandbox" {
			t.Errorf("%q is shown with the policy %v", contentType, got)
		}
		if res.Header.Get("X-Content-Type-Options") != "nosniff" || contentType != "" && res.Header.Get("Content-Type") != contentType {
			t.Errorf("%q came as %q, %v", contentType, res.Header.Get("Content-Type"), res.Header)
		}
	}
}

func TestProxy_PassesHeadersThatClientsNeed(t *testing.T) {
	g, m := oneMember(t)
	needed := map[string]string{
		"Content-Type": "application/com.github.proto-openapi.spec.v2@v1.0+protobuf", "Content-Encoding": "gzip", "Vary": "Accept",
		"Etag": `"abc"`, "Last-Modified": "Thu, 01 Jan 1970 00:00:00 GMT", "Warning": `299 - "v1beta1 is deprecated"`, "Retry-After": "7",
		"Date": "Thu, 01 Jan 1970 00:00:00 GMT", "Allow": "GET", "Content-Disposition": "attachment", "Content-Range": "bytes 0-1/2",
		"Accept-Ranges": "bytes", "X-Accepted-Stream-Protocol-Versions": "v4.channel.k8s.io",
	}
	m.serve(func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range needed {
			w.Header().Set(name, value)
		}
		_, _ = io.WriteString(w, "12")
	})
	res := g.do(http.MethodGet, prefix+"m1/proxy/openapi/v2", "jane", nil)
	for name, value := range needed {
		if got := res.Header.Get(name); got != value {
			t.Errorf("the caller got %s %q, want %q", name, got, value)
		}
	}
	if res.ContentLength != 2 {
		t.Errorf("the caller got a Content-Length of %d", res.ContentLength)
	}
}

func TestProxy_DropsInformationalRepliesAndTrailers(t *testing.T) {
	g, m := oneMember(t)
	m.serve(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Set-Cookie", "early")
		w.Header().Set("Trailer", "Set-Cookie")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Set-Cookie")
		_, _ = io.WriteString(w, "reply")
		w.Header().Set("Set-Cookie", "late")
		w.Header().Set(http.TrailerPrefix+"Alt-Svc", "late")
	})
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		early := 0
		res := g.do(method, prefix+"m1/proxy/api/v1/pods?watch=1", "jane", nil, func(r *http.Request) {
			*r = *r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
				Got1xxResponse: func(int, textproto.MIMEHeader) error { early++; return nil },
			}))
		})
		if got := text(t, res); got != "reply" {
			t.Errorf("got %q", got)
		}
		if early > 0 || len(res.Trailer) > 0 || res.Header.Get("Set-Cookie") != "" {
			t.Errorf("%s: the caller got %d replies before the reply, header %v and trailer %v", method, early, res.Header, res.Trailer)
		}
		if res.Header.Get("Audit-Id") == "" || res.Header.Get("Cache-Control") == "" {
			t.Errorf("%s: the gateway's own headers are gone: %v", method, res.Header)
		}
	}
}

// A compromised member could leave a second reply on a connection, for the next caller.
func TestProxy_UnrequestedReplyReachesNoCaller(t *testing.T) {
	g, m := oneMember(t)
	upgrade := "GET " + prefix + "m1/proxy/api/v1/namespaces/a/pods/p/exec HTTP/1.1\r\nHost: gateway.test\r\nX-Remote-User: %s\r\n" +
		"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
	m.serve(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstale")
	})
	_, _, res := g.raw(fmt.Sprintf(upgrade, "joe"))
	if got := text(t, res); got != "ok" {
		t.Errorf("got %q", got)
	}
	m.serve(echo)
	for range 5 {
		_, _, res := g.raw(fmt.Sprintf(upgrade, "jane"))
		if got := seenBy(t, res).Header.Get("Impersonate-User"); got != "jane" {
			t.Errorf("jane got the reply for %q", got)
		}
	}
}

// CVE-2023-44487: a client opens and resets streams as fast as it can.
func TestServer_RapidResetDoesNotBlockOthers(t *testing.T) {
	var present, peak atomic.Int64
	g, m := oneMember(t)
	m.serve(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Impersonate-User") == "hasty" {
			now := present.Add(1)
			defer present.Add(-1)
			for before := peak.Load(); now > before && !peak.CompareAndSwap(before, now); before = peak.Load() {
			}
			<-r.Context().Done()
			return
		}
		echo(w, r)
	})
	config := g.client.Transport.(*http.Transport).TLSClientConfig.Clone()
	config.NextProtos = []string{"h2"}
	conn, err := tls.Dial("tcp", g.address, config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, field := range [][2]string{
		{":method", "GET"}, {":scheme", "https"}, {":authority", "gateway.test"}, {":path", prefix + "m1/proxy/version"}, {"x-remote-user", "hasty"},
	} {
		if err := encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}); err != nil {
			t.Fatal(err)
		}
	}
	out := bufio.NewWriter(conn)
	_, _ = io.WriteString(out, http2.ClientPreface)
	framer := http2.NewFramer(out, nil)
	_ = framer.WriteSettings()
	const resets = 5000
	for stream := uint32(1); stream < 2*resets; stream += 2 {
		// The encoder and the peer share a dynamic table, so the first header block is sent again
		// unchanged.
		_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true})
		if err := framer.WriteRSTStream(stream, http2.ErrCodeCancel); err != nil {
			break // The server has closed the connection.
		}
	}
	_ = out.Flush()
	for range 20 {
		if got := seenBy(t, g.do(http.MethodGet, prefix+"m1/proxy/version", "jane", nil)).Header.Get("Impersonate-User"); got != "jane" {
			t.Errorf("got the reply for %q", got)
		}
	}
	if peak.Load() > clustergateway.DefaultMaxInFlightPerUser {
		t.Errorf("%d requests of one caller were in flight at once", peak.Load())
	}
}

func TestProxy_PassesForbiddenOfMember(t *testing.T) {
	g, m := oneMember(t)
	const message = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"pods is forbidden: User \"jane\" cannot list","reason":"Forbidden","code":403}`
	m.serve(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, message)
	})
	res := g.do(http.MethodGet, prefix+"m1/proxy/api/v1/pods", "jane", nil)
	wantCode(t, res, http.StatusForbidden)
	if got := text(t, res); got != message {
		t.Errorf("got %s", got)
	}
}

func TestLimits_OneMemberCannotUseAllCapacity(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	slow := newMember(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "true" {
			echo(w, r)
			return
		}
		started <- struct{}{}
		<-release
		echo(w, r)
	}))
	quick := newMember(t, http.HandlerFunc(echo))
	g := newGateway(t, map[string]*member{"slow": slow, "quick": quick},
		func(c *apiserver.Config) { c.MaxInFlightPerMember = 2 })
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if got := g.do(http.MethodGet, prefix+"slow/proxy/version", "jane", nil).StatusCode; got != http.StatusOK {
				t.Errorf("got %d", got)
			}
		})
		<-started
	}
	res := g.do(http.MethodGet, prefix+"slow/proxy/version", "jane", nil)
	wantCode(t, res, http.StatusTooManyRequests)
	if got := res.Header.Get("Retry-After"); got != "1" {
		t.Errorf("got Retry-After %q", got)
	}
	wantCode(t, g.do(http.MethodGet, prefix+"slow/proxy/api/v1/pods?watch=true", "jane", nil), http.StatusOK)
	wantCode(t, g.do(http.MethodGet, prefix+"quick/proxy/api", "jane", nil), http.StatusOK)
	close(release)
	wg.Wait()
}

// logs has all lines that libraries have logged. The process has only one klog, and stopped servers
// may still log a line, so it is set up once, before any server.
var logs lockedBuffer

func TestMain(m *testing.M) {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{"logtostderr": "false", "alsologtostderr": "false", "stderrthreshold": "FATAL"} {
		if err := flags.Set(name, value); err != nil {
			panic(err)
		}
	}
	klog.SetOutput(&logs)
	os.Exit(m.Run())
}

// verbose raises the log level until the test ends.
func verbose(t *testing.T, level string) {
	t.Helper()
	set := func(value string) {
		var v klog.Level
		if err := v.Set(value); err != nil {
			t.Fatal(err)
		}
	}
	set(level)
	t.Cleanup(func() { set("0") })
}

func TestProxy_LogsContainNoToken(t *testing.T) {
	const canary = "canary-in-a-coal-mine"
	verbose(t, "10")
	registry := prometheus.NewRegistry()
	g, m := oneMember(t, func(c *apiserver.Config) { c.Metrics = registry })
	m.setToken(canary)
	caller := header("Authorization", "Bearer "+canary)
	ok := seenBy(t, g.do(http.MethodGet, prefix+"m1/proxy/version", "jane", nil, caller))
	if ok.Header.Get("Authorization") != "Bearer "+canary {
		t.Fatal("the member did not get the canary")
	}
	var replies []string
	m.serve(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	replies = append(replies, text(t, g.do(http.MethodGet, prefix+"m1/proxy/version", "jane", nil, caller)))
	m.setCA(newAuthority(t))
	replies = append(replies, text(t, g.do(http.MethodGet, prefix+"m1/proxy/version", "jane", nil, caller)))
	m.disconnect()
	replies = append(replies, text(t, g.do(http.MethodGet, prefix+"m1/proxy/version", "jane", nil, caller)))
	replies = append(replies, text(t, g.do(http.MethodGet, prefix+"m1", "jane", nil)))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	klog.Flush()
	if logs.String() == "" {
		t.Error("nothing was logged: the test looks at nothing")
	}
	for _, where := range append(replies, logs.String(), fmt.Sprint(families)) {
		if strings.Contains(where, canary) {
			t.Errorf("the token is in: %.2000s", where)
		}
	}
	if keys := g.keys(); !strings.Contains(keys, "m1") || strings.Contains(keys, canary) {
		t.Errorf("connections and grants are kept by:\n%s", keys)
	}
}

// lockedBuffer is a buffer for concurrent writers.
type lockedBuffer struct {
	mu      sync.Mutex
	content bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.content.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.content.String()
}

// The log had an error for each watch that its caller ended.
func TestProxy_DisconnectingCallerIsNoErrorAndCutReplyIsVisible(t *testing.T) {
	g, m := oneMember(t)
	gone := make(chan struct{})
	m.serve(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "begun")
		_ = http.NewResponseController(w).Flush()
		if r.URL.Query().Get("cut") != "" {
			panic(http.ErrAbortHandler)
		}
		<-r.Context().Done()
		close(gone)
	})
	ctx, leave := context.WithCancel(t.Context())
	watch := g.do(http.MethodGet, prefix+"m1/proxy/api/v1/pods?watch=true&left=quietly", "jane", nil, func(r *http.Request) { *r = *r.WithContext(ctx) })
	wantCode(t, watch, http.StatusOK)
	leave()
	<-gone
	cut := g.do(http.MethodGet, prefix+"m1/proxy/api/v1/pods?cut=1", "jane", nil)
	if content, err := io.ReadAll(cut.Body); err == nil || string(content) != "begun" {
		t.Errorf("got %q and error %v of a reply that the member did not finish", content, err)
	}
	klog.Flush()
	for line := range strings.Lines(logs.String()) {
		if strings.Contains(line, "abort while handling") && strings.Contains(line, "left=quietly") {
			t.Errorf("logged: %s", line)
		}
	}
}

func TestShutdown_EndsWatchesAndFinishesShortRequests(t *testing.T) {
	g, m := oneMember(t)
	started, release := make(chan struct{}), make(chan struct{})
	m.serve(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "true" {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		close(started)
		<-release
		echo(w, r)
	})
	watch := g.do(http.MethodGet, prefix+"m1/proxy/api/v1/pods?watch=true", "jane", nil)
	wantCode(t, watch, http.StatusOK)
	var wg sync.WaitGroup
	wg.Go(func() {
		if got := g.do(http.MethodGet, prefix+"m1/proxy/version", "jane", nil).StatusCode; got != http.StatusOK {
			t.Errorf("got %d", got)
		}
	})
	<-started
	g.stop()
	_, _ = io.Copy(io.Discard, watch.Body)
	close(release)
	wg.Wait()
	g.awaitEnd()
}

// execEcho opens an upgraded connection to a member that echoes lines; say sends it one.
func execEcho(t *testing.T, g *gateway, m *member) (conn net.Conn, say func() error) {
	t.Helper()
	m.serve(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "true" {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		conn, brw, err := switchProtocols(w)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.Copy(conn, brw)
	})
	conn, reader, res := g.raw(execRequest)
	wantCode(t, res, http.StatusSwitchingProtocols)
	return conn, func() error {
		if _, err := io.WriteString(conn, "hello\n"); err != nil {
			return err
		}
		line, err := reader.ReadString('\n')
		if err == nil && line != "hello\n" {
			err = fmt.Errorf("got %q", line)
		}
		return err
	}
}

func TestShutdown_WaitsForExec(t *testing.T) {
	g, m := oneMember(t, func(c *apiserver.Config) { c.DrainTime = time.Minute })
	conn, say := execEcho(t, g, m)
	watch := g.do(http.MethodGet, prefix+"m1/proxy/api/v1/pods?watch=true", "jane", nil)
	wantCode(t, watch, http.StatusOK)
	g.stop()
	_, _ = io.Copy(io.Discard, watch.Body)
	if err := say(); err != nil {
		t.Errorf("exec in a server that stops: %v", err)
	}
	select {
	case err := <-g.done:
		t.Errorf("Run did not wait for exec: %v", err)
	default:
	}
	_ = conn.Close()
	g.awaitEnd()
}

func TestShutdown_EndsExecAfterDrainTime(t *testing.T) {
	g, m := oneMember(t, func(c *apiserver.Config) { c.DrainTime = time.Millisecond })
	_, say := execEcho(t, g, m)
	g.stop()
	g.awaitEnd()
	if err := say(); err == nil {
		t.Error("exec still works in a server that has stopped")
	}
}
