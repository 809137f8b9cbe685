// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"fleetgate.io/fleetgate/pkg/console"
	"fleetgate.io/fleetgate/pkg/plugin/hub"
)

func newConsoleCommand(s *session) *cobra.Command {
	open := true
	command := &cobra.Command{
		Use:   "console",
		Short: "Look at the fleet in a browser",
		Long: `Console serves pages over the fleet on this machine alone, with your kubeconfig behind
them, and opens the browser: members as tiles, placements with what keeps each from
where it should be, runs, any kind over all members, and what is wrong now. Pages
follow changes. It ends with this command.`,
		Example: "  kubectl fleetgate console",
		Args:    cobra.NoArgs,
		RunE: s.onHub(func(ctx context.Context, h *hub.Hub, _ []string) error {
			c := &console.Console{Hub: h, Clock: s.Clock}
			return c.Run(ctx, func(file, url string) {
				s.say("The console is at %s, and is opened once by the file\n  %s\nEnd it with Ctrl-C.\n", url, file)
				if open {
					// Where there is no browser the file is said above.
					_ = opener(ctx, file).Start()
				}
			})
		}),
	}
	command.Flags().BoolVar(&open, "open", true, "Open the browser. Without, say which file to open.")
	return command
}

// opener is what opens a file with the program that the user has for it.
func opener(ctx context.Context, file string) *exec.Cmd {
	switch runtime.GOOS {
	case "darwin":
		return exec.CommandContext(ctx, "open", file)
	case "windows":
		return exec.CommandContext(ctx, "rundll32", "url.dll,FileProtocolHandler", file)
	}
	return exec.CommandContext(ctx, "xdg-open", file)
}
