// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command golangci is golangci-lint with kube-api-linter, which golangci-lint does not contain itself.
// .golangci.yml says what it checks.
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/golangci/golangci-lint/v2/pkg/commands"
	_ "sigs.k8s.io/kube-api-linter" // The plugin kubeapilinter.
)

func main() {
	info := commands.BuildInfo{GoVersion: runtime.Version(), Version: "unknown"}
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, dependency := range build.Deps {
			if dependency.Path == "github.com/golangci/golangci-lint/v2" {
				info.Version = dependency.Version
			}
		}
	}
	if err := commands.Execute(info); err != nil {
		fmt.Fprintf(os.Stderr, "Running golangci-lint: %v\n", err)
		os.Exit(1)
	}
}
