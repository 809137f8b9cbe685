// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"fleetgate.io/fleetgate/pkg/tunnel/native"
)

// tcpPair returns both ends of a connection.
func tcpPair(t *testing.T) (near, far *net.TCPConn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	dialed, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = dialed.Close(), accepted.Close() })
	return dialed.(*net.TCPConn), accepted.(*net.TCPConn)
}

// sessionPair returns both ends of a session.
func sessionPair(t *testing.T) (gateway, agent *native.Multiplexer) {
	t.Helper()
	near, far := net.Pipe()
	gateway, agent = native.New(near, native.Gateway, native.Options{}), native.New(far, native.Agent, native.Options{})
	t.Cleanup(func() { _, _ = gateway.Close(), agent.Close() })
	return gateway, agent
}

func TestOffer_ClosesConnectionThatComesTooLate(t *testing.T) {
	made := &offers{byNonce: map[string]*offer{}}
	o := made.add("one")
	if made.take("one", o.nonce) != o {
		t.Fatal("the offer was not found")
	}
	made.withdraw(o)
	near, far := tcpPair(t)
	o.deliver(near)
	if _, err := far.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the other end read %v, want the end", err)
	}
}

func TestDataPath_OffersAgainAfterFiveMinutes(t *testing.T) {
	m, err := newMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		d := &dataPath{offers: &offers{byNonce: map[string]*offer{}}, member: "one", results: m.data}
		if d.offer(Agent) != nil {
			t.Error("it offers a data connection for plain text")
		}
		d.end(d.offer(APIServer), dataDeclined)
		for _, c := range []struct {
			after  time.Duration
			offers bool
		}{{0, false}, {dataRetry - time.Second, false}, {2 * time.Second, true}} {
			time.Sleep(c.after)
			if got := d.offer(APIServer) != nil; got != c.offers {
				t.Errorf("%s later it offers: %v", c.after, got)
			}
		}
	})
}

// The kernel ends the connections of a killed process as if it had closed them. A reply would look
// complete.
func TestDataConn_EndOfKilledProcessIsNoEnd(t *testing.T) {
	gateway, agent := sessionPair(t)
	stream, err := gateway.Open(t.Context(), []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	near, far := tcpPair(t)
	conn := newDataConn(near, stream)
	if _, err := io.WriteString(far, "half a rep"); err != nil {
		t.Fatal(err)
	}
	_ = far.Close()
	if _, err := io.ReadFull(conn, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 2)
	go func() { _, err := conn.Read(make([]byte, 1)); ended <- err }()
	go func() { _, err := conn.WriteTo(io.Discard); ended <- err }()
	_ = agent.Close()
	for range 2 {
		if err := <-ended; !errors.Is(err, ErrSessionClosed) {
			t.Errorf("it ended with %v, want ErrSessionClosed", err)
		}
	}
}

// A gateway that offers a data connection for plain text gets none: an agent does not believe it.
func TestServer_OpensDataConnectionOnlyForAPIServer(t *testing.T) {
	gateway, agent := sessionPair(t)
	asked := make(chan string, 1)
	data := func(_ context.Context, nonce string) (*net.TCPConn, error) {
		asked <- nonce
		near, _ := tcpPair(t)
		return near, nil
	}
	target := func(context.Context) (Handler, error) {
		return func(context.Context, net.Conn) error { return nil }, nil
	}
	ended := make(chan error, 1)
	go func() {
		ended <- serveStreams(context.Background(), agent, map[string]Target{Agent: target, APIServer: target}, data, 10)
	}()
	for name, want := range map[string]error{Agent: nil, APIServer: &RefusedError{Code: codeOnData}} {
		stream, err := gateway.Open(t.Context(), header{target: name, nonce: "0123456789abcdef"}.encode())
		if err != nil {
			t.Fatal(err)
		}
		if err := readResponse(stream); isRefusedAs(err, codeOnData) != (want != nil) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
		if want != nil && <-asked != "0123456789abcdef" {
			t.Error("another nonce was used")
		}
		_ = stream.Close()
	}
	_ = gateway.Close()
	<-ended
	if len(asked) > 0 {
		t.Error("a data connection was opened for plain text")
	}
}

// Agents reach the gateway through the hub because they cannot reach its port.
func TestRegistry_OffersNoDataConnectionToSessionThroughHub(t *testing.T) {
	r, err := NewRegistry(Options{DataConnections: true})
	if err != nil {
		t.Fatal(err)
	}
	near, far := net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- r.Serve(context.Background(), "one", near) }()
	agent := native.New(far, native.Agent, native.Options{})
	dialed := make(chan error, 1)
	for !r.Connected("one") {
		time.Sleep(time.Millisecond)
	}
	go func() { _, err := r.DialMember(context.Background(), "one", APIServer); dialed <- err }()
	stream, err := agent.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h, err := readHeader(stream)
	if err != nil || h.target != APIServer || h.nonce != "" {
		t.Errorf("got %+v, %v, want no nonce", h, err)
	}
	_ = agent.Close()
	<-dialed
	<-ended
	if (&Connector{Data: func(context.Context, PortInfo, string) (*net.TCPConn, error) { return nil, nil }}).dataDialerFor(nil) != nil {
		t.Error("the agent opens data connections without a port")
	}
}

// An agent that was offered nothing cannot have a data connection.
func TestDialHeader_RefusesDataConnectionWithoutOffer(t *testing.T) {
	gateway, agent := sessionPair(t)
	go func() {
		stream, err := agent.Accept(context.Background())
		if err != nil {
			return
		}
		_, _ = stream.Write(encodeResponse(codeOnData, ""))
	}()
	s := &nativeSession{Multiplexer: gateway}
	if _, err := s.Dial(t.Context(), APIServer); !IsRefused(err) {
		t.Errorf("got %v, want a refusal", err)
	}
}
