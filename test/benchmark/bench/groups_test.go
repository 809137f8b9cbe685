// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestChosenGroups(t *testing.T) {
	cases := map[string]struct {
		text string
		want []string
		// fails says that the text is refused.
		fails bool
	}{
		"nothing is everything":   {text: "", want: groups},
		"all is everything":       {text: "all", want: groups},
		"one":                     {text: "proxy", want: []string{"proxy"}},
		"several, as help has it": {text: "tunnel|proxy", want: []string{"tunnel", "proxy"}},
		"several, with commas":    {text: "works, admission", want: []string{"works", "admission"}},
		"an unknown one":          {text: "proxies", fails: true},
		"a known and an unknown":  {text: "proxy nothing", fails: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := chosen(c.text)
			if (err != nil) != c.fails {
				t.Fatalf("chosen(%q): %v, want an error: %v", c.text, err, c.fails)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("chosen(%q) (-want +got):\n%s", c.text, diff)
			}
		})
	}
}

// TestGroupsThatDocumentsNameCanBeAskedFor: two of them said how to run groups that were refused.
func TestGroupsThatDocumentsNameCanBeAskedFor(t *testing.T) {
	named := regexp.MustCompile(`BENCH=('[^']+'|[a-z|]+)`)
	for file, least := range map[string]int{"CONTRIBUTING.md": 3, "Makefile": 1} {
		found := named.FindAllStringSubmatch(fileOfProject(t, file), -1)
		if len(found) < least {
			t.Errorf("%s names groups %d times, want %d at least", file, len(found), least)
		}
		for _, match := range found {
			if _, err := chosen(match[1]); err != nil {
				t.Errorf("%s: BENCH=%s: %v", file, match[1], err)
			}
		}
	}
}

func TestTheHelpOfMakeListsEveryGroup(t *testing.T) {
	if list := "BENCH=" + strings.Join(groups, "|") + " "; !strings.Contains(fileOfProject(t, "Makefile"), list) {
		t.Errorf("the Makefile does not have %q", list)
	}
}

func fileOfProject(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../../" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestPlanRunsOnlyWhatExists(t *testing.T) {
	module := fstest.MapFS{
		"pkg/tunnel/native/multiplexer_test.go": {Data: []byte("package native\n\nfunc BenchmarkTunnel(b *testing.B) {\n}\n\nfunc BenchmarkFrames(b *testing.B) {\n}\n")},
		"pkg/tunnel/multiplexer.go":             {Data: []byte("package tunnel\n\nfunc BenchmarkWorks(b *testing.B) {\n}\n")},
		"test/benchmark/proxy_test.go":          {Data: []byte("package benchmark\n\nfunc BenchmarkProxy(b *testing.B) {\n}\n")},
		"test/benchmark/tunnel_test.go":         {Data: []byte("package benchmark\n\nfunc BenchmarkTunnel(b *testing.B) {\n}\n")},
	}
	found, err := findBenchmarks(module)
	if err != nil {
		t.Fatalf("findBenchmarks: %v", err)
	}
	cases := map[string]struct {
		wanted []string
		want   plan
	}{
		"a group in two packages": {
			wanted: []string{"tunnel"},
			want:   plan{benchmarks: []string{"BenchmarkTunnel"}, packages: []string{"./pkg/tunnel/native", "./test/benchmark"}},
		},
		"a group whose name only stands in code that is no test": {
			wanted: []string{"works"},
			want:   plan{without: []string{"works"}},
		},
		"a package with two groups runs once": {
			wanted: []string{"tunnel", "proxy", "placement"},
			want: plan{
				benchmarks: []string{"BenchmarkTunnel", "BenchmarkProxy"},
				packages:   []string{"./pkg/tunnel/native", "./test/benchmark"},
				without:    []string{"placement"},
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := planOf(c.wanted, found)
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(plan{})); diff != "" {
				t.Errorf("planOf (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSentenceNamesGroupsWithoutFigures(t *testing.T) {
	cases := map[string][]string{
		"The group works has no benchmark yet.":                          {"works"},
		"The groups placement and works have no benchmark yet.":          {"placement", "works"},
		"The groups tunnel, proxy and membership have no benchmark yet.": {"tunnel", "proxy", "membership"},
	}
	for want, without := range cases {
		if got := (plan{without: without}).sentence(); got != want {
			t.Errorf("sentence of %q is %q, want %q", without, got, want)
		}
	}
}

// TestMachineIsConfiguration holds the form of benchstat's configuration lines: a key
// in lower case without spaces, a colon, a value.
func TestMachineIsConfiguration(t *testing.T) {
	if got := machine(); !regexp.MustCompile(`^machine: go.+, [1-9]\d* cores, .*memory$`).MatchString(got) {
		t.Errorf("machine() = %q", got)
	}
}
