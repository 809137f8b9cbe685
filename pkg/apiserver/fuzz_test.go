// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"fleetgate.io/fleetgate/pkg/apiserver"
	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
)

// arrival is a request as a member got it.
type arrival struct {
	method, uri string
	header      http.Header
}

// question is a decision that the hub was asked for and allowed.
type question struct {
	user, group, verb, resource, subresource, namespace, name string
}

// ledger holds the hub's decisions by the audit ID of their request, and requests that arrived at a
// member without one.
type ledger struct {
	reads *apirequest.RequestInfoFactory

	// mu guards the following fields.
	mu sync.Mutex
	// asked is the current generation of decisions, before the previous one.
	asked, before map[string][]question
	arrivals      int
	wrong         []string
}

// Authorize allows everything.
func (l *ledger) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := audit.GetAuditIDTruncated(ctx)
	l.asked[id] = append(l.asked[id], question{
		a.GetUser().GetName(), a.GetAPIGroup(), a.GetVerb(), a.GetResource(), a.GetSubresource(), a.GetNamespace(), a.GetName(),
	})
	return authorizer.DecisionAllow, "", nil
}

// arrive is the member's handler. All decisions for a request are made before it arrives.
func (l *ledger) arrive(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.arrivals++
	id := r.Header.Get("Audit-Id")
	asked := append(slices.Clone(l.before[id]), l.asked[id]...)
	if err := authorized(l.reads, asked, arrival{r.Method, r.RequestURI, r.Header}); err != nil {
		l.wrong = append(l.wrong, fmt.Sprintf("%s %s %q arrived: %v\nThe hub was asked %+v", r.Method, r.RequestURI, r.Header, err, asked))
	}
}

func (l *ledger) take() (wrong []string, arrivals int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wrong, arrivals = l.wrong, l.arrivals
	l.wrong = nil
	const most = 10_000
	if len(l.asked) > most {
		l.asked, l.before = map[string][]question{}, l.asked
	}
	return wrong, arrivals
}

// exchanges writes bytes to the gateway as a client would, and a last request that closes the
// connection. It returns when the gateway has closed the connection, or waits for the rest of an
// incomplete request longer than patience. arrive checks what a member gets.
func exchanges(g *gateway, bytes string, patience time.Duration) error {
	config := g.client.Transport.(*http.Transport).TLSClientConfig.Clone()
	config.NextProtos = []string{"http/1.1"}
	conn, err := tls.Dial("tcp", g.address, config)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, _ = io.WriteString(conn, bytes+"GET /healthz HTTP/1.1\r\nHost: g\r\nX-Remote-User: jane\r\nConnection: close\r\n\r\n")
	_, _ = io.Copy(io.Discard, conn)
	return nil
}

// FuzzWhatArrivesIsWhatWasAuthorized sends bytes of a hostile caller through the whole server:
// method, path, header lines and what follows them. A request that then reaches a member, parsed as
// its own API server does, must be what the hub authorized, and carry the caller that the hub
// authenticated.
func FuzzWhatArrivesIsWhatWasAuthorized(f *testing.F) {
	book := &ledger{asked: map[string][]question{}, reads: &apirequest.RequestInfoFactory{
		APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
	}}
	m := newMember(f, http.HandlerFunc(book.arrive))
	g := newGateway(f, map[string]*member{"m1": m, "m2": m}, func(c *apiserver.Config) {
		c.AuthorizeMemberRequests, c.Authorizer = true, authorizer.AuthorizerFunc(book.Authorize)
	})

	if err := exchanges(g, "GET /clusters/m1/api HTTP/1.1\r\nHost: g\r\nX-Remote-User: jane\r\n\r\n", time.Minute); err != nil {
		f.Fatal(err)
	}
	if wrong, arrivals := book.take(); arrivals == 0 || len(wrong) > 0 {
		f.Fatalf("of a request that nothing is wrong with %d arrived: %q", arrivals, wrong)
	}

	const pods = "/api/v1/namespaces/a/pods"
	own, hub := "/clusters/m1", prefix+"m1/proxy"
	smuggled := "GET " + prefix + "m2/proxy/api/v1/secrets HTTP/1.1\r\nHost: x\r\n\r\n"
	for _, path := range []string{
		hub + pods, own + pods + "/p/exec?command=sh", hub + "/api/v1/namespaces/ok/pods/../../kube-system/secrets/x", own + "/../m2/api",
		hub + "/..%2f..%2fm2/proxy/api", own + "//api", hub + "/api;x=y/v1", own + pods + "?watch=1#f", "http://other" + hub + "/api", hub + "%2fapi",
		prefix + "m1%2fproxy/api", hub + "/api/v1/watch/pods", own + "/a%3Fb?c=%zz;d", "*", "gateway.test:443", hub + " /api", own + "/é",
	} {
		for _, method := range []string{"GET", "DELETE", "POST", "CONNECT", "get", "HEAD", "OPTIONS"} {
			f.Add(method, path, "", "")
		}
	}
	for _, headers := range []string{
		"Connection: Impersonate-User, Impersonate-Group", "connection: close, X-Remote-User\r\nConnection: Authorization", "Impersonate-User: root",
		"Impersonate_User: root\r\nIMPERSONATE-GROUP: system:masters", "X-Remote-User: root", "X-Remote-Group: system:masters", "X-Remote-Extra-A: b",
		"Upgrade: websocket\r\nConnection: Upgrade", "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__",
		"Transfer-Encoding: chunked\r\nContent-Length: 5", "Content-Length: 5\r\nContent-Length: 6", "Transfer-Encoding : chunked",
		"Transfer-Encoding: xchunked", "Transfer-Encoding: chunked, identity", "Content-Length: +5", " folded: a", "A: b\r\n c", "A: b\nImpersonate-User: root",
		"Expect: 100-continue\r\nContent-Length: 5", "X-HTTP-Method-Override: DELETE", "Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.eA",
		"Trailer: Impersonate-User\r\nTransfer-Encoding: chunked", "Te: trailers", "Host: other", "Authorization: Bearer x\r\nCookie: a=b", ":path: /api",
	} {
		f.Add("GET", hub+pods, headers, "")
		f.Add("POST", own+pods, headers, "0\r\n\r\n"+smuggled)
		f.Add("POST", hub+pods, headers, "0\r\nImpersonate-User: root\r\n\r\n")
	}
	f.Fuzz(func(t *testing.T, method, path, headers, rest string) {
		const most = 8 << 10
		if len(method)+len(path)+len(headers)+len(rest) > most {
			return
		}
		request := method + " " + path + " HTTP/1.1\r\nHost: gateway.test\r\nX-Remote-User: jane\r\nX-Remote-Group: devs\r\n"
		if headers != "" {
			request += headers + "\r\n"
		}
		if err := exchanges(g, request+"\r\n"+rest, 300*time.Millisecond); err != nil {
			t.Skip(err) // The machine has no free port; nothing was sent.
		}
		// An aborted request may arrive a moment later, and is reported with the next bytes.
		if wrong, _ := book.take(); len(wrong) > 0 {
			t.Errorf("after %q:\n%s", request+"\r\n"+rest, strings.Join(wrong, "\n"))
		}
	})
}

