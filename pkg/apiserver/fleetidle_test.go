// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"
)

// idleWatches is what ten watches through a view hold for each member while nothing happens: heap
// and stacks of the whole process, which is the members' too, beside those of as many watches of a
// client that asks each member itself. What members hold is in both.
func idleWatches(b *testing.B, members int) {
	const watches = 10
	begun := make(chan string, members*watches)
	all := crowdOf(b, members, watched(nil, begun))
	g := newGateway(b, all, unbounded, throughTunnels(b, all))
	direct := directClient(b)
	const path = "/api/v1/namespaces/shop/pods"
	var each []string
	for _, of := range all {
		each = append(each, of.api.URL+path)
	}
	view := []string{"https://" + g.address + podsOfAll}
	b.Run("view", func(b *testing.B) { holdWatches(b, g.client, view, watches, members*watches, begun) })
	b.Run("direct", func(b *testing.B) { holdWatches(b, direct, each, watches, members*watches, begun) })
}

// holdWatches opens so many watches of each URL, and says what each of those holds that members have
// begun, all of which are told there.
func holdWatches(b *testing.B, client *http.Client, urls []string, watches, all int, begun <-chan string) {
	for b.Loop() {
		for _, url := range urls { // Connections are there before.
			if _, _, err := reads(b.Context(), client, url+"?memberTimeoutSeconds=30", "u", "application/json"); err != nil {
				b.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(b.Context())
		var reading sync.WaitGroup
		memory, goroutines := heldNow(), runtime.NumGoroutine()
		for range watches {
			for _, url := range urls {
				reading.Go(func() {
					if _, _, err := reads(ctx, client, url+"?watch=true&memberTimeoutSeconds=30", "u", "application/json"); err != nil && ctx.Err() == nil {
						b.Error(err)
					}
				})
			}
		}
		for range all {
			<-begun
		}
		const quiet = 3 * time.Second // Each tells by a bookmark that nothing happens.
		time.Sleep(quiet)
		each := float64(all)
		b.ReportMetric(float64(heldNow()-memory)/1024/each, "KiB/member-watch")
		b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/each, "goroutines/member-watch")
		cancel()
		reading.Wait()
	}
	b.ReportMetric(0, "ns/op")
}

// heldNow is what lives in the heap, and the stacks, once what nobody needs is collected: a stack
// that is larger than it has to be is halved each time.
func heldNow() int64 {
	const halvings = 4
	for range halvings {
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc + stats.StackInuse)
}
