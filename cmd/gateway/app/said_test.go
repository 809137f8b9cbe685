// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"fleetgate.io/fleetgate/test/support/golden"
)

func TestHelp_MatchesGolden(t *testing.T) {
	var text strings.Builder
	var say func(command *cobra.Command)
	say = func(command *cobra.Command) {
		fmt.Fprintf(&text, "== %s\n%s\n%s", command.CommandPath(), command.Long, command.UsageString())
		for _, of := range command.Commands() {
			say(of)
		}
	}
	say(NewCommand())
	golden.Text(t, "help.txt", text.String())
}
