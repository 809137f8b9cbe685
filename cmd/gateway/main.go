// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command gateway is fleetgate on the hub.
package main

import (
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"fleetgate.io/fleetgate/cmd/gateway/app"
)

func main() {
	if err := app.NewCommand().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		os.Exit(1)
	}
}
