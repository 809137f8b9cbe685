// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-fleetgate is the kubectl plugin: `kubectl fleetgate` runs it.
package main

import (
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	ctrl "sigs.k8s.io/controller-runtime"

	"fleetgate.io/fleetgate/cmd/kubectl-fleetgate/app"
)

func main() {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	os.Exit(app.Run(ctrl.SetupSignalHandler(), streams, os.Args[1:]))
}
