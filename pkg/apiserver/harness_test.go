// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/tools/cache"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/apiserver"
	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
	"fleetgate.io/fleetgate/pkg/apiserver/fleetview"
	"fleetgate.io/fleetgate/test/support/leak"
)

var errNotConnected = errors.New("not connected")

// authority signs serving certificates for one test.
type authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{t: t, cert: cert, key: key}
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

func (a *authority) leaf(name string) (certPEM, keyPEM []byte) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

// member is a fake member: an API server behind TLS and an agent.
type member struct {
	api, agent *httptest.Server
	ca         *authority
	// dials counts connections to the API server.
	dials atomic.Int64
	// asked counts requests to the agent.
	asked     atomic.Int64
	connected atomic.Bool

	// mu guards the following fields.
	mu      sync.Mutex
	token   string
	handler http.Handler
	agentDo http.HandlerFunc
	streams []net.Conn
}

func newMember(t testing.TB, handler http.Handler) *member {
	t.Helper()
	m := &member{ca: newAuthority(t), token: "token-1", handler: handler}
	m.connected.Store(true)
	m.api = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		handler := m.handler
		m.mu.Unlock()
		handler.ServeHTTP(w, r)
	}))
	certPEM, keyPEM := m.ca.leaf(clustergateway.MemberServerName)
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	m.api.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	m.api.EnableHTTP2 = true
	m.api.Config.ErrorLog = log.New(io.Discard, "", 0)
	m.api.StartTLS()
	m.agent = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.asked.Add(1)
		m.mu.Lock()
		do := m.agentDo
		m.mu.Unlock()
		if do != nil {
			do(w, r)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(func() {
		m.disconnect()
		m.api.Close()
		m.agent.Close()
	})
	return m
}

func (m *member) serve(handler http.HandlerFunc) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.handler = handler
}

// over wraps the current handler.
func (m *member) over(handler func(before http.Handler) http.HandlerFunc) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.handler = handler(m.handler)
}

func (m *member) agentAnswers(do http.HandlerFunc) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.agentDo = do
}

func (m *member) setToken(token string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.token = token
}

// setCA replaces the CA in the credential.
func (m *member) setCA(ca *authority) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ca = ca
}

func (m *member) credential() (clustergateway.Credential, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.token == "" {
		return clustergateway.Credential{}, errors.New("no token yet")
	}
	return clustergateway.Credential{Token: m.token, CA: m.ca.pem()}, nil
}

