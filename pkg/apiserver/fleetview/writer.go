// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	viewv1alpha1 "fleetgate.io/fleetgate/pkg/apis/view/v1alpha1"
	"fleetgate.io/fleetgate/pkg/apiserver/fleetview/splice"
)

// maxBuffered is how much of a list is buffered until all its members have replied. Until then, the
// headers can name the members that have not.
const maxBuffered = 4 << 20

// writeSize is the size of one write to the caller. The HTTP/2 server passes each write from goroutine to
// goroutine, and an object is often small.
const writeSize = 64 << 10

// listWriter writes a list to the caller. It buffers the beginning, so that headers can be written last.
type listWriter struct {
	*splice.Writer
	header   http.Header
	warn     func(http.Header)
	buffered bytes.Buffer
	// out writes to the caller what follows the beginning.
	out *bufio.Writer
	// sent is true once the headers have been sent.
	sent bool
}

// newListWriter returns a writer that calls warn before it sends the headers.
func newListWriter(w http.ResponseWriter, qualified bool, warn func(http.Header)) *listWriter {
	out := &listWriter{header: w.Header(), warn: warn, out: bufio.NewWriterSize(w, writeSize)}
	out.Writer = splice.NewWriter(out, viewv1alpha1.LabelMember, qualified)
	return out
}

// Write takes bytes of the list, and buffers them up to a limit.
func (w *listWriter) Write(p []byte) (int, error) {
	if !w.sent && w.buffered.Len()+len(p) <= maxBuffered {
		return w.buffered.Write(p)
	}
	if err := w.send(); err != nil {
		return 0, err
	}
	return w.out.Write(p)
}

// send sends the headers and what was buffered.
func (w *listWriter) send() error {
	if w.sent {
		return nil
	}
	w.sent = true
	plainHeaders(w.header)
	w.warn(w.header)
	_, err := w.out.Write(w.buffered.Bytes())
	w.buffered = bytes.Buffer{}
	return err
}

// save returns a function that drops what is written from now on. It must not be called once the
// headers have been sent.
func (w *listWriter) save() (restore func()) {
	writer, length := w.Save(), w.buffered.Len()
	return func() {
		writer()
		w.buffered.Truncate(length)
	}
}

func (w *listWriter) finish(metadata splice.Metadata) error {
	if w.Close(metadata) != nil || w.send() != nil || w.out.Flush() != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}

// fail ends a list that cannot be continued. A response that has begun ends with an error that every
// client detects: it is never incomplete without saying so.
func (w *listWriter) fail(err error) error {
	if w.sent {
		panic(http.ErrAbortHandler)
	}
	return err
}

// eventWriter writes the lines of a watch to the caller.
type eventWriter struct{ w http.ResponseWriter }

func (e eventWriter) begin() {
	plainHeaders(e.w.Header())
	e.w.WriteHeader(http.StatusOK)
	e.flush()
}

// write sends lines at once. It fails if the caller has disconnected.
func (e eventWriter) write(lines []byte) error {
	if len(lines) == 0 {
		return nil
	}
	if _, err := e.w.Write(lines); err != nil {
		return err
	}
	e.flush()
	return nil
}

// flush ignores errors, because the next write returns them.
func (e eventWriter) flush() { _ = http.NewResponseController(e.w).Flush() }

func errorEvent(err error) []byte {
	status := apierrors.NewInternalError(err).ErrStatus
	var known *apierrors.StatusError
	if errors.As(err, &known) {
		status = known.ErrStatus
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return encodeEvent("ERROR", status)
}

func encodeEvent(kind string, object any) []byte {
	text, err := json.Marshal(map[string]any{"type": kind, "object": object})
	if err != nil {
		return nil
	}
	return append(text, '\n')
}
