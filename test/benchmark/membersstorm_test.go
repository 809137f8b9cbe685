// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/webhook/serving"
)

// gatewayNamespace is the gateway's own.
const gatewayNamespace = "fleet-system"

// restart kills the hub's API server and starts it again.
func (m *membersBed) restart(b *testing.B) {
	b.Helper()
	if err := m.fleet.Hub.APIServer.Kill(); err != nil {
		b.Fatal(err)
	}
	began, used, most := time.Now(), m.cpuByProgram(b), m.mostDown(b)
	if err := m.fleet.Hub.APIServer.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(b.Context(), 10*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		return m.hub.Get(ctx, client.ObjectKey{Name: metav1.NamespaceDefault}, &corev1.Namespace{}) == nil, nil
	})
	if err != nil {
		b.Fatalf("the API server does not answer again: %v", err)
	}
	answers, lost := time.Since(began), most()
	name := fmt.Sprintf("restart-%d", m.joined)
	m.logCPU(b, name, used)
	m.logRequests(b, name, nil) // The killed process's counts are lost.
	m.await(b, "all tunnels after the API server was killed", func(now simulatorCounts) bool { return now.Connected == m.joined })
	figures := map[string]float64{"s-until-it-answers": answers.Seconds()}
	if m.joined == 0 {
		m.answersAlone = answers
	} else {
		figures["x-alone"] = answers.Seconds() / m.answersAlone.Seconds()
		figures["tunnels-lost"] = float64(lost)
	}
	if lost > 0 {
		figures["s-until-all"] = time.Since(began).Seconds()
	}
	b.Run(name, func(b *testing.B) { reportAll(b, figures) })
}

// logCPU logs the CPU time of each program since then.
func (m *membersBed) logCPU(b *testing.B, name string, since map[string]time.Duration) {
	b.Helper()
	for program, now := range m.cpuByProgram(b) {
		b.Logf("%s: %6.2f s of CPU time of %s", name, (now - since[program]).Seconds(), program)
	}
}

// mostDown watches until the returned function is called, which returns the largest number of
// tunnels down at a time.
func (m *membersBed) mostDown(b *testing.B) (end func() int) {
	b.Helper()
	const pause = 20 * time.Millisecond
	ctx, cancel := context.WithCancel(b.Context())
	most := 0
	var watching sync.WaitGroup
	watching.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(pause) {
			most = max(most, m.joined-m.counts().Connected)
		}
	})
	return func() int {
		cancel()
		watching.Wait()
		return most
	}
}

