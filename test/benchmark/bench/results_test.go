// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the charts that the tests compare")

func TestParse_GathersSamplesOfEachBenchmark(t *testing.T) {
	procs := ""
	if n := runtime.GOMAXPROCS(0); n > 1 {
		procs = fmt.Sprintf("-%d", n)
	}
	output := `goos: linux
pkg: fleetgate.io/fleetgate/test/benchmark
BenchmarkProxy/get/fleetgate` + procs + `   	     100	   1500000 ns/op	         0.500 x-direct
BenchmarkScale/place/beside-20` + procs + `  	       1	1800000000 ns/op	         1.800 p90-s
BenchmarkProxy/get/fleetgate` + procs + `   	     100	   1600000 ns/op	         0.600 x-direct
    placement_test.go:12: BenchmarkProxy is not measured
PASS
`
	got, err := parse(output, "m")
	if err != nil {
		t.Fatal(err)
	}
	want := []figure{
		{"Proxy/get/fleetgate", "m", map[string][]float64{"ns/op": {1500000, 1600000}, "x-direct": {0.5, 0.6}}},
		{"Scale/place/beside-20", "m", map[string][]float64{"ns/op": {1800000000}, "p90-s": {1.8}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("parse (-want +got):\n%s", diff)
	}
}

func TestMerge_ReplacesOnlyMeasuredGroups(t *testing.T) {
	named := func(names ...string) (all []figure) {
		for _, name := range names {
			all = append(all, figure{Name: name})
		}
		return all
	}
	got := merge(named("Proxy/get", "Proxy/removed", "Tunnel/upload"), named("Works/apply", "Proxy/get", "Proxy/exec"))
	if diff := cmp.Diff(named("Proxy/get", "Proxy/exec", "Tunnel/upload", "Works/apply"), got); diff != "" {
		t.Errorf("merge (-want +got):\n%s", diff)
	}
}

func TestBarsOf_OnlyFiguresWithBaseline(t *testing.T) {
	cases := map[string]struct {
		samples map[string][]float64
		want    []bar
	}{
		"no baseline":          {map[string][]float64{"ns/op": {1}, "writes/work": {4}}, nil},
		"ratio":                {map[string][]float64{"x-bare": {1.2345}}, []bar{{"a/b", 1.2345, "1.23 x bare"}}},
		"median of samples":    {map[string][]float64{"x-bare": {9, 1, 2}}, []bar{{"a/b", 2, "2 x bare"}}},
		"rate, more is better": {map[string][]float64{"of-direct": {0.5}}, []bar{{"a/b", 2, "0.5 of direct"}}},
		"published result":     {map[string][]float64{"p90-s": {5}, "published-p90-s": {20}}, []bar{{"a/b", 0.25, "5 p90-s; published 20"}}},
		"nothing measured":     {map[string][]float64{"x-bare": {0}, "of-direct": {0}}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, barsOf(figure{Name: "Group/a/b", Samples: c.samples}), cmp.AllowUnexported(bar{})); diff != "" {
				t.Errorf("barsOf (-want +got):\n%s", diff)
			}
		})
	}
}

// The charts of the documentation are those of its results.
func TestCharts_AreThoseOfTheResultsBesideThem(t *testing.T) {
	for _, dir := range []string{"testdata", "../../../docs/reference/benchmarks"} {
		figures, err := load(dir)
		if err != nil {
			t.Fatal(err)
		}
		drawn := charts(figures)
		if len(drawn) == 0 {
			t.Fatalf("%s has no results with a baseline", dir)
		}
		for name, want := range drawn {
			path := filepath.Join(dir, name)
			if *update {
				if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, string(got)); diff != "" {
				t.Errorf("%s: run go test ./test/benchmark/bench -update (-want +got):\n%s", path, diff)
			}
		}
		stored, err := filepath.Glob(filepath.Join(dir, "*.svg"))
		if err != nil || len(stored) != len(drawn) {
			t.Errorf("%s has the charts %v, want %d: %v", dir, stored, len(drawn), err)
		}
	}
}

func TestStore_KeepsResultsOfOtherGroups(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	for _, name := range []string{"Proxy/get", "Tunnel/upload"} {
		if err := store(dir, []figure{{Name: name, Machine: "m", Samples: map[string][]float64{"x-direct": {2}}}}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := load(dir)
	if err != nil || len(got) != 2 {
		t.Errorf("results = %v, %v, want those of both groups", got, err)
	}
	if charts, err := filepath.Glob(filepath.Join(dir, "*.svg")); err != nil || len(charts) != 2 {
		t.Errorf("charts = %v, %v, want those of both groups", charts, err)
	}
}
