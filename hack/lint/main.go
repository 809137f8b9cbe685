// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command lint is the tool of go vet -vettool: all of go vet's own analyzers, plus errorlint
// (wrapped errors and their comparison), nilerr (errors that are found and not returned),
// containedctx (a context in a struct), importas (one name per import), and exported (comments of
// exported names). //lint:ignore <analyzer> <reason> excludes a line. Go's build cache remembers
// what has passed.
package main

import (
	"github.com/gostaticanalysis/nilerr"
	"github.com/julz/importas"
	"github.com/polyfloyd/go-errorlint/errorlint"
	"github.com/sivchari/containedctx"
	"golang.org/x/tools/go/analysis/unitchecker"
)

// aliases are the import names by package path, as regular expressions.
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
