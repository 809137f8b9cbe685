// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/native"
	"fleetgate.io/fleetgate/pkg/tunnel/tunneltest"
)

// echo is a target that sends back what it gets.
func echo(context.Context) (tunnel.Handler, error) {
	return func(_ context.Context, stream net.Conn) error {
		_, err := io.Copy(stream, stream)
		return err
	}, nil
}

// says is a target that answers a word.
func says(word string) tunnel.Target {
	return func(context.Context) (tunnel.Handler, error) {
		return func(_ context.Context, stream net.Conn) error {
			_, err := io.WriteString(stream, word)
			return err
		}, nil
	}
}

func refuses(err error) tunnel.Target {
	return func(context.Context) (tunnel.Handler, error) { return nil, err }
}

// hear dials a target and returns its word.
func hear(t *testing.T, r *tunnel.Registry, member, target string) string {
	t.Helper()
	conn, err := r.DialMember(t.Context(), member, target)
	if err != nil {
		t.Fatalf("dialing: %v", err)
	}
	defer conn.Close()
	said, err := io.ReadAll(conn)
	if err != nil {
		t.Fatalf("reading: %v", err)
	}
	return string(said)
}

func TestDialMember_ReachesTargetOfTheMember(t *testing.T) {
	r := tunneltest.Connect(t, "one", map[string]tunnel.Target{"a": says("one a"), "b": says("one b")})
	tunneltest.Join(t, r, "two", map[string]tunnel.Target{"a": says("two a")})
	for _, want := range []string{"one a", "one b", "two a"} {
		member, target, _ := strings.Cut(want, " ")
		if got := hear(t, r, member, target); got != want {
			t.Errorf("%s of %s says %q", target, member, got)
		}
	}
}

func TestDialMember_FailsAtOnce(t *testing.T) {
	r := tunneltest.Connect(t, "one", map[string]tunnel.Target{
		"broken": refuses(errors.New("connection refused\nby the target")),
		"denied": refuses(&tunnel.RefusedError{Code: tunnel.Busy, Message: "later"}),
		"slow": func(ctx context.Context) (tunnel.Handler, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
	})
	for name, c := range map[string]struct {
		member, target string
		want           error
		code           tunnel.Code
	}{
		"an unknown member":   {"two", "broken", tunnel.ErrNotConnected, 0},
		"no member":           {"", "broken", tunnel.ErrNotConnected, 0},
		"an unknown target":   {"one", "10.0.0.1:443", tunnel.ErrRefused, tunnel.UnknownTarget},
		"a target in trouble": {"one", "broken", tunnel.ErrRefused, tunnel.Unreachable},
		"a target's own no":   {"one", "denied", tunnel.ErrRefused, tunnel.Busy},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.DialMember(t.Context(), c.member, c.target)
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			var refused *tunnel.RefusedError
			if errors.As(err, &refused) && refused.Code != c.code {
				t.Errorf("code %v, want %v", refused.Code, c.code)
			}
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("the error has line breaks: %q", err)
			}
		})
	}
	t.Run("a target that no header can carry", func(t *testing.T) {
		for _, target := range []string{"", "a b", strings.Repeat("a", 254), "é"} {
			if _, err := r.DialMember(t.Context(), "one", target); err == nil {
				t.Errorf("%q was dialed", target)
			}
		}
	})
	t.Run("a dial that takes too long", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := r.DialMember(ctx, "one", "slow")
		var refused *tunnel.RefusedError
		timedOut := errors.As(err, &refused) && refused.Code == tunnel.TimedOut
		if !errors.Is(err, context.DeadlineExceeded) && !timedOut {
			t.Errorf("got %v, want an error of time", err)
		}
	})
	t.Run("a dial that is cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		if _, err := r.DialMember(ctx, "one", "slow"); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
	})
}

