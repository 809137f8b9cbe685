// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	yamlv3 "go.yaml.in/yaml/v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"fleetgate.io/fleetgate/pkg/plugin/hub"
)

// Formats of --output; none is for people.
const (
	outputJSON = "json"
	outputYAML = "yaml"
	outputName = "name"
	outputWide = "wide"
)

// outputFlag binds --output, which completes to its formats.
func outputFlag(command *cobra.Command, to *string, forPeople string, formats ...string) {
	command.Flags().StringVarP(to, "output", "o", "", fmt.Sprintf("How to print: %s. Empty: %s.", either(formats, "or"), forPeople))
	// The error is that there is no such flag.
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// checkOutput is an error for a format that a command does not have.
func checkOutput(output string, formats ...string) error {
	if output != "" && !slices.Contains(formats, output) {
		return fmt.Errorf("--output %q is none of %s", output, either(formats, "and"))
	}
	return nil
}

// either lists words as a sentence does.
func either(words []string, last string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " " + last + " " + words[len(words)-1]
}

// writeAs prints what programs read, as JSON or YAML. Texts of members and users are whole in it;
// in JSON what would not show stands as an escape.
func (s *session) writeAs(format string, value any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "    ") // As kubectl's.
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("writing %T: %w", value, err)
	}
	if format == outputJSON {
		_, err := s.Out.Write(hub.Visible(text.Bytes()))
		return err
	}
	// JSON is not read as YAML: that has no control characters, which members may write.
	var object any
	if err := utiljson.Unmarshal(text.Bytes(), &object); err != nil {
		return fmt.Errorf("writing %T as YAML: %w", value, err)
	}
	printer := yamlv3.NewEncoder(s.Out)
	printer.SetIndent(2)
	return errors.Join(printer.Encode(object), printer.Close())
}
