// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command prebuilt downloads programs that the Makefile would otherwise build, of the same versions,
// and fails at once if they cannot be reached, so that make builds them.
//
// Usage: prebuilt -store DIR -links DIR SET, where SET is one of the first column of sums.txt.
//
// Every file is compared with the sum in sums.txt before it is stored under the name of a program.
// Programs are links into the store, so that make OFFLINE=1 knows what was not built.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

const (
	// patience is how long a server may take to respond. Without a network, a build waits for it once.
	patience = 2 * time.Second
	// memory is how long a failure counts for other sets. A cold build takes less.
	memory = 10 * time.Minute
	// unreachable is a file that a failure leaves in the store.
	unreachable = "unreachable"
)

//go:embed sums.txt
var sums string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	d := downloader{client: newClient(), patience: patience, stall: 20 * time.Second, out: os.Stdout}
	flag.StringVar(&d.store, "store", "", "folder of the downloaded files")
	flag.StringVar(&d.links, "links", "", "folder of the links to them")
	flag.Parse()
	if err := run(ctx, d, flag.Arg(0), runtime.GOOS+"/"+runtime.GOARCH); err != nil {
		fmt.Printf("    Not downloaded: %v. Building instead.\n", err)
		os.Exit(1)
	}
}

// run downloads a set of programs for a platform.
func run(ctx context.Context, d downloader, set, platform string) error {
	all, err := parse(sums)
	if err != nil {
		return err
	}
	chosen := choose(all, set, platform)
	if len(chosen) == 0 {
		return fmt.Errorf("no sums of %q for %s are pinned in hack/prebuilt/sums.txt", set, platform)
	}
	return d.install(ctx, chosen)
}

// newClient does not wait for a server that does not respond. It honors HTTPS_PROXY.
func newClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = (&net.Dialer{Timeout: patience}).DialContext
	transport.TLSHandshakeTimeout = patience
	transport.ResponseHeaderTimeout = 5 * patience
	return &http.Client{Transport: transport}
}

// downloader stores files and links programs to them.
type downloader struct {
	client *http.Client
	// patience is how long the first server may take to respond.
	patience time.Duration
	// stall is how long a download may bring nothing.
	stall        time.Duration
	store, links string
	out          io.Writer
}

// install links all programs, or none.
func (d downloader) install(ctx context.Context, files []file) error {
	for _, folder := range []string{d.store, d.links} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return fmt.Errorf("making a folder for downloads: %w", err)
		}
	}
	if err := d.probe(ctx, files[0]); err != nil {
		return err
	}
	for _, f := range files {
		begin := time.Now()
		size, err := d.fetch(ctx, f)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(d.out, "    %s %s: %d MB in %.0f s\n", f.program, f.version, size>>20, time.Since(begin).Seconds())
	}
	for _, f := range files {
		if err := d.link(f); err != nil {
			return fmt.Errorf("linking %s: %w", f.program, err)
		}
	}
	return nil
}

// probe finds out at once whether there is a network, and remembers that there is none.
func (d downloader) probe(ctx context.Context, f file) error {
	mark := filepath.Join(d.store, unreachable)
	if info, err := os.Stat(mark); err == nil && time.Since(info.ModTime()) < memory {
		return fmt.Errorf("no server could be reached %s ago (to try again, delete %s)", time.Since(info.ModTime()).Round(time.Second), mark)
	}
	ctx, cancel := context.WithTimeout(ctx, d.patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, f.url, nil)
	if err != nil {
		return fmt.Errorf("requesting %s: %w", f.url, err)
	}
	response, err := d.client.Do(request)
	if err != nil {
		return errors.Join(fmt.Errorf("%s cannot be reached: %w", request.URL.Host, cause(err)), os.WriteFile(mark, nil, 0o644))
	}
	return response.Body.Close()
}

// cause leaves out the URL, which errors of net/http begin with.
func cause(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// link replaces whatever has the program's name.
func (d downloader) link(f file) error {
	target, err := filepath.Rel(d.links, d.path(f))
	if err != nil {
		return err
	}
	temporary := filepath.Join(d.links, "."+f.program)
	if err := os.Remove(temporary); err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := os.Symlink(target, temporary); err != nil {
		return err
	}
	return os.Rename(temporary, filepath.Join(d.links, f.program))
}

func (d downloader) path(f file) string {
	return filepath.Join(d.store, f.program+"-"+f.version)
}
