// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package logs sets up the log of both programs, and keeps secrets out of it.
//
// From level 8 on, the Kubernetes client writes the bodies of requests and answers
// into the log: tokens, Secrets, and Works with Secrets in them. There is no way to
// write some bodies only, so that neither program goes that far, whatever its flags
// say. The audit log of the API server has what a body would tell, and leaves
// Secrets out where its policy says so.
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

// MaxVerbosity is the last level at which no body is in the log.
const MaxVerbosity = 7

// Apply sets up the process's log as the flags say, but never more verbose than
// MaxVerbosity, and returns the logger that everything writes to. It may be called
// once. An error names the flag that is wrong.
func Apply(config *logsapi.LoggingConfiguration) (logr.Logger, error) {
	limited := limit(config)
	// No gate: all that the library offers by default. An empty one makes it panic.
	if err := logsapi.ValidateAndApply(config, nil); err != nil {
		return logr.Logger{}, fmt.Errorf("setting up logs: %w", err)
	}
	logger := klog.Background()
	ctrl.SetLogger(newQuiet(logger))
	if limited {
		logger.Info("The log is less verbose than asked for: above this level, bodies of requests, with tokens and Secrets, would be in it", "verbosity", MaxVerbosity)
	}
	return logger, nil
}

// limit lowers what is too verbose, for all files or for some, and reports whether
// there was any.
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
