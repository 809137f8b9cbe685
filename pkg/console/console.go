// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/utils/clock"

	"fleetgate.io/fleetgate/pkg/inspect/overview"
)

// Timeouts for reading a request. Event streams have no timeout: they end with the console.
const (
	headerTimeout = 10 * time.Second
	readTimeout   = 20 * time.Second
)

// Console serves the pages for one hub.
type Console struct {
	// Hub is read with the user's credentials.
	Hub   *overview.Hub
	Clock clock.PassiveClock

	// listen defaults to that of net.ListenConfig.
	listen listenFunc
	pages  map[string]*template.Template
	form   string
	live   *signals
	took   latencies
	known  fleetKinds
	// pending are changes that were shown and are not confirmed yet.
	pending confirmations
}

// handler serves the pages without the guard.
func (c *Console) handler() (http.Handler, error) {
	pages, err := templates()
	if err != nil {
		return nil, err
	}
	c.pages = pages
	if c.live == nil {
		c.live = newSignals()
	}
	mux := http.NewServeMux()
	mux.Handle("GET /static/", http.FileServerFS(files))
	mux.HandleFunc("GET /{$}", c.fleet)
	mux.HandleFunc("GET /member", c.member)
	mux.HandleFunc("GET /placements", c.placements)
	mux.HandleFunc("GET /placement", c.placement)
	mux.HandleFunc("GET /runs", c.runs)
	mux.HandleFunc("GET /runs/confirm", c.confirm)
	mux.HandleFunc("POST /runs/approve", c.approve)
	mux.HandleFunc("POST /runs/stop", c.stop)
	mux.HandleFunc("GET /search", c.search)
	mux.HandleFunc("GET /pod", c.pod)
	mux.HandleFunc("GET /problems", c.problems)
	mux.HandleFunc("GET /events", c.events)
	return mux, nil
}

// Run serves the console until the context ends. It calls ready once with the file that opens the
// console in a browser.
func (c *Console) Run(ctx context.Context, ready func(file, url string)) error {
	if c.listen == nil {
		c.listen = (&net.ListenConfig{}).Listen
	}
	listeners, err := listenOnLoopback(ctx, c.listen)
	if err != nil {
		return err
	}
	c.live = newSignals()
	pages, err := c.handler()
	if err != nil {
		return errors.Join(err, closeAll(listeners))
	}
	g, err := newGuard(listeners[0].Addr().(*net.TCPAddr).Port, pages)
	if err != nil {
		return errors.Join(err, closeAll(listeners))
	}
	c.form = g.form
	file, err := redirectFile(g.openURL())
	if err != nil {
		return errors.Join(err, closeAll(listeners))
	}
	defer func() { _ = os.RemoveAll(filepath.Dir(file)) }() // The address in it is no longer valid.
	watched, stop := context.WithCancel(ctx)
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		c.watch(watched)
	}()
	server := &http.Server{Handler: g, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, BaseContext: func(net.Listener) context.Context { return watched }}
	ended := make(chan error, len(listeners))
	for _, listener := range listeners {
		go func() { ended <- server.Serve(listener) }()
	}
	ready(file, "http://"+g.host)
	select {
	case <-ctx.Done():
		err = nil
	case err = <-ended:
	}
	stop()
	closed := server.Close()
	<-watching
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, closed)
}

// redirectFile creates a page that only the user can read and that redirects to the address. The
// address must not be an argument of the browser: all users of the machine can read arguments.
func redirectFile(address string) (string, error) {
	dir, err := os.MkdirTemp("", "fleetgate-console-")
	if err != nil {
		return "", fmt.Errorf("creating the file that opens the console: %w", err)
	}
	file := filepath.Join(dir, "open.html")
	text := template.Must(template.New("open").Parse(`<!doctype html><meta charset="utf-8"><title>fleetgate</title><meta http-equiv="refresh" content="0; url={{.}}"><a href="{{.}}">Open the console</a>`))
	out, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", fmt.Errorf("creating the file that opens the console: %w", err)
	}
	return file, errors.Join(text.Execute(io.Writer(out), address), out.Close())
}
