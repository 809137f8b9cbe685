// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"sigs.k8s.io/yaml"
)

// The output formats.
const (
	Table = "table"
	YAML  = "yaml"
	JSON  = "json"
)

// Formats returns the output formats.
func Formats() []string { return []string{Table, YAML, JSON} }

// Write writes results in one of Formats.
func Write(out io.Writer, format string, results []Result) error {
	if format == Table {
		return Print(out, results)
	}
	text, err := json.MarshalIndent(results, "", "  ")
	if err == nil && format == YAML {
		text, err = yaml.JSONToYAML(text)
	}
	if err != nil {
		return fmt.Errorf("writing the decision: %w", err)
	}
	_, err = fmt.Fprintln(out, strings.TrimSuffix(string(text), "\n"))
	return err
}

// Print writes results as tables, one for each placement.
func Print(out io.Writer, results []Result) error {
	for i, r := range results {
		if i > 0 {
			if _, err := fmt.Fprintln(out); err != nil {
				return err
			}
		}
		if err := r.print(out); err != nil {
			return err
		}
	}
	return nil
}

func (r *Result) print(out io.Writer) error {
	word := "fulfilled"
	if !r.Fulfilled {
		word = "not fulfilled"
	}
	if _, err := fmt.Fprintf(out, "%s (%s): %s, %s\n\n", r.Placement, r.Type, word, r.Summary); err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	scored := r.Type == typePlacement
	if scored {
		fmt.Fprintln(table, "CLUSTER\tSELECTED\tCHANGE\tSCORE\tREASON")
	} else {
		fmt.Fprintln(table, "CLUSTER\tSELECTED\tCHANGE\tAFFINITY\tSPREAD\tREASON")
	}
	for _, c := range r.Clusters {
		selected := "no"
		if c.Selected {
			selected = "yes"
		}
		reason := c.Reason
		if c.Rule != "" {
			reason = c.Rule + ": " + reason
		}
		if scored {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", c.Name, selected, c.Change, number(c.Score), reason)
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", c.Name, selected, c.Change, number(c.AffinityScore), number(c.TopologySpreadScore), reason)
	}
	return table.Flush()
}

func number[N int32 | int64](n *N) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(int64(*n), 10)
}
