// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// cutReply is a reply that may be cut short. It keeps track of whether the last write ended a line.
type cutReply struct {
	http.ResponseWriter
	last byte
}

func (w *cutReply) Write(b []byte) (int, error) {
	n, err := w.ResponseWriter.Write(b)
	if n > 0 {
		w.last = b[n-1]
	}
	return n, err
}

// Unwrap lets http.ResponseController flush and hijack.
func (w *cutReply) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// end recovers the panic with which a reverse proxy aborts a reply, if the caller does not need a
// broken connection to notice. A caller that disconnected needs nothing: every watch ends that way.
// If the gateway ended a long-running request, a watch ends between two events, as API servers end
// theirs. A followed log ends with a line that says why, because kubectl would otherwise show only
// INTERNAL_ERROR. Any other reply must be visibly cut.
func (w *cutReply) end(ctx context.Context, x *exchange) {
	v := recover()
	if v == nil {
		return
	}
	//nolint:errorlint // net/http panics with exactly this value.
	if v != http.ErrAbortHandler {
		panic(v)
	}
	cause := context.Cause(ctx)
	if why := x.cut.Load(); cause == nil && why != nil {
		cause = *why
	}
	switch {
	case errors.Is(cause, context.Canceled):
	case !endedHere(cause):
		panic(v)
	case x.request.isLog():
		if w.last != '\n' {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "fleetgate: this log of member %q continues, but this connection ends: %v\n", x.request.Member, cause)
	case !x.request.isWatch() || w.last != '\n':
		panic(v)
	}
}
