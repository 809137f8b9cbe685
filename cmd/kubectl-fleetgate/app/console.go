// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"fleetgate.io/fleetgate/pkg/console"
	"fleetgate.io/fleetgate/pkg/inspect/overview"
)

func newConsoleCommand(s *session) *cobra.Command {
	open := true
	command := &cobra.Command{
		Use:   "console",
		Short: "Open the web console of the fleet",
		Long: `Serve the web console on this machine and open it in a browser. The console reads the hub
with your kubeconfig and shows members, placements with their problems, update runs,
resources of any kind across members, and all current problems. Pages update live. The
console ends with this command.`,
		Example: "  kubectl fleetgate console",
		Args:    cobra.NoArgs,
		RunE: s.onHub(func(ctx context.Context, h *overview.Hub, _ []string) error {
			c := &console.Console{Hub: h, Clock: s.Clock}
			return c.Run(ctx, func(file, url string) {
				s.printf("The console is at %s and can be opened once with this file:\n  %s\nPress Ctrl-C to stop.\n", url, file)
				if open {
					// Without a browser, the user opens the file printed above.
					_ = opener(ctx, file).Start()
				}
			})
		}),
	}
	command.Flags().BoolVar(&open, "open", true, "Open the browser. If false, only print the file to open.")
	return command
}

// opener is the command that opens a file with its default application.
func opener(ctx context.Context, file string) *exec.Cmd {
	switch runtime.GOOS {
	case "darwin":
		return exec.CommandContext(ctx, "open", file)
	case "windows":
		return exec.CommandContext(ctx, "rundll32", "url.dll,FileProtocolHandler", file)
	}
	return exec.CommandContext(ctx, "xdg-open", file)
}
