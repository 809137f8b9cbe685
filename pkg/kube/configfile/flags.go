// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package configfile

import (
	"errors"
	"fmt"
	"io"
	"regexp"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-base/cli/flag"
)

// fieldAnnotation is the key of a flag's annotation that names the field that the flag overrides.
const fieldAnnotation = "configfile.fleetgate.io/field"

// Override declares that a flag overrides a field.
func Override(flags *pflag.FlagSet, name, path string) {
	f := flags.Lookup(name)
	f.Usage += " Overrides " + path + " of --config."
	f.Annotations = map[string][]string{fieldAnnotation: {path}}
}

// FieldOf returns the path of the field that a flag overrides, or an empty string.
func FieldOf(f *pflag.Flag) string {
	if path := f.Annotations[fieldAnnotation]; len(path) == 1 {
		return path[0]
	}
	return ""
}

// Recorder keeps the values that a command line gives to flags.
type Recorder struct{ given []assignment }

type assignment struct{ name, value string }

type recorded struct {
	pflag.Value
	name     string
	recorder *Recorder
}

// Set sets the flag's value and records it.
func (r *recorded) Set(value string) error {
	if err := r.Value.Set(value); err != nil {
		return err
	}
	r.recorder.given = append(r.recorder.given, assignment{r.name, value})
	return nil
}

// Record records the values that the flags get from now on.
func Record(flags *pflag.FlagSet) *Recorder {
	r := &Recorder{}
	flags.VisitAll(func(f *pflag.Flag) { f.Value = &recorded{f.Value, f.Name, r} })
	return r
}

// Replay gives other flags of the same names the recorded values, in the same order.
func (r *Recorder) Replay(flags *pflag.FlagSet) error {
	var all []error
	for _, given := range r.given {
		all = append(all, flags.Set(given.name, given.value))
	}
	return errors.Join(all...)
}

var index = regexp.MustCompile(`\[.*?\]`)

// Explain returns the errors as one, each with the flag that overrides its field.
func Explain(problems field.ErrorList, sections flag.NamedFlagSets) error {
	names := map[string]string{}
	for _, flags := range sections.FlagSets {
		flags.VisitAll(func(f *pflag.Flag) { names[FieldOf(f)] = f.Name })
	}
	var all []error
	for _, problem := range problems {
		if name := names[index.ReplaceAllString(problem.Field, "")]; name != "" {
			problem.Field += " (--" + name + ")"
		}
		all = append(all, problem)
	}
	return errors.Join(all...)
}

// SetUsage prints the flags of a command by section. Subcommands print theirs as before.
func SetUsage(command *cobra.Command, sections flag.NamedFlagSets) {
	const columns = 120
	usage, help := command.UsageFunc(), command.HelpFunc()
	write := func(to io.Writer) {
		fmt.Fprintf(to, "Usage:\n  %s\n", command.UseLine())
		if command.HasAvailableSubCommands() {
			fmt.Fprintf(to, "  %s [command]\n\nCommands:\n", command.CommandPath())
		}
		for _, sub := range command.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(to, "  %-*s %s\n", sub.NamePadding(), sub.Name(), sub.Short)
			}
		}
		flag.PrintSections(to, sections, columns)
	}
	command.SetUsageFunc(func(c *cobra.Command) error {
		if c != command {
			return usage(c)
		}
		write(c.OutOrStderr())
		return nil
	})
	command.SetHelpFunc(func(c *cobra.Command, args []string) {
		if c != command {
			help(c, args)
			return
		}
		fmt.Fprintf(c.OutOrStdout(), "%s\n\n", c.Long)
		write(c.OutOrStdout())
	})
	command.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if c != command {
			return err
		}
		return fmt.Errorf("%w: see --help, and set fields without a flag in the file of --config", err)
	})
}
