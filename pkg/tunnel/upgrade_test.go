// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/tunneltest"
)

const tunnelPath = "/apis/tunnel.fleetgate.io/v1alpha1/tunnels/one/proxy"

// startHub serves a handler over TLS, HTTP/2 allowed, and returns a dialer to it.
func startHub(t *testing.T, handler http.Handler) (*httptest.Server, *tunnel.HubDialer) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, &tunnel.HubDialer{
		URL:   server.URL + tunnelPath,
		TLS:   server.Client().Transport.(*http.Transport).TLSClientConfig,
		Token: func(context.Context) (string, error) { return "secret-token", nil },
	}
}

// runAgent keeps a session until the test ends.
func runAgent(t *testing.T, dial func(context.Context) (net.Conn, error), targets map[string]tunnel.Target) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	connector := &tunnel.Connector{Member: "one", Dial: dial, Targets: targets}
	go func() { ended <- connector.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestUpgrade_CarriesTunnel(t *testing.T) {
	r := tunneltest.NewRegistry(t, tunnel.Options{})
	gateway := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path != tunnelPath || req.Header.Get("Authorization") != "Bearer secret-token" {
			t.Errorf("the gateway got %s with %q", req.URL.Path, req.Header)
		}
		r.UpgradeHandler("one").ServeHTTP(w, req)
	})
	server, direct := startHub(t, gateway)

	// An HTTP proxy is in between, as the hub's API server is.
	backend, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(p *httputil.ProxyRequest) { p.SetURL(backend) },
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: direct.TLS.RootCAs}},
	}
	_, proxied := startHub(t, proxy)

	for name, hub := range map[string]*tunnel.HubDialer{"direct": direct, "through a proxy": proxied} {
		t.Run(name, func(t *testing.T) {
			eventually(t, func() bool { return !r.Connected("one") })
			runAgent(t, hub.Dial, map[string]tunnel.Target{"a": says("hello"), "echo": echo})
			eventually(t, func() bool { return r.Connected("one") })
			if got := hear(t, r, "one", "a"); got != "hello" {
				t.Errorf("heard %q", got)
			}
			conn, err := r.DialMember(t.Context(), "one", "echo")
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<18)
			go func() {
				_, _ = conn.Write(sent)
				_ = conn.(interface{ CloseWrite() error }).CloseWrite()
			}()
			if got, err := io.ReadAll(conn); err != nil || !bytes.Equal(got, sent) {
				t.Errorf("got %d of %d bytes, %v", len(got), len(sent), err)
			}
		})
	}
}

