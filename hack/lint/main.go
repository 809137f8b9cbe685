// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command lint is the tool of go vet -vettool: all of go vet's own analyzers, staticcheck, and nilerr
// (errors that are found and not returned). //lint:ignore <analyzer> <reason> excludes a line. Go's build
// cache remembers what has passed.
//
// The linters that only read types are golangci-lint's (hack/golangci). These here also need facts about
// all dependencies: golangci-lint computes them in one process, which took 17 GiB for this module, and the
// command staticcheck a second time.
package main

import (
	"github.com/gostaticanalysis/nilerr"
	"golang.org/x/tools/go/analysis/unitchecker"
)

func main() {
	analyzers := append(vet, excusable(nilerr.Analyzer))
	for _, check := range staticchecks() {
		analyzers = append(analyzers, excusable(check))
	}
	unitchecker.Main(analyzers...)
}