// authorized returns how a request that arrived differs from the decisions.
func authorized(reads *apirequest.RequestInfoFactory, asked []question, got arrival) error {
	parsed, err := http.ReadRequest(bufio.NewReader(strings.NewReader(got.method + " " + got.uri + " HTTP/1.1\r\nHost: h\r\n\r\n")))
	if err != nil {
		return err
	}
	info, err := reads.NewRequestInfo(parsed)
	if err != nil {
		return err
	}
	user := got.header.Get("Impersonate-User")
	if user != "jane" && user != "root" || len(got.header["Impersonate-User"]) != 1 {
		return fmt.Errorf("it comes as %q", got.header["Impersonate-User"])
	}
	upgrade := got.header.Get("Upgrade") != ""
	inner := question{user: user, group: clustergateway.InnerGroup, verb: info.Verb, resource: "nonresource"}
	if info.IsResourceRequest {
		inner.resource, inner.subresource, inner.namespace = info.Resource, info.Subresource, info.Namespace
		if info.APIGroup != "" {
			inner.resource += "." + info.APIGroup
		}
		if upgrade && info.Subresource != "" {
			inner.verb = "create"
		}
	} else if inner.verb == "head" {
		inner.verb = "get"
	}
	outer := question{user: user, group: "cluster.core.oam.dev", verb: outerVerbs[got.method], resource: "clustergateways", subresource: "proxy"}
	wanted := []question{outer, inner}
	if upgrade {
		outer.verb = "create"
		wanted = append(wanted, outer)
	}
	if got.method == http.MethodDelete && info.IsResourceRequest && info.Name == "" {
		outer.verb = "deletecollection"
		wanted = append(wanted, outer)
	}
	for _, member := range []string{"m1", "m2"} {
		if !slices.ContainsFunc(wanted, func(q question) bool { q.name = member; return !slices.Contains(asked, q) }) {
			return checkArrivedHeader(got.header)
		}
	}
	return fmt.Errorf("the hub did not review %+v", wanted)
}

// outerVerbs are those that the hub's API server derives from the method.
var outerVerbs = map[string]string{
	http.MethodGet: "get", http.MethodHead: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// checkArrivedHeader finds headers with an identity other than the gateway's own.
func checkArrivedHeader(header http.Header) error {
	for name, values := range header {
		plain := strings.ReplaceAll(strings.ToLower(name), "_", "-")
		switch {
		case name == "Impersonate-User", name == "Impersonate-Group" && !slices.ContainsFunc(values, func(v string) bool { return strings.HasPrefix(v, "system:") }):
		case name == "Authorization" && slices.Equal(values, []string{"Bearer token-1"}):
		case strings.HasPrefix(plain, "impersonate-"), strings.HasPrefix(plain, "x-remote-"), strings.HasPrefix(plain, "x-forwarded-"),
			plain == "authorization", plain == "proxy-authorization", plain == "cookie", plain == "forwarded":
			return fmt.Errorf("header %s: %q", url.QueryEscape(name), values)
		}
	}
	return nil
}