func TestUpgrade_RefusesInvalidRequests(t *testing.T) {
	open := tunneltest.NewRegistry(t, tunnel.Options{})
	full := tunneltest.NewRegistry(t, tunnel.Options{MaxSessionsPerMember: 1})
	tunneltest.Join(t, full, "one", nil)
	closed := tunneltest.NewRegistry(t, tunnel.Options{})
	if err := closed.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	const upgrade = "Connection: keep-alive, Upgrade\r\nUpgrade: fleetgate-tunnel/1\r\n"
	for name, c := range map[string]struct {
		registry *tunnel.Registry
		request  string
		code     int
	}{
		"no upgrade":       {open, "POST / HTTP/1.1\r\nHost: h\r\n\r\n", 426},
		"another protocol": {open, "POST / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n", 426},
		"another version":  {open, "POST / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: fleetgate-tunnel/2\r\n\r\n", 426},
		"no connection":    {open, "POST / HTTP/1.1\r\nHost: h\r\nUpgrade: fleetgate-tunnel/1\r\n\r\n", 426},
		"another method":   {open, "GET / HTTP/1.1\r\nHost: h\r\n" + upgrade + "\r\n", 405},
		"HTTP/1.0":         {open, "POST / HTTP/1.0\r\nHost: h\r\n" + upgrade + "\r\n", 505},
		"a body":           {open, "POST / HTTP/1.1\r\nHost: h\r\n" + upgrade + "Content-Length: 3\r\n\r\nabc", 400},
		"a chunked body":   {open, "POST / HTTP/1.1\r\nHost: h\r\n" + upgrade + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
		"too many":         {full, "POST / HTTP/1.1\r\nHost: h\r\n" + upgrade + "\r\n", 429},
		"a closed gateway": {closed, "POST / HTTP/1.1\r\nHost: h\r\n" + upgrade + "\r\n", 503},
	} {
		t.Run(name, func(t *testing.T) {
			server, _ := startHub(t, c.registry.UpgradeHandler("one"))
			conn, err := tls.Dial("tcp", server.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, c.request); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != c.code || !bytes.Contains(body, []byte(`"kind":"Status"`)) {
				t.Errorf("got %s %s, want %d and a Status", resp.Status, body, c.code)
			}
			if wait := resp.Header.Get("Retry-After"); (c.code == 429 || c.code == 503) != (wait != "") {
				t.Errorf("Retry-After is %q", wait)
			}
		})
	}
	t.Run("HTTP/2", func(t *testing.T) {
		server, _ := startHub(t, open.UpgradeHandler("one"))
		resp, err := server.Client().Post(server.URL, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.ProtoMajor != 2 || resp.StatusCode != 505 {
			t.Errorf("got %s over %s, want 505", resp.Status, resp.Proto)
		}
	})
}

func TestHubError_QuotesTheHub(t *testing.T) {
	status := func(message string) string {
		return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q}`, message)
	}
	for name, c := range map[string]struct {
		code int
		body string
		want string // in the message
	}{
		"401":               {401, status("Unauthorized"), "Unauthorized"},
		"403":               {403, status("tunnels one is forbidden"), "tunnels one is forbidden"},
		"404":               {404, status("member one not found"), "member one not found"},
		"503 of a proxy":    {503, "service unavailable\n", ""},
		"a redirect":        {302, "", ""},
		"200":               {200, status("fine"), "fine"},
		"another object":    {403, `{"kind":"Secret","message":"x"}`, ""},
		"an endless answer": {500, status(strings.Repeat("a", 1<<20)), ""},
		"a long message":    {500, status(strings.Repeat("a\n", 10_000)), strings.Repeat("a ", 512)},
	} {
		t.Run(name, func(t *testing.T) {
			_, hub := startHub(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "https://127.0.0.1:1/")
				w.WriteHeader(c.code)
				_, _ = io.WriteString(w, c.body)
			}))
			_, err := hub.Dial(t.Context())
			var refused *tunnel.HubError
			if !errors.As(err, &refused) {
				t.Fatalf("got %v, want a HubError", err)
			}
			if refused.StatusCode != c.code || refused.Message != c.want {
				t.Errorf("got %d %q", refused.StatusCode, refused.Message)
			}
			for _, text := range []string{fmt.Sprint(c.code), c.want} {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q does not say %q", err, text)
				}
			}
			if strings.Contains(err.Error(), "secret-token") {
				t.Errorf("%q holds the token", err)
			}
		})
	}
}

// startRaw answers each connection with bytes and then keeps it open.
func startRaw(t *testing.T, response string) *tunnel.HubDialer {
	t.Helper()
	server, hub := startHub(t, nil)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", server.TLS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
			go func() {
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					_, _ = io.WriteString(conn, response)
				}
			}()
		}
	}()
	hub.URL = "https://" + listener.Addr().String() + tunnelPath
	return hub
}

func TestHubDialer_SurvivesHostileResponses(t *testing.T) {
	for name, response := range map[string]string{
		"no HTTP":          "SSH-2.0-x\r\n\r\n",
		"an endless line":  strings.Repeat("a", 1<<18),
		"endless headers":  "HTTP/1.1 101 x\r\n" + strings.Repeat("A: "+strings.Repeat("b", 1000)+"\r\n", 300),
		"another protocol": "HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
		"an endless body":  "HTTP/1.1 500 x\r\nContent-Length: 9999999999\r\n\r\n" + strings.Repeat("a", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			hub := startRaw(t, response)
			if conn, err := hub.Dial(t.Context()); err == nil {
				_ = conn.Close()
				t.Error("Dial took it for a tunnel")
			}
		})
	}
	t.Run("nothing", func(t *testing.T) {
		hub := startRaw(t, "")
		hub.Timeout = 50 * time.Millisecond
		if _, err := hub.Dial(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want context.DeadlineExceeded", err)
		}
	})
	t.Run("bytes right after the answer are kept", func(t *testing.T) {
		hub := startRaw(t, "HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: fleetgate-tunnel/1\r\n\r\nfirst frame")
		conn, err := hub.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		got := make([]byte, len("first frame"))
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != "first frame" {
			t.Errorf("read %q, %v", got, err)
		}
	})
}

func TestHubDialer_DoesNotSendTokenToUnverifiedHub(t *testing.T) {
	asked := false
	_, hub := startHub(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	good := *hub
	for name, change := range map[string]func(*tunnel.HubDialer){
		"no TLS":                   func(d *tunnel.HubDialer) { d.URL = "http" + strings.TrimPrefix(d.URL, "https") },
		"no host":                  func(d *tunnel.HubDialer) { d.URL = "https:///x" },
		"no URL":                   func(d *tunnel.HubDialer) { d.URL = "https://%zz" },
		"an unknown CA":            func(d *tunnel.HubDialer) { d.TLS = &tls.Config{} },
		"a certificate of another": func(d *tunnel.HubDialer) { d.TLS = d.TLS.Clone(); d.TLS.ServerName = "other" },
		"no token": func(d *tunnel.HubDialer) {
			d.Token = func(context.Context) (string, error) { return "", errors.New("none yet") }
		},
		"nobody there": func(d *tunnel.HubDialer) { d.URL = "https://127.0.0.1:1/" },
	} {
		t.Run(name, func(t *testing.T) {
			d := good
			change(&d)
			if _, err := d.Dial(t.Context()); err == nil || strings.Contains(err.Error(), "secret-token") {
				t.Errorf("got %v", err)
			}
		})
	}
	if asked {
		t.Error("a request was sent")
	}
}

func TestUpgrade_LeaksNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("sessions", func(t *testing.T) {
		r := tunneltest.NewRegistry(t, tunnel.Options{})
		_, hub := startHub(t, r.UpgradeHandler("one"))
		for range 5 {
			conn, err := hub.Dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.Close()
		}
		eventually(t, func() bool { return !r.Connected("one") })
	})
	eventually(t, func() bool { return runtime.NumGoroutine() <= before })
}