// storm kills all gateways and starts them again; meanwhile runs in between and may be nil.
func (m *membersBed) storm(b *testing.B, name string, meanwhile func(b *testing.B)) {
	b.Helper()
	before, err := m.requestsByKind(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for _, gateway := range m.fleet.Gateways {
		if err := gateway.Kill(); err != nil {
			b.Fatal(err)
		}
	}
	m.await(b, "that all tunnels are cut", func(now simulatorCounts) bool { return now.Connected == 0 })
	if meanwhile != nil {
		meanwhile(b)
	}
	other := m.otherClient(b)
	began, used := time.Now(), m.cpuByProgram(b)
	full := fmt.Sprintf("%s-%d", name, m.joined)
	profiled := profiles(b, full, map[string]apiClient{"hub": m.api})
	var starting sync.WaitGroup
	for _, gateway := range m.fleet.Gateways {
		starting.Go(func() {
			if err := gateway.Start(b.Context()); err != nil {
				b.Error(err)
			}
		})
	}
	figures := map[string]float64{}
	for _, part := range []struct {
		unit string
		of   float64
	}{{"s-until-half", 0.5}, {"s-until-99%", 0.99}, {"s-until-all", 1}} {
		m.await(b, "tunnels after both gateways were killed", func(now simulatorCounts) bool { return float64(now.Connected) >= part.of*float64(m.joined) })
		figures[part.unit] = time.Since(began).Seconds()
	}
	starting.Wait()
	ready := time.Since(began)
	took := other()
	profiled()
	m.logCPU(b, full, used)
	requests := m.logRequests(b, full, before) - float64(len(took))
	took.logBySecond(b, full)
	if m.joined == 0 {
		m.startsAlone, figures = ready, map[string]float64{"s-until-ready": ready.Seconds()}
	} else {
		figures["requests/member"] = requests / float64(m.joined)
		figures["x-bare"] = figures["s-until-all"] / (m.startsAlone + m.reconnectTime).Seconds()
	}
	b.Run(full, func(b *testing.B) {
		reportAll(b, figures)
		took.report(b)
	})
}

// logRequests logs the kinds of requests that the hub has answered since then, and returns their
// number.
func (m *membersBed) logRequests(b *testing.B, name string, before map[string]float64) float64 {
	b.Helper()
	after, err := m.requestsByKind(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	requests := 0.0
	for kind, now := range after {
		more := now - before[kind]
		if requests += more; more >= max(1, float64(m.joined)/20) {
			b.Logf("%s: %6.0f x %s", name, more, kind)
		}
	}
	return requests
}

// rotate rotates the CA as docs/reference/admission.md describes, and watches until every gateway has noticed
// and every agent has reconnected.
func (m *membersBed) rotate(b *testing.B) {
	b.Helper()
	const noticed = 90 * time.Second
	before, err := m.requestsByKind(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	other, most := m.otherClient(b), m.mostDown(b)
	if err := m.hub.Patch(b.Context(), authority(), client.RawPatch(types.MergePatchType, []byte(`{"data":{"tls.key":""}}`))); err != nil {
		b.Fatal(err)
	}
	time.Sleep(noticed)
	away, took := most(), other()
	requests := m.logRequests(b, "rotate", before) - float64(len(took))
	b.Run(fmt.Sprintf("rotate-%d", m.joined), func(b *testing.B) {
		b.ReportMetric(float64(away), "tunnels-away")
		b.ReportMetric(requests/float64(m.joined), "requests/member")
		took.report(b)
	})
}

// authority is the Secret with the CA of the gateways' certificates.
func authority() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: gatewayNamespace, Name: serving.SecretName}}
}

// forgetAuthority makes the next gateways create another CA.
func (m *membersBed) forgetAuthority(b *testing.B) {
	b.Helper()
	if err := m.hub.Delete(b.Context(), authority()); err != nil {
		b.Fatal(err)
	}
}

// waited is the latency of a request, and when it began.
type waited struct{ since, took time.Duration }

type waits []waited

// report reports the median and the 99th percentile.
func (w waits) report(b *testing.B) {
	b.Helper()
	sorted := slices.SortedFunc(slices.Values(w), func(a, b waited) int { return cmp.Compare(a.took, b.took) })
	b.ReportMetric(milliseconds(sorted[len(sorted)/2].took), "others-p50-ms")
	b.ReportMetric(milliseconds(sorted[len(sorted)*99/100].took), "others-p99-ms")
}

// logBySecond logs the number of requests and the longest one of each second.
func (w waits) logBySecond(b *testing.B, name string) {
	b.Helper()
	longest, count := map[int]time.Duration{}, map[int]int{}
	for _, wait := range w {
		second := int(wait.since.Seconds())
		longest[second] = max(longest[second], wait.took)
		count[second]++
	}
	for _, second := range slices.Sorted(maps.Keys(count)) {
		b.Logf("%s: %3d s: %3d requests of somebody else, of which one took %s", name, second, count[second], longest[second].Round(time.Millisecond))
	}
}

// otherClient reads an object of the hub continuously until the returned function is called, which
// returns all latencies.
func (m *membersBed) otherClient(b *testing.B) (end func() waits) {
	b.Helper()
	const pause = 20 * time.Millisecond
	ctx, cancel := context.WithCancel(b.Context())
	var took waits
	var reading sync.WaitGroup
	start := time.Now()
	reading.Go(func() {
		for ctx.Err() == nil {
			began := time.Now()
			var namespace corev1.Namespace
			if err := m.hub.Get(ctx, client.ObjectKey{Name: metav1.NamespaceDefault}, &namespace); err != nil && ctx.Err() == nil {
				b.Errorf("reading somebody else's object: %v", err)
			}
			took = append(took, waited{since: began.Sub(start), took: time.Since(began)})
			time.Sleep(pause)
		}
	})
	return func() waits {
		cancel()
		reading.Wait()
		return took
	}
}
