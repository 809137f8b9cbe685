// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

const (
	watches = 1000
	// told is the number of events per watch.
	told = 10
)

// watching opens the watches at an entrance, sends events to all of them, and reports their latency
// and the gateway's memory for them once they are idle. It restarts the gateway first, because
// otherwise the watches would reuse memory of earlier work.
func (p *proxyBed) watching(b *testing.B, e *entrance) {
	for b.Loop() {
		if err := p.fleet.Gateway.Restart(b.Context()); err != nil {
			b.Fatal(err)
		}
		p.awaitAll(b)
		for range 200 {
			if err := get(b.Context(), e); err != nil {
				b.Fatal(err)
			}
		}
		api := p.breakGlass(b)
		name := fmt.Sprintf("watched-%d", p.changes)
		p.changes++
		if _, err := api.CoreV1().ConfigMaps(proxyNamespace).Create(b.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
		before := p.leastResident(b)
		ctx, stop := context.WithCancel(b.Context())
		heard := &result{}
		events := p.openWatches(b, ctx, e, name)
		for n := range told {
			heard.took = append(heard.took, tell(b, api, name, n, events)...)
		}
		idle := p.leastResident(b)
		stop()
		b.ReportMetric(milliseconds(heard.quantile(0.5)), "event-p50-ms")
		b.ReportMetric(milliseconds(heard.quantile(0.99)), "event-p99-ms")
		if e != p.entrances[0] {
			b.ReportMetric(float64(idle-before)/(1<<20), "gateway-added-MiB")
		}
	}
	b.ReportMetric(0, "ns/op")
}

// leastResident is the lowest memory of the gateway within some seconds.
func (p *proxyBed) leastResident(b *testing.B) int64 {
	b.Helper()
	least := residentOf(b, p.fleet.Gateway.PID())
	_ = wait.PollUntilContextTimeout(b.Context(), 500*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		least = min(least, residentOf(b, p.fleet.Gateway.PID()))
		return false, nil
	})
	return least
}

// openWatches returns, once all watches are open and have sent the existing object, a channel for
// their events.
func (p *proxyBed) openWatches(b *testing.B, ctx context.Context, e *entrance, name string) <-chan time.Time {
	b.Helper()
	client := newAPIClient(b, e.config)
	events := make(chan time.Time, watches)
	url := client.url + "/api/v1/namespaces/" + proxyNamespace + "/configmaps?watch=true&fieldSelector=metadata.name%3D" + name
	for range watches {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			b.Fatal(err)
		}
		response, err := client.http.Do(request)
		if err != nil {
			b.Fatal(err)
		}
		if response.StatusCode != http.StatusOK {
			b.Fatalf("watching: %s", response.Status)
		}
		go func() {
			defer func() { _ = response.Body.Close() }()
			for lines := bufio.NewReaderSize(response.Body, 4<<10); ; {
				if _, err := lines.ReadSlice('\n'); err != nil {
					if err != io.EOF && ctx.Err() == nil {
						b.Errorf("a watch ended: %v", err)
					}
					return
				}
				events <- time.Now()
			}
		}()
	}
	for range watches {
		<-events
	}
	return events
}

// tell changes the watched object and returns the time until each watch gets the event, from before
// the request.
func tell(b *testing.B, api kubernetes.Interface, name string, n int, events <-chan time.Time) (took []time.Duration) {
	b.Helper()
	began := time.Now()
	patch := fmt.Sprintf(`{"data":{"n":"%d"}}`, n)
	if _, err := api.CoreV1().ConfigMaps(proxyNamespace).Patch(b.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		b.Fatal(err)
	}
	deadline := time.After(patience)
	for range watches {
		select {
		case at := <-events:
			took = append(took, at.Sub(began))
		case <-deadline:
			b.Fatalf("only %d of %d watches received a change", len(took), watches)
		}
	}
	return took
}
