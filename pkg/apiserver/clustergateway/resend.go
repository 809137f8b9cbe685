// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// maxKept is the size up to which the gateway keeps the body of a request, in bytes. A member that did
// not execute the request can then get it again. Most objects are smaller.
const maxKept = 64 << 10

// keepBody reads a small body before the request is sent. A member's API server that stops, or that
// sheds a connection (--goaway-chance), refuses requests that are on their way. The transport sends
// them over another connection if they have a body that can be read twice.
func keepBody(out *http.Request) error {
	if !hasBody(out) || out.ContentLength <= 0 || out.ContentLength > maxKept {
		return nil
	}
	content := make([]byte, out.ContentLength)
	if _, err := io.ReadFull(out.Body, content); err != nil {
		return fmt.Errorf("%w: reading the body of its request: %w", errClientGone, err)
	}
	out.Body = io.NopCloser(bytes.NewReader(content))
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	return nil
}

// again returns a request whose reply says that the member did not execute it, to be sent a second
// time. ok is false if its body is gone. What an application behind a proxy subresource replies says
// nothing about the execution.
func again(out *http.Request) (second *http.Request, ok bool) {
	if !hasBody(out) {
		return out, true
	}
	if x := exchangeFrom(out.Context()); out.GetBody == nil || x != nil && x.request.isPage() {
		return nil, false
	}
	body, err := out.GetBody()
	if err != nil {
		return nil, false
	}
	second = out.WithContext(out.Context())
	second.Body = body
	return second, true
}

func hasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }
