// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package multicall runs one of several programs in one binary, chosen by the name under which the
// binary is called.
package multicall

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
)

// Main runs the program that the binary is called by and exits with its status.
func Main(programs map[string]func() int) {
	name := filepath.Base(os.Args[0])
	program, known := programs[name]
	if !known {
		names := slices.Sorted(maps.Keys(programs))
		fmt.Fprintf(os.Stderr, "%s: call this binary through a link named after one of: %s\n", name, strings.Join(names, ", "))
		os.Exit(2)
	}
	os.Exit(program())
}

// Command is the program that a cobra command is.
func Command(command func() *cobra.Command) func() int {
	return func() int { return cli.Run(command()) }
}
