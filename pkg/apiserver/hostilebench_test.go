// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// hostileTexts are texts of JSON strings, of about size bytes, that a member can choose to slow a reader.
func hostileTexts(size int) map[string]string {
	return map[string]string{
		"line-breaks":    strings.Repeat(`\n`, size/2),
		"escaped-quotes": strings.Repeat(`\"`, size/2),
		"backslashes":    strings.Repeat(`\\`, size/2),
		"code-points":    strings.Repeat(`\u0022`, size/6),
		"brackets":       strings.Repeat(`}]`, size/2),
		"many-strings":   strings.Repeat(`","a":"`, size/7),
		"many-lists":     `","b":[` + strings.Repeat(`[],`, size/3) + `[]],"c":"`,
	}
}

// hostileLists measures a list of twenty members through a view. One of them sends eight items of half a
// MiB that are made to slow the reader. The same list with plain text takes turns.
func hostileLists(b *testing.B) {
	const members, items, size = 20, 8, 512 << 10
	all := crowdOf(b, members, listing(10))
	g := newGateway(b, all, unbounded)
	list := func(b *testing.B, text string) time.Duration {
		item := `{"metadata":{"name":"x"},"data":{"x":"` + text + `"}}`
		body := `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"3"},"items":[` + strings.Repeat(item+",", items-1) + item + `]}`
		all["m0000"].serve(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, body)
		})
		before := cpu(b)
		read, _, err := reads(b.Context(), g.client, "https://"+g.address+podsOfAll+"?memberTimeoutSeconds=30", "u", "application/json")
		if err == nil && read < int64(len(body)) {
			b.Fatalf("the list has %d bytes, less than one of its members sent", read)
		}
		if err != nil {
			b.Fatal(err)
		}
		return cpu(b) - before
	}
	texts := hostileTexts(size)
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		b.Run(name, func(b *testing.B) {
			var hostile, plain time.Duration
			n := 0
			for b.Loop() {
				n++
				plain += list(b, strings.Repeat("a", len(texts[name])))
				hostile += list(b, texts[name])
			}
			b.ReportMetric(milliseconds(hostile)/float64(n), "cpu-ms/list")
			b.ReportMetric(hostile.Seconds()/plain.Seconds(), "x-plain")
			b.ReportMetric(0, "ns/op")
		})
	}
}
