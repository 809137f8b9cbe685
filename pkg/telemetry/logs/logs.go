// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package logs configures the log of both programs, and keeps secrets out of it.
//
// From level 8 on, the Kubernetes client logs the bodies of requests and responses: tokens,
// Secrets, and Works with Secrets in them. It has no way to log only some bodies, so neither
// program allows that level, whatever its flags say. The audit log of the API server has the same
// information, and its policy can leave Secrets out.
package logs

import (
	"fmt"

	"github.com/go-logr/logr"
	logsapi "k8s.io/component-base/logs/api/v1"
	// --logging-format=json.
	_ "k8s.io/component-base/logs/json/register"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// MaxVerbosity is the highest level at which no body is logged.
const MaxVerbosity = 7

// Apply configures the process's log by the flags, but never more verbose than MaxVerbosity, and
// returns the logger that everything writes to. It may be called once. An error names the invalid
// flag.
func Apply(config *logsapi.LoggingConfiguration) (logr.Logger, error) {
	limited := limit(config)
	// No feature gate: the library's defaults. An empty one makes it panic.
	if err := logsapi.ValidateAndApply(config, nil); err != nil {
		return logr.Logger{}, fmt.Errorf("setting up logs: %w", err)
	}
	logger := klog.Background()
	ctrl.SetLogger(newQuiet(logger))
	if limited {
		logger.Info("Limited the log verbosity: higher levels log bodies of requests, with tokens and Secrets", "verbosity", MaxVerbosity)
	}
	return logger, nil
}

// limit lowers the verbosity, for all files or for some, and reports whether it did.
func limit(config *logsapi.LoggingConfiguration) bool {
	limited := config.Verbosity > MaxVerbosity
	config.Verbosity = min(config.Verbosity, MaxVerbosity)
	for i := range config.VModule {
		of := &config.VModule[i]
		limited = limited || of.Verbosity > MaxVerbosity
		of.Verbosity = min(of.Verbosity, MaxVerbosity)
	}
	return limited
}
