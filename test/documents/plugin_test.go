// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"fleetgate.io/fleetgate/cmd/kubectl-fleetgate/app"
)

// commandsPage is the page of the plugin's commands.
const commandsPage = "kubectl-fleetgate"

// pluginPage returns the --help of the plugin's own commands. kubectl documents its own.
func pluginPage() string {
	var b strings.Builder
	b.WriteString("# kubectl fleetgate\n\nMade from the help texts: go test ./test/documents -update. [plugin.md](plugin.md) has the tasks.\n\n")
	root := app.NewCommand(genericiooptions.NewTestIOStreamsDiscard())
	for _, group := range root.Groups() {
		if group.ID == app.GroupOfKubectl {
			continue
		}
		for _, command := range root.Commands() {
			if command.GroupID == group.ID {
				describe(&b, command)
			}
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func describe(b *strings.Builder, command *cobra.Command) {
	use := strings.TrimPrefix(command.UseLine(), "kubectl-fleetgate ")
	use = strings.TrimPrefix(use, "kubectl fleetgate ")
	fmt.Fprintf(b, "## %s\n\n`kubectl fleetgate %s`\n\n%s\n\n```\n%s\n```\n", strings.TrimPrefix(strings.TrimPrefix(command.CommandPath(), "kubectl-fleetgate "), "kubectl fleetgate "),
		strings.TrimSuffix(use, " [flags]"), command.Long, command.Example)
	rows := ""
	command.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		standard := ""
		if value := strings.Trim(f.DefValue, "[]"); value != "" {
			standard = "`" + value + "`"
		}
		rows += fmt.Sprintf("| `%s` | %s | %s |\n", name, standard, f.Usage)
	})
	if rows != "" {
		b.WriteString("\n| flag | default | meaning |\n|---|---|---|\n" + rows)
	}
	b.WriteString("\n")
	for _, below := range command.Commands() {
		describe(b, below)
	}
}