func TestDialMember_ConnectionOutlivesContext(t *testing.T) {
	r := tunneltest.Connect(t, "one", map[string]tunnel.Target{"echo": echo})
	ctx, cancel := context.WithCancel(t.Context())
	conn, err := r.DialMember(ctx, "one", "echo")
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.WriteString(conn, "still here"); err != nil {
		t.Fatal(err)
	}
	if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); err != nil || string(got) != "still here" {
		t.Errorf("read %q, %v", got, err)
	}
	if got := conn.RemoteAddr(); got.Network() != "tunnel" || got.String() != "one/echo" {
		t.Errorf("remote address %s %s", got.Network(), got)
	}
}

func TestRegistry_PrefersNewestSessionAndKeepsOlder(t *testing.T) {
	r := tunneltest.NewRegistry(t, tunnel.Options{MaxSessionsPerMember: 3})
	tunneltest.Join(t, r, "one", map[string]tunnel.Target{"a": says("old")})
	old := hear(t, r, "one", "a")
	leave, conn := serveAgent(t, r, "one", map[string]tunnel.Target{"a": says("new"), "echo": echo})
	if got := hear(t, r, "one", "a"); old != "old" || got != "new" {
		t.Errorf("heard %q, then %q", old, got)
	}
	leave()
	<-conn
	if got := hear(t, r, "one", "a"); got != "old" {
		t.Errorf("after the newest has left: heard %q", got)
	}
}

// serveAgent adds one more session of the member and waits for it. ended closes when the registry
// has noticed its end.
func serveAgent(t *testing.T, r *tunnel.Registry, member string, targets map[string]tunnel.Target) (leave func(), ended <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	up, down := make(chan struct{}), make(chan struct{})
	gateway, agent := net.Pipe()
	go func() { defer close(down); _ = r.Serve(t.Context(), member, gateway) }()
	var once sync.Once
	connector := &tunnel.Connector{
		Member: member, Targets: targets,
		Dial: func(context.Context) (net.Conn, error) {
			var conn net.Conn
			once.Do(func() { conn = agent })
			if conn == nil {
				return nil, errors.New("this agent connects once")
			}
			return conn, nil
		},
		OnStateChange: func(s tunnel.State) {
			if s.Connected {
				close(up)
			}
		},
	}
	go func() { _ = connector.Run(ctx) }()
	<-up
	// The agent is connected; the registry is ready once it can reach what only this agent has.
	for {
		conn, err := r.DialMember(t.Context(), member, "echo")
		if err == nil {
			_ = conn.Close()
			break
		}
		runtime.Gosched()
	}
	t.Cleanup(cancel)
	return cancel, down
}

func TestSubscribe_ReportsFirstAndLastSession(t *testing.T) {
	r := tunneltest.NewRegistry(t, tunnel.Options{})
	var mu sync.Mutex
	var heard []string
	hear := func(member string, connected bool) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, fmt.Sprint(member, " ", connected))
		if r.Connected(member) != connected {
			t.Errorf("the callback reported %s connected=%v, the registry disagrees", member, connected)
		}
	}
	unsubscribe := r.Subscribe(hear)
	targets := map[string]tunnel.Target{"echo": echo}
	leave := tunneltest.Join(t, r, "one", targets)
	leaveToo, ended := serveAgent(t, r, "one", map[string]tunnel.Target{"echo": echo, "second": echo})
	// The agent knows of its tunnel a moment before the registry does, and the first one stays
	// until there is another.
	for {
		conn, err := r.DialMember(t.Context(), "one", "second")
		if err == nil {
			_ = conn.Close()
			break
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	leave()
	leaveToo()
	<-ended
	leave = tunneltest.Join(t, r, "two", targets)
	unsubscribe()
	leave()

	late := []string{}
	tunneltest.Join(t, r, "three", targets)
	r.Subscribe(func(member string, connected bool) { late = append(late, fmt.Sprint(member, " ", connected)) })()

	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff([]string{"one true", "one false", "two true"}, heard); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"three true"}, late); diff != "" {
		t.Errorf("a late subscriber, -want +got:\n%s", diff)
	}
}

