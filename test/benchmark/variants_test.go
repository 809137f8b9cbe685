// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"context"
	"testing"
	"time"
)

// variant is one side of a comparison.
type variant struct {
	name string
	// do runs once and returns the measured time. It can do more that does not count.
	do func(context.Context) (time.Duration, error)
	// figures are printed beside the time, by unit.
	figures map[string]float64
}

// sideBySide reports a result for each way. In every round all ways take turns, so that they meet
// the same load. The first way also prints its ratio to each other one.
func sideBySide(b *testing.B, variants ...variant) {
	for mine, w := range variants {
		b.Run(w.name, func(b *testing.B) {
			spent := rounds(b, variants)
			// Go's own figure would be the time of the whole round.
			b.ReportMetric(float64(spent[mine].Nanoseconds())/float64(b.N), "ns/op")
			reportAll(b, w.figures)
			if mine > 0 {
				return
			}
			for other := 1; other < len(variants); other++ {
				b.ReportMetric(float64(spent[mine])/float64(spent[other]), "x-"+variants[other].name)
			}
		})
	}
}

// together reports one line for all ways, where repeating would take too long: the figures of the
// first, the time of each other one, and the ratio to it.
func together(b *testing.B, variants ...variant) {
	spent := rounds(b, variants)
	b.ReportMetric(float64(spent[0].Nanoseconds())/float64(b.N), "ns/op")
	reportAll(b, variants[0].figures)
	for other := 1; other < len(variants); other++ {
		b.ReportMetric(float64(spent[other].Nanoseconds())/float64(b.N), variants[other].name+"-ns/op")
		b.ReportMetric(float64(spent[0])/float64(spent[other]), "x-"+variants[other].name)
	}
}

// reportAll reports figures by their units.
func reportAll(b *testing.B, figures map[string]float64) {
	b.Helper()
	for unit, value := range figures {
		b.ReportMetric(value, unit)
	}
}

func rounds(b *testing.B, variants []variant) []time.Duration {
	spent := make([]time.Duration, len(variants))
	for b.Loop() {
		for i, w := range variants {
			took, err := w.do(b.Context())
			if err != nil {
				b.Fatalf("%s: %v", w.name, err)
			}
			spent[i] += took
		}
	}
	return spent
}

// timed measures the whole of a function.
func timed(do func(context.Context) error) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		begin := time.Now()
		err := do(ctx)
		return time.Since(begin), err
	}
}
