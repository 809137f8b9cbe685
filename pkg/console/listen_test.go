// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"fleetgate.io/fleetgate/pkg/inspect/overview"
)

// needsIPv6 skips a test where the machine has no ::1.
func needsIPv6(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skipf("the machine has no ::1: %v", err)
	}
	_ = listener.Close()
}

// ran runs a console until the test ends, and returns its port.
func ran(t *testing.T, listen listenFunc) string {
	t.Helper()
	scheme, err := overview.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	c := &Console{Hub: &overview.Hub{WithWatch: fake.NewClientBuilder().WithScheme(scheme).Build(), Config: &rest.Config{}}, Clock: clock.RealClock{}, listen: listen}
	ctx, stop := context.WithCancel(t.Context())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- c.Run(ctx, func(_, address string) { ready <- address }) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case address := <-ready:
		of, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		return of.Port()
	case err := <-ended:
		ended <- err
		t.Fatal("console ended")
	}
	return ""
}

func TestListenOnLoopback_BindsAllAddresses(t *testing.T) {
	needsIPv6(t)
	port := ran(t, nil)
	for _, host := range []string{"127.0.0.1", "::1"} {
		if other, err := net.Listen("tcp", net.JoinHostPort(host, port)); err == nil {
			t.Errorf("another process can listen on %s", other.Addr())
			_ = other.Close()
		}
		response, err := http.Get("http://" + net.JoinHostPort(host, port) + "/")
		if err != nil {
			t.Errorf("%s is not served: %v", host, err)
			continue
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusMisdirectedRequest {
			t.Errorf("%s: status %d", host, response.StatusCode)
		}
	}
}

func TestListenOnLoopback_SkipsPortTakenOnOtherAddress(t *testing.T) {
	needsIPv6(t)
	var taken string
	var released net.Listener
	port := ran(t, func(ctx context.Context, network, address string) (net.Listener, error) {
		listener, err := (&net.ListenConfig{}).Listen(ctx, network, address)
		if err != nil || taken != "" || strings.HasPrefix(address, "[") {
			return listener, err
		}
		// Another user already listens on ::1.
		released = listener
		_, taken, _ = net.SplitHostPort(listener.Addr().String())
		other, err := (&net.ListenConfig{}).Listen(ctx, network, net.JoinHostPort("::1", taken))
		if err == nil {
			t.Cleanup(func() { _ = other.Close() })
		}
		return listener, err
	})
	if port == taken || taken == "" {
		t.Errorf("port = %s, which is taken on ::1", port)
	}
	if err := released.(*net.TCPListener).SetDeadline(time.Now()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("unused port was not released: %v", err)
	}
}
