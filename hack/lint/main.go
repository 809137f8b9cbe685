// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command lint is what go vet -vettool runs in place of go vet's own tool: its analyzers, all of
// them, and ours. These want errors that are wrapped and compared as they have to be (errorlint),
// none that is found and not returned (nilerr), no context kept in a struct (containedctx), one
// name for each package that is imported under another (importas), no exported name without
// a sentence about it (exported). A line is excused with //lint:ignore <analyzer> <why>. Go's
// build cache remembers what has passed.
package main

import (
	"github.com/gostaticanalysis/nilerr"
	"github.com/julz/importas"
	"github.com/polyfloyd/go-errorlint/errorlint"
	"github.com/sivchari/containedctx"
	"golang.org/x/tools/go/analysis/unitchecker"
)

// aliases are the names under which packages are imported, the paths as regular expressions.
var aliases = []string{
	`k8s\.io/api/(\w+)/(v\d\w*):$1$2`,
	`k8s\.io/apimachinery/pkg/apis/meta/v1:metav1`,
	`k8s\.io/apimachinery/pkg/api/errors:apierrors`,
	`sigs\.k8s\.io/controller-runtime:ctrl`,
	`fleetgate\.io/fleetgate/pkg/apis/(\w+)/(v\d\w*):$1$2`,
}

func main() {
	for _, alias := range aliases {
		if err := importas.Analyzer.Flags.Set("alias", alias); err != nil {
			panic(err)
		}
	}
	unitchecker.Main(append(vet,
		excusable(errorlint.NewAnalyzer()),
		excusable(nilerr.Analyzer),
		excusable(containedctx.Analyzer),
		excusable(importas.Analyzer),
		excusable(exported),
	)...)
}
