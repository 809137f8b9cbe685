// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"fleetgate.io/fleetgate/pkg/apiserver"
	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
)

// BenchmarkProxy measures a request by how far it gets: a server of net/http that answers it; the
// handlers of a Kubernetes API server, and then the same answer; a member behind them, over TCP;
// and that member at the end of a tunnel. One caller keeps one connection. Caller, gateway, agent
// and member run in this process, so CPU is the sum of all of them.
func BenchmarkProxy(b *testing.B) {
	const path = "/clusters/m/api/v1/namespaces/shop/configmaps/settings"
	answer := bytes.Repeat([]byte("x"), 1<<10)
	answers := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(answer) })
	debug := func(c *apiserver.Config) {
		c.Debug = func(authorizer.UnconditionalAuthorizer) http.Handler { return answers }
	}
	near, far := map[string]*member{"m": newMember(b, answers)}, map[string]*member{"m": newMember(b, answers)}
	plain, tunneled := newGateway(b, near, debug), newGateway(b, far, throughTunnels(b, far))
	for _, way := range []struct {
		name   string
		client *http.Client
		url    string
	}{
		{"nethttp", directClient(b), near["m"].api.URL},
		{"handlers", plain.client, "https://" + plain.address + apiserver.DebugPrefix},
		{"member", plain.client, "https://" + plain.address + path},
		{"tunnel", tunneled.client, "https://" + tunneled.address + path},
	} {
		b.Run("inside/"+way.name, func(b *testing.B) { oneByOne(b, way.client, way.url) })
	}
	b.Run("inside/stopped-readers", stoppedReaders)
	b.Run("inside/logins", func(b *testing.B) { logins(b, false) })
	b.Run("inside/logins-by-name", func(b *testing.B) { logins(b, true) })
	b.Run("inside/hostile-lists", hostileLists)
	for _, n := range []int{2, 4, 8} {
		b.Run(fmt.Sprint("inside/gateways-", n), func(b *testing.B) { scaleOut(b, n) })
	}
}

// stoppedReaders measures the memory for 1,000 followed logs of one user whose readers stop, until the
// gateway has ended those above its limit. It includes callers and member, which run in this process.
func stoppedReaders(b *testing.B) {
	const readers, window = 1000, 256 << 10
	ends := readers - clustergateway.DefaultUnreadPerUser/window
	ended := make(chan int64, readers)
	m := newMember(b, endlessLog(ended))
	g := newGateway(b, map[string]*member{"m1": m})
	withoutBuffers(g)
	var peak int64
	for b.Loop() {
		var replies []*http.Response
		peak = max(peak, peakOf(func() {
			for range readers {
				reply := g.do(http.MethodGet, followedLog, "jane", nil)
				wantCode(b, reply, http.StatusOK)
				replies = append(replies, reply)
			}
			for range ends {
				<-ended
			}
		}))
		for _, reply := range replies {
			_ = reply.Body.Close()
		}
		for range readers - ends {
			<-ended
		}
	}
	b.ReportMetric(float64(peak>>20), "peak-MiB")
	b.ReportMetric(0, "ns/op")
}

// oneByOne sends sequential requests.
func oneByOne(b *testing.B, client *http.Client, url string) {
	b.Helper()
	b.ReportAllocs()
	var took []time.Duration
	before := cpu(b)
	for b.Loop() {
		began := time.Now()
		if _, _, err := reads(b.Context(), client, url, "u", "application/json"); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
	b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/float64(len(took)), "cpu-ns/op")
}