func TestRegistry_DisconnectsAgentThatOpensStreams(t *testing.T) {
	r := tunneltest.NewRegistry(t, tunnel.Options{})
	gateway, agent := net.Pipe()
	mux := native.New(agent, native.Agent, native.Options{})
	defer mux.Close()
	served := make(chan error)
	go func() { served <- r.Serve(t.Context(), "one", gateway) }()
	_, _ = mux.Open(t.Context(), []byte("let me in"))
	if err := <-served; err == nil {
		t.Error("the session ended without a reason")
	}
	if r.Connected("one") {
		t.Error("the member is still connected")
	}
}

func TestDialMember_HostileResponseFailsOnlyOneDial(t *testing.T) {
	r := tunneltest.NewRegistry(t, tunnel.Options{})
	gateway, agent := net.Pipe()
	mux := native.New(agent, native.Agent, native.Options{})
	defer mux.Close()
	go func() { _ = r.Serve(t.Context(), "one", gateway) }()
	go func() {
		answers := []string{"\xff\xff", "", "\x00\x03\x00\x00\x00ok"}
		for _, response := range answers {
			stream, err := mux.Accept(t.Context())
			if err != nil {
				return
			}
			_, _ = io.WriteString(stream, response)
			_ = stream.(*native.Stream).CloseWrite()
		}
	}()
	eventually(t, func() bool { return r.Connected("one") })
	for range 2 {
		if _, err := r.DialMember(t.Context(), "one", "x"); err == nil || tunnel.IsRefused(err) || tunnel.IsNotConnected(err) {
			t.Errorf("got %v, want an error of the protocol", err)
		}
	}
	if got := hear(t, r, "one", "x"); got != "ok" {
		t.Errorf("heard %q", got)
	}
}

func TestDisconnect_EndsSessionsOfTheMember(t *testing.T) {
	r := tunneltest.NewRegistry(t, tunnel.Options{})
	leave, ended := serveAgent(t, r, "one", map[string]tunnel.Target{"echo": echo})
	defer leave()
	conn, err := r.DialMember(t.Context(), "one", "echo")
	if err != nil {
		t.Fatal(err)
	}
	r.Disconnect("one")
	r.Disconnect("never seen")
	<-ended
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, tunnel.ErrSessionClosed) {
		t.Errorf("an open connection: %v, want ErrSessionClosed", err)
	}
	if _, err := r.DialMember(t.Context(), "one", "echo"); !tunnel.IsNotConnected(err) {
		t.Errorf("a dial: %v, want ErrNotConnected", err)
	}
}

func TestClose_FinishesOpenConnections(t *testing.T) {
	r := tunneltest.Connect(t, "one", map[string]tunnel.Target{"echo": echo})
	conn, err := r.DialMember(t.Context(), "one", "echo")
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	go func() { defer close(closed); _ = r.Close(t.Context()) }()
	eventually(t, func() bool { return !r.Connected("one") })
	if _, err := r.DialMember(t.Context(), "one", "echo"); !tunnel.IsNotConnected(err) {
		t.Errorf("a dial while closing: %v, want ErrNotConnected", err)
	}
	sent := bytes.Repeat([]byte("x"), 1<<20)
	go func() { _, _ = conn.Write(sent); _ = conn.(interface{ CloseWrite() error }).CloseWrite() }()
	if got, err := io.ReadAll(conn); err != nil || len(got) != len(sent) {
		t.Errorf("an open connection: %d bytes, %v", len(got), err)
	}
	_ = conn.Close()
	<-closed
	gateway, _ := net.Pipe()
	if err := r.Serve(t.Context(), "two", gateway); !errors.Is(err, tunnel.ErrClosed) {
		t.Errorf("a session afterwards: %v, want ErrClosed", err)
	}
}

