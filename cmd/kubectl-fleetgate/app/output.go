// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	yamlv3 "go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// Formats of --output. Without one, the output is for people.
const (
	outputJSON = "json"
	outputYAML = "yaml"
	outputName = "name"
	outputWide = "wide"
)

// outputFlag binds --output with completion of its formats. Unset says what the command does
// without it.
func outputFlag(command *cobra.Command, to *string, unset string, formats ...string) {
	command.Flags().StringVarP(to, "output", "o", "", fmt.Sprintf("Output format: %s. If unset, %s.", joined(formats, "or"), unset))
	// It only fails if the flag does not exist.
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// checkOutput returns an error for a format that a command does not support.
func checkOutput(output string, formats ...string) error {
	if output != "" && !slices.Contains(formats, output) {
		return fmt.Errorf("--output %q is not supported: use %s", output, joined(formats, "or"))
	}
	return nil
}

// joined lists words as in a sentence.
func joined(words []string, last string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " " + last + " " + words[len(words)-1]
}

// newTable returns a table with columns of text and no rows.
func newTable(columns ...string) *metav1.Table {
	table := &metav1.Table{}
	for _, name := range columns {
		table.ColumnDefinitions = append(table.ColumnDefinitions, metav1.TableColumnDefinition{Name: name, Type: "string"})
	}
	return table
}

// writeAs prints machine-readable output as JSON or YAML. Text from members and users is not
// shortened; in JSON, characters that are not printable are escaped.
func (s *session) writeAs(format string, value any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "    ") // As kubectl does.
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("writing %T: %w", value, err)
	}
	if format == outputJSON {
		_, err := s.Out.Write(untrusted.VisibleJSON(text.Bytes()))
		return err
	}
	// Decode as JSON, not as YAML: YAML forbids control characters, which members may write.
	var object any
	if err := utiljson.Unmarshal(text.Bytes(), &object); err != nil {
		return fmt.Errorf("writing %T as YAML: %w", value, err)
	}
	printer := yamlv3.NewEncoder(s.Out)
	printer.SetIndent(2)
	return errors.Join(printer.Encode(object), printer.Close())
}
