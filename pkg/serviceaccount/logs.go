// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccount

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// bodyLevel is the verbosity from which the Kubernetes client writes the bodies
// of requests and answers into the log.
const bodyLevel = 8

// WithoutBodies returns a context with which requests can be made whose bodies
// hold tokens: its logger is the same, but never as verbose as to show them.
func WithoutBodies(ctx context.Context) context.Context {
	logger := klog.FromContext(ctx)
	if sink := logger.GetSink(); sink != nil {
		logger = logger.WithSink(bodiless{sink})
	}
	return klog.NewContext(ctx, logger)
}

// bodiless is a sink that is deaf from bodyLevel on.
type bodiless struct{ logr.LogSink }

var _ logr.CallDepthLogSink = bodiless{}

// Enabled is false for every level at which bodies are written.
func (b bodiless) Enabled(level int) bool { return level < bodyLevel && b.LogSink.Enabled(level) }

// WithValues keeps the limit.
func (b bodiless) WithValues(keysAndValues ...any) logr.LogSink {
	return bodiless{b.LogSink.WithValues(keysAndValues...)}
}

// WithName keeps the limit.
func (b bodiless) WithName(name string) logr.LogSink { return bodiless{b.LogSink.WithName(name)} }

// WithCallDepth keeps the limit, and the place in the source if the sink knows it.
func (b bodiless) WithCallDepth(depth int) logr.LogSink {
	if sink, ok := b.LogSink.(logr.CallDepthLogSink); ok {
		return bodiless{sink.WithCallDepth(depth)}
	}
	return b
}