func TestListener_ServesHTTP(t *testing.T) {
	listener := tunnel.NewListener("agent")
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = fmt.Fprintf(w, "%s %s", req.Method, req.URL.Path)
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	r := tunneltest.Connect(t, "one", map[string]tunnel.Target{tunnel.Agent: listener.Target()})
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return r.DialMember(ctx, "one", tunnel.Agent)
		},
	}}
	for range 3 {
		resp, err := client.Get("http://agent/v1/hello")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if string(body) != "GET /v1/hello" {
			t.Errorf("got %q", body)
		}
	}
	client.CloseIdleConnections()
	_ = server.Close()
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("the server ended with %v", err)
	}
	if _, err := r.DialMember(t.Context(), "one", tunnel.Agent); !tunnel.IsRefused(err) {
		t.Errorf("after the server has closed: %v, want a refusal", err)
	}
}

func TestRegistry_LeaksNothingAfterManyConnections(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("traffic", func(t *testing.T) {
		r := tunneltest.Connect(t, "one", map[string]tunnel.Target{"echo": echo})
		var all sync.WaitGroup
		for worker := range 8 {
			all.Go(func() {
				for i := range 100 {
					conn, err := r.DialMember(t.Context(), "one", "echo")
					if err != nil {
						t.Errorf("worker %d, dial %d: %v", worker, i, err)
						return
					}
					_, _ = conn.Write([]byte("hello"))
					if i%3 != 0 {
						_, _ = io.ReadFull(conn, make([]byte, 5))
					}
					_ = conn.Close()
				}
			})
		}
		all.Wait()
	})
	eventually(t, func() bool { return runtime.NumGoroutine() <= before })
}

func TestRegistry_LabelsGoroutinesWithMember(t *testing.T) {
	tunneltest.Connect(t, "labelled-member", nil)
	for _, side := range []string{"gateway", "agent"} {
		label := fmt.Sprintf(`{"member":"labelled-member", "tunnel":%q}`, side)
		eventually(t, func() bool {
			var profile bytes.Buffer
			_ = pprof.Lookup("goroutine").WriteTo(&profile, 1)
			// The session's own loop and those of the multiplexer below it.
			return strings.Count(profile.String(), label) >= 3
		})
	}
}

// eventually waits for other goroutines.
func eventually(t *testing.T, done func() bool) {
	t.Helper()
	for range 2000 {
		if done() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	stacks := make([]byte, 1<<20)
	t.Fatalf("it never came true:\n%s", stacks[:runtime.Stack(stacks, true)])
}

// An agent that receives a gateway's message closes the session that the new one replaces. If dials
// did not find the new one by then, the member would be unreachable for a moment.
func TestRegistry_SendsInfoOnceDialsFindTheSession(t *testing.T) {
	var r *tunnel.Registry
	found := make(chan bool, 1)
	r = tunneltest.NewRegistry(t, tunnel.Options{Info: func() tunnel.Info {
		found <- r.Connected("one")
		return tunnel.Info{Replica: "gateway-1"}
	}})
	tunneltest.Join(t, r, "one", nil)
	if !<-found {
		t.Error("the agent was told before dials found its session")
	}
}

// Two agents of a member may be of different versions or kinds.
func TestDialMember_TriesOtherAgentForUnknownTarget(t *testing.T) {
	r := tunneltest.NewRegistry(t, tunnel.Options{})
	tunneltest.Join(t, r, "one", map[string]tunnel.Target{"a": says("older")})
	serveAgent(t, r, "one", map[string]tunnel.Target{"b": says("newer"), "echo": echo})
	for target, want := range map[string]string{"a": "older", "b": "newer"} {
		if got := hear(t, r, "one", target); got != want {
			t.Errorf("target %s: heard %q, want %q", target, got, want)
		}
	}
	var refused *tunnel.RefusedError
	if _, err := r.DialMember(t.Context(), "one", "c"); !errors.As(err, &refused) || refused.Code != tunnel.UnknownTarget {
		t.Errorf("a target that both do not know: %v", err)
	}
}
