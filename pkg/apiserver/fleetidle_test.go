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

// idleWatches measures what ten idle watches through a view hold per member, in heap and stacks of
// the whole process. It compares this with as many watches of a client that asks each member
// itself. Both include what the members hold.
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

// holdWatches opens that many watches of each URL, and returns what each watch holds once all
// members have begun.
func holdWatches(b *testing.B, client *http.Client, urls []string, watches, all int, begun <-chan string) {
	for b.Loop() {
		for _, url := range urls { // Connections are open already.
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
		const quiet = 3 * time.Second // A bookmark per watch says that nothing happens.
		time.Sleep(quiet)
		each := float64(all)
		b.ReportMetric(float64(heldNow()-memory)/1024/each, "KiB/member-watch")
		b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/each, "goroutines/member-watch")
		cancel()
		reading.Wait()
	}
	b.ReportMetric(0, "ns/op")
}

// heldNow is the live heap and the stacks after garbage collection. Each collection halves stacks
// that are too large.
func heldNow() int64 {
	const halvings = 4
	for range halvings {
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc + stats.StackInuse)
}
