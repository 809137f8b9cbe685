// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"context"
	"testing"
	"time"
)

// way is one way of doing what is measured.
type way struct {
	name string
	// do does it once and says how long that took. It may do more that does not count.
	do func(context.Context) (time.Duration, error)
	// figures are printed beside the time, by their unit.
	figures map[string]float64
}

// sideBySide gives each way a figure of its own. In every round all ways have their
// turn, whichever the figure is of: so they meet the same machine. The first way
// also prints how many times as long as each other one it took in those rounds.
func sideBySide(b *testing.B, ways ...way) {
	for mine, w := range ways {
		b.Run(w.name, func(b *testing.B) {
			spent := rounds(b, ways)
			// Go's own figure would be the time of the whole round.
			b.ReportMetric(float64(spent[mine].Nanoseconds())/float64(b.N), "ns/op")
			reportAll(b, w.figures)
			if mine > 0 {
				return
			}
			for other := 1; other < len(ways); other++ {
				b.ReportMetric(float64(spent[mine])/float64(spent[other]), "x-"+ways[other].name)
			}
		})
	}
}

// together gives all ways one line, for what takes too long to be done once more for
// each of them: the figures of the first, the time of each other one, and how many
// times as long the first one took.
func together(b *testing.B, ways ...way) {
	spent := rounds(b, ways)
	b.ReportMetric(float64(spent[0].Nanoseconds())/float64(b.N), "ns/op")
	reportAll(b, ways[0].figures)
	for other := 1; other < len(ways); other++ {
		b.ReportMetric(float64(spent[other].Nanoseconds())/float64(b.N), ways[other].name+"-ns/op")
		b.ReportMetric(float64(spent[0])/float64(spent[other]), "x-"+ways[other].name)
	}
}

// reportAll reports figures by their units.
func reportAll(b *testing.B, figures map[string]float64) {
	b.Helper()
	for unit, value := range figures {
		b.ReportMetric(value, unit)
	}
}

func rounds(b *testing.B, ways []way) []time.Duration {
	spent := make([]time.Duration, len(ways))
	for b.Loop() {
		for i, w := range ways {
			took, err := w.do(b.Context())
			if err != nil {
				b.Fatalf("%s: %v", w.name, err)
			}
			spent[i] += took
		}
	}
	return spent
}

// timed measures all of what do does.
func timed(do func(context.Context) error) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		begin := time.Now()
		err := do(ctx)
		return time.Since(begin), err
	}
}
