// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// commandsOf are all commands below one that do something.
func commandsOf(root *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, c := range root.Commands() {
		if c.Name() == "help" || c.Name() == "completion" {
			continue
		}
		all = append(append(all, c), commandsOf(c)...)
	}
	return all
}

func TestCommands_ExamplesParse(t *testing.T) {
	root := NewCommand(genericiooptions.NewTestIOStreamsDiscard())
	for _, c := range commandsOf(root) {
		if c.Parent() != root && c.Parent().GroupID == GroupOfKubectl {
			continue // These are kubectl's.
		}
		if c.Short == "" || c.Long == "" || c.Example == "" {
			t.Errorf("%s has no short or long text, or no example", c.CommandPath())
		}
		for _, line := range strings.Split(c.Example, "\n") {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "#") {
				continue
			}
			line, _, _ = strings.Cut(line, " > ")
			words, ok := strings.CutPrefix(line, "kubectl fleetgate ")
			if !ok {
				t.Errorf("%s: example %q is not a call of the plugin", c.CommandPath(), line)
				continue
			}
			fresh := NewCommand(genericiooptions.NewTestIOStreamsDiscard())
			found, args, err := fresh.Find(strings.Fields(words))
			if err != nil || !strings.HasPrefix(found.CommandPath(), c.CommandPath()) {
				t.Errorf("%q is not %s: %v", line, c.CommandPath(), err)
				continue
			}
			if err := found.ParseFlags(args); err != nil {
				t.Errorf("%q: %v", line, err)
				continue
			}
			if found.Args != nil {
				if err := found.Args(found, found.Flags().Args()); err != nil {
					t.Errorf("%q: %v", line, err)
				}
			}
		}
	}
}

func TestRun_ExitCodeAndError(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"help":               {[]string{"members", "--help"}, exitDone, ""},
		"an unknown command": {[]string{"membres"}, exitFailed, "error: unknown command"},
		"an unknown flag":    {[]string{"members", "--nothing"}, exitFailed, "error: unknown flag"},
		"no hub":             {[]string{"members", "--kubeconfig=/does/not/exist"}, exitFailed, "error: reading your kubeconfig"},
		"a strange output":   {[]string{"members", "-o", "toml"}, exitFailed, "toml"},
		"a table of a tree":  {[]string{"tree", "shop", "-o", "wide"}, exitFailed, `--output "wide" is not supported: use json or yaml`},
		"names of answers":   {[]string{"why", "shop", "-o", "name"}, exitFailed, `--output "name" is not supported: use json or yaml`},
		"a patch":            {[]string{"diff", "shop", "-o", "patch"}, exitFailed, `--output "patch" is not supported: use json or yaml`},
		"runs, wide":         {[]string{"run", "list", "-o", "wide"}, exitFailed, `--output "wide" is not supported: use name, json or yaml`},
		"a strange selector": {[]string{"members", "-l", "a=b=c"}, exitFailed, "--selector"},
		"a strange taint":    {[]string{"taint", "m", "key:NoExecute"}, exitFailed, "NoSchedule"},
		"nowhere":            {[]string{"get", "pods"}, exitFailed, "no member selected: set --member NAME"},
		"nobody to join":     {[]string{"join", "m"}, exitFailed, "--member-context"},
		"a long token":       {[]string{"token", "--uses=0"}, exitFailed, "--uses from 1"},
	} {
		t.Run(name, func(t *testing.T) {
			var errOut bytes.Buffer
			streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &bytes.Buffer{}, ErrOut: &errOut}
			if code := Run(t.Context(), streams, test.args); code != test.code || !strings.Contains(errOut.String(), test.want) {
				t.Errorf("ended with %d and %q, want %d and %q", code, errOut.String(), test.code, test.want)
			}
		})
	}
}
