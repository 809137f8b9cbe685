// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// excuse matches a directive that excludes its line, or the one below it: //lint:ignore <analyzer>
// <reason>. The reason is required.
const excuse = "//lint:ignore "

// excusable wraps an analyzer so that it skips excluded lines and generated files.
func excusable(a *analysis.Analyzer) *analysis.Analyzer {
	run := a.Run
	a.Run = func(pass *analysis.Pass) (any, error) {
		excused := excuses(pass, a.Name)
		own := *pass
		own.Report = func(d analysis.Diagnostic) {
			at := pass.Fset.Position(d.Pos)
			if !excused[line{at.Filename, at.Line}] && !strings.HasPrefix(filepath.Base(at.Filename), "zz_generated.") {
				pass.Report(d)
			}
		}
		return run(&own)
	}
	return a
}

type line struct {
	file   string
	number int
}

func excuses(pass *analysis.Pass, name string) map[line]bool {
	excused := map[line]bool{}
	for _, file := range pass.Files {
		for _, group := range file.Comments {
			for _, comment := range group.List {
				of, why, _ := strings.Cut(strings.TrimPrefix(comment.Text, excuse), " ")
				if !strings.HasPrefix(comment.Text, excuse) || of != name || strings.TrimSpace(why) == "" {
					continue
				}
				at := pass.Fset.Position(comment.Pos())
				excused[line{at.Filename, at.Line}], excused[line{at.Filename, at.Line + 1}] = true, true
			}
		}
	}
	return excused
}
