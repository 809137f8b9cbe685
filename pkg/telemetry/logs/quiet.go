// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"slices"

	"github.com/go-logr/logr"
)

// libraryDetail is the level from which on libraries' internal steps are logged.
const libraryDetail = 2

// librarySteps are messages that controller-runtime logs at level 0, once for each source of each
// controller, each webhook and each health check, without use for operators. It has no setting for
// them.
var librarySteps = []string{
	"Starting EventSource", "Starting Controller", "Starting workers", "Registering webhook", "healthz check failed",
	"Starting metrics server", "Serving metrics server", "starting server",
}

// quiet filters librarySteps, which need libraryDetail.
type quiet struct{ logr.LogSink }

var _ logr.CallDepthLogSink = quiet{}

// newQuiet returns a logger that filters another's messages.
func newQuiet(logger logr.Logger) logr.Logger {
	return logger.WithSink(quiet{withCallDepth(logger.GetSink(), 1)})
}

// Info implements logr.LogSink.
func (q quiet) Info(level int, message string, keysAndValues ...any) {
	if slices.Contains(librarySteps, message) && level < libraryDetail {
		level = libraryDetail
		if !q.Enabled(level) {
			return
		}
	}
	q.LogSink.Info(level, message, keysAndValues...)
}

// WithValues implements logr.LogSink.
func (q quiet) WithValues(keysAndValues ...any) logr.LogSink {
	return quiet{q.LogSink.WithValues(keysAndValues...)}
}

// WithName implements logr.LogSink.
func (q quiet) WithName(name string) logr.LogSink { return quiet{q.LogSink.WithName(name)} }

// WithCallDepth keeps the caller's line in the log.
func (q quiet) WithCallDepth(depth int) logr.LogSink { return quiet{withCallDepth(q.LogSink, depth)} }

func withCallDepth(sink logr.LogSink, depth int) logr.LogSink {
	if deep, ok := sink.(logr.CallDepthLogSink); ok {
		return deep.WithCallDepth(depth)
	}
	return sink
}
