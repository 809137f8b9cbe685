// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"net/http"
	"time"
)

// readWithin is how long a caller may take to read what was written before.
const readWithin = time.Minute

// progressWriter aborts the response if its caller reads nothing for readWithin.
type progressWriter struct {
	http.ResponseWriter
	stalled *time.Timer
}

func newProgressWriter(w http.ResponseWriter) *progressWriter {
	stalled := time.AfterFunc(readWithin, func() {
		// A writer without deadlines is not one of the server.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now())
	})
	stalled.Stop()
	return &progressWriter{ResponseWriter: w, stalled: stalled}
}

// Write fails if it takes longer than readWithin.
func (w *progressWriter) Write(b []byte) (int, error) {
	w.stalled.Reset(readWithin)
	defer w.stalled.Stop()
	return w.ResponseWriter.Write(b)
}

// FlushError is Write for what was written before.
func (w *progressWriter) FlushError() error {
	w.stalled.Reset(readWithin)
	defer w.stalled.Stop()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap gives access to the other features of the wrapped writer.
func (w *progressWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
