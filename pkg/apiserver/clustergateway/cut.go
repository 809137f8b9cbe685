// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// cutReply is a reply that may be cut: it knows whether what was written ended a line.
type cutReply struct {
	http.ResponseWriter
	last byte
}

// Write remembers the last byte.
func (w *cutReply) Write(b []byte) (int, error) {
	n, err := w.ResponseWriter.Write(b)
	if n > 0 {
		w.last = b[n-1]
	}
	return n, err
}

// Unwrap lets http.ResponseController flush and hijack.
func (w *cutReply) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// end ends the panic with which a reverse proxy gives a reply up, where its caller needs no
// broken connection to know. A caller who has gone needs nothing: every watch ends that way.
// Where the gateway itself ended what lasts, a watch ends between two events as those of API
// servers do, and a log that is followed with a line that says why: kubectl shows nothing
// else of it but INTERNAL_ERROR. Any other reply must be seen to be cut.
func (w *cutReply) end(ctx context.Context, request *Request) {
	v := recover()
	if v == nil {
		return
	}
	//lint:ignore errorlint It is panicked with as it is, by net/http.
	if v != http.ErrAbortHandler {
		panic(v)
	}
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, context.Canceled):
	case !errors.Is(cause, errStopping) && !errors.Is(cause, errRightLost):
		panic(v)
	case request.isLog():
		if w.last != '\n' {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "fleetgate: this log of member %q goes on, and ends here: %v\n", request.Member, cause)
	case !request.isWatch() || w.last != '\n':
		panic(v)
	}
}