func (m *member) dial(ctx context.Context, target string) (net.Conn, error) {
	if !m.connected.Load() {
		return nil, fmt.Errorf("member: %w", errNotConnected)
	}
	address := m.agent.Listener.Addr().String()
	if target == "apiserver" {
		m.dials.Add(1)
		address = m.api.Listener.Addr().String()
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	m.streams = append(m.streams, conn)
	m.mu.Unlock()
	return conn, nil
}

// disconnect breaks every stream, as a lost tunnel does.
func (m *member) disconnect() {
	m.connected.Store(false)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, conn := range m.streams {
		_ = conn.Close()
	}
	m.streams = nil
}

// gateway is a running API server with fake members.
type gateway struct {
	t       testing.TB
	address string
	client  *http.Client
	inform  *informer
	members map[string]*member
	server  *apiserver.Server
	stop    func()
	done    chan error

	// mu guards the following fields.
	mu     sync.Mutex
	allow  func(authorizer.Attributes) bool
	agents map[string][]string
	tunnel func(member string) http.Handler
}

// connected is the Liveness of members that always are.
type connected struct{}

func (connected) Reachable(string) bool { return true }

func (connected) Responds(context.Context, string) bool { return true }

func (connected) Expected(string) bool { return true }

func (connected) LastSessionChange(string) time.Time { return time.Time{} }

type option func(*apiserver.Config)

func newGateway(t testing.TB, members map[string]*member, options ...option) *gateway {
	t.Helper()
	authentication, err := headerrequest.New([]string{"X-Remote-User"}, nil, []string{"X-Remote-Group"}, []string{"X-Remote-Extra-"})
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{t: t, members: members, inform: &informer{}, done: make(chan error, 1)}
	g.allow = func(authorizer.Attributes) bool { return true }
	inventory := clustergateway.NewInventory()
	if _, _, err := inventory.Follow(g.inform); err != nil {
		t.Fatal(err)
	}
	version := 10
	for name := range members {
		inventory.SetCredential(name, true, "1", true)
		g.inform.handler.OnAdd(memberCluster(name, version), true)
		version++
	}
	ca := newAuthority(t)
	certPEM, keyPEM := ca.leaf("gateway.test")
	certificate, err := dynamiccertificates.NewStaticCertKeyContent("test", certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	serving := make(chan struct{})
	config := apiserver.Config{
		Authenticator: authentication,
		Authorizer:    authorizer.AuthorizerFunc(g.authorize),
		Address:       "127.0.0.1:0",
		Certificate:   certificate,
		Config: clustergateway.Config{
			Members: inventory, Credentials: clustergateway.CredentialsFunc(g.credential),
			Dialer: clustergateway.DialerFunc(g.dial), Liveness: connected{}, NotConnected: errNotConnected,
		},
		Tunnels: func(member string) http.Handler {
			g.mu.Lock()
			defer g.mu.Unlock()
			return g.tunnel(member)
		},
		OnServing: func() { close(serving) },
		IsAgentOf: func(_ context.Context, username, member string) (bool, error) {
			g.mu.Lock()
			defer g.mu.Unlock()
			return slices.Contains(g.agents[username], member), nil
		},
	}
	for _, o := range options {
		o(&config)
	}
	completed, err := config.Complete()
	if err != nil {
		t.Fatal(err)
	}
	server, err := completed.New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	g.server = server
	ctx, cancel := context.WithCancel(t.Context())
	g.stop = cancel
	go func() { g.done <- server.Run(ctx) }()
	g.address = server.Address().String()
	transport := &http.Transport{
		TLSClientConfig:    &tls.Config{RootCAs: ca.pool(), ServerName: "gateway.test"},
		ForceAttemptHTTP2:  true,
		DisableCompression: true,
	}
	g.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(func() {
		for _, m := range members {
			m.disconnect()
		}
		transport.CloseIdleConnections()
		cancel()
		if err, ok := <-g.done; ok && err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	select {
	case <-serving:
	case err := <-g.done:
		t.Fatalf("Run: %v", err)
	}
	return g
}

// awaitEnd returns when the stopped server has ended.
func (g *gateway) awaitEnd() {
	g.t.Helper()
	if err := <-g.done; err != nil {
		g.t.Errorf("Run: %v", err)
	}
	close(g.done)
}

// keys stops the server and returns all keys of the proxy's caches.
func (g *gateway) keys() string {
	g.t.Helper()
	g.stop()
	g.awaitEnd()
	return leak.Keys([]string{"fleetgate.io/fleetgate/", "golang.org/x/sync/"}, g.server)
}

func (g *gateway) authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if slices.Contains(a.GetUser().GetGroups(), "system:masters") || g.allow(a) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func (g *gateway) allowOnly(allow func(authorizer.Attributes) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.allow = allow
}

func (g *gateway) credential(name string) (clustergateway.Credential, error) {
	m, ok := g.members[name]
	if !ok {
		return clustergateway.Credential{}, errors.New("no such member")
	}
	return m.credential()
}

func (g *gateway) dial(ctx context.Context, name, target string) (net.Conn, error) {
	m, ok := g.members[name]
	if !ok {
		return nil, errNotConnected
	}
	return m.dial(ctx, target)
}

const prefix = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/"

// do sends a request as a user; path follows the server's address. Members of views have more than
// the default time to reply unless the request states how long: a loaded machine is not late.
func (g *gateway) do(method, path, user string, body io.Reader, change ...func(*http.Request)) *http.Response {
	g.t.Helper()
	if strings.HasPrefix(path, viewPrefix) && !strings.Contains(path, "memberTimeoutSeconds") {
		separator := "?"
		if strings.Contains(path, "?") {
			separator = "&"
		}
		path += separator + "memberTimeoutSeconds=" + fmt.Sprint(fleetview.MaxDeadline.Seconds())
	}
	req, err := http.NewRequestWithContext(g.t.Context(), method, "https://"+g.address+path, body)
	if err != nil {
		g.t.Fatal(err)
	}
	if user != "" {
		req.Header.Set("X-Remote-User", user)
	}
	for _, c := range change {
		c(req)
	}
	res, err := g.client.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

func header(name string, values ...string) func(*http.Request) {
	return func(r *http.Request) { r.Header[name] = values }
}

// raw sends bytes over a TLS connection of HTTP/1.1, as a hostile client would, and reads one
// reply.
func (g *gateway) raw(request string) (net.Conn, *bufio.Reader, *http.Response) {
	g.t.Helper()
	transport := g.client.Transport.(*http.Transport)
	config := transport.TLSClientConfig.Clone()
	config.NextProtos = []string{"http/1.1"}
	conn, err := tls.Dial("tcp", g.address, config)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		g.t.Fatal(err)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		g.t.Fatal(err)
	}
	reader := bufio.NewReader(conn)
	res, err := http.ReadResponse(reader, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	return conn, reader, res
}

func statusOf(t testing.TB, res *http.Response) metav1.Status {
	t.Helper()
	var status metav1.Status
	content, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &status); err != nil {
		t.Fatalf("The reply is no Status: %v\n%s", err, content)
	}
	if status.Kind != "Status" || int(status.Code) != res.StatusCode {
		t.Errorf("got kind %q and code %d in a reply of code %d", status.Kind, status.Code, res.StatusCode)
	}
	return status
}

func text(t testing.TB, res *http.Response) string {
	t.Helper()
	content, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func wantCode(t testing.TB, res *http.Response, want int) {
	t.Helper()
	if res.StatusCode != want {
		content, _ := io.ReadAll(io.LimitReader(res.Body, 2048))
		t.Fatalf("got %d, want %d: %s", res.StatusCode, want, content)
	}
}

// informer passes its handler to the test.
type informer struct{ handler cache.ResourceEventHandler }

func (i *informer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.handler = h
	return registration{}, nil
}

func (i *informer) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error { return nil }

type registration struct {
	cache.ResourceEventHandlerRegistration
}

func (registration) HasSynced() bool { return true }

func memberCluster(name string, version int, labels ...string) *clusterv1beta1.MemberCluster {
	m := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID("uid-" + name), ResourceVersion: fmt.Sprint(version),
	}}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		metav1.SetMetaDataLabel(&m.ObjectMeta, key, value)
	}
	return m
}

// seen is what the member saw of a request.
type seen struct {
	Method, URI, Path string
	Header            http.Header
	Body              string
	Proto             string
}

func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(seen{
		Method: r.Method, URI: r.RequestURI, Path: r.URL.Path, Header: r.Header, Body: string(body), Proto: r.Proto,
	})
}

func seenBy(t testing.TB, res *http.Response) seen {
	t.Helper()
	wantCode(t, res, http.StatusOK)
	var s seen
	if err := json.NewDecoder(res.Body).Decode(&s); err != nil {
		t.Fatal(err)
	}
	return s
}
