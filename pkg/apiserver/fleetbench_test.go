// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"fleetgate.io/fleetgate/pkg/apiserver"
	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/tunneltest"
)

// atATime is the concurrency of a client that asks each member itself. It equals the gateway's.
const atATime = 64

// listing answers lists of that many pods from memory, each of about 2 KiB. Lists with a field
// selector are empty.
func listing(pods int) http.HandlerFunc { return listingOf(pods, 1800) }

// listingOf is listing with pods of that size.
func listingOf(pods, size int) http.HandlerFunc {
	objects := newPrinted(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"3","continue":%q},"items":[`)
	rows := newPrinted(`{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"3","continue":%q},` +
		`"columnDefinitions":[{"name":"Name","type":"string","format":"name"},{"name":"Ready","type":"string"},{"name":"Status","type":"string"}],"rows":[`)
	for n := range pods {
		metadata := fmt.Sprintf(`{"name":"pod-%d","namespace":"shop","labels":{"app":"web"},"annotations":{"text":%q}}`, n, strings.Repeat("x", size))
		objects.add(fmt.Sprintf(`{"metadata":%s,"spec":{"nodeName":"n"}}`, metadata))
		rows.add(fmt.Sprintf(`{"cells":["pod-%d","1/1","Running"],"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":%s}}`, n, metadata))
	}
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		of, query := objects, r.URL.Query()
		if strings.Contains(r.Header.Get("Accept"), "as=Table") {
			of = rows
		}
		switch limit, _ := strconv.Atoi(query.Get("limit")); {
		case query.Get("fieldSelector") != "":
			of.write(w, 0, 0)
		case limit > 0:
			from, _ := strconv.Atoi(query.Get("continue"))
			of.write(w, from, min(from+limit, pods))
		default:
			of.write(w, 0, pods)
		}
	}
}

// printed is a list as it is sent.
type printed struct {
	head  string
	items []byte
	// ends are the end positions of its items.
	ends []int
}

func newPrinted(head string) *printed { return &printed{head: head, ends: []int{0}} }

func (p *printed) add(item string) {
	if len(p.items) > 0 {
		p.items = append(p.items, ',')
	}
	p.items = append(p.items, item...)
	p.ends = append(p.ends, len(p.items))
}

// write sends a part of the list.
func (p *printed) write(w io.Writer, from, to int) {
	more := ""
	if to > from && to < len(p.ends)-1 {
		more = strconv.Itoa(to)
	}
	_, _ = fmt.Fprintf(w, p.head, more)
	_, _ = w.Write(bytes.TrimPrefix(p.items[p.ends[from]:p.ends[to]], []byte{','}))
	_, _ = io.WriteString(w, "]}")
}

// crowdOf returns members with the same handler.
func crowdOf(t testing.TB, members int, handler http.HandlerFunc) map[string]*member {
	all := map[string]*member{}
	for n := range members {
		all[fmt.Sprintf("m%04d", n)] = newMember(t, handler)
	}
	return all
}

// unbounded raises the limits for a thousand members of one user.
func unbounded(c *apiserver.Config) { c.MaxInFlightPerUser, c.MaxInFlightPerMember = 1e6, 1e6 }

// throughTunnels connects each member through a TLS session of its own, as agents do.
func throughTunnels(t testing.TB, members map[string]*member) option {
	registry := tunneltest.NewRegistry(t, tunnel.Options{})
	server, client := tunneltest.BenchmarkTLS()
	for name, of := range members {
		joinOverTLS(t, registry, server, client, tunnel.Connector{Member: name, Targets: map[string]tunnel.Target{
			tunnel.APIServer: tunnel.TCP(of.api.Listener.Addr().String()), tunnel.Agent: tunnel.TCP(of.agent.Listener.Addr().String()),
		}})
	}
	return func(c *apiserver.Config) { c.Dialer, c.NotConnected = registry, tunnel.ErrNotConnected }
}

// joinOverTLS runs an agent's end of a tunnel until the test ends, and returns once it is
// connected.
func joinOverTLS(t testing.TB, registry *tunnel.Registry, server, client *tls.Config, agent tunnel.Connector) {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	dialer := tls.Dialer{Config: client}
	agent.Dial = func(ctx context.Context) (net.Conn, error) {
		return dialer.DialContext(ctx, "tcp", listener.Addr().String())
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { _ = registry.Serve(ctx, agent.Member, conn) })
		}
	})
	running.Go(func() { _ = agent.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		_ = listener.Close()
		running.Wait()
	})
	tunneltest.Eventually(t, "a tunnel to "+agent.Member, func() bool { return registry.Connected(agent.Member) })
}

const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io"

// reads reads a whole response and returns its size and the time of its first byte.
func reads(ctx context.Context, client *http.Client, url, user, accept string) (size int64, first time.Duration, err error) {
	began := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, 0, err
	}
	req.Header.Set("X-Remote-User", user)
	req.Header.Set("Accept", accept)
	res, err := client.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1024))
		return 0, 0, fmt.Errorf("%s: %d: %s", url, res.StatusCode, text)
	}
	var one [1]byte
	if _, err := io.ReadFull(res.Body, one[:]); err != nil {
		return 0, 0, err
	}
	first = time.Since(began)
	size, err = io.Copy(io.Discard, res.Body)
	return size + 1, first, err
}

// itself measures a client that asks each member itself.
func itself(ctx context.Context, client *http.Client, members map[string]*member, accept string, url func(name string, of *member) string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atATime)
	for name, of := range members {
		group.Go(func() error {
			_, _, err := reads(ctx, client, url(name, of), "u", accept)
			return err
		})
	}
	return group.Wait()
}

// directClient reaches members without the gateway.
func directClient(t testing.TB) *http.Client {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true, DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// BenchmarkFleetview reads many simulated members behind tunnels through a view. It compares this
// with a client that asks each of them through the gateway, and one that asks them directly, 64 at
// a time. All run in one process, so CPU and memory are the sum of all sides.
func BenchmarkFleetview(b *testing.B) {
	for _, size := range []struct{ members, pods int }{{100, 100}, {1000, 100}} {
		b.Run(fmt.Sprintf("%dx%d", size.members, size.pods), func(b *testing.B) {
			var read atomic.Int64
			lists := listing(size.pods)
			members := crowdOf(b, size.members, func(w http.ResponseWriter, r *http.Request) {
				read.Add(1)
				lists(w, r)
			})
			g := newGateway(b, members, unbounded, throughTunnels(b, members))
			for _, of := range []struct{ name, query, accept string }{
				{"all", "", "application/json"}, {"all-as-table", "", asTable},
				{"not-ready", "?fieldSelector=status.phase!%3DRunning", asTable}, {"stream", "?stream=true", "application/json"},
			} {
				b.Run(of.name, func(b *testing.B) { g.besides(b, of.query, of.accept) })
			}
			b.Run("page", func(b *testing.B) { g.paged(b, &read) })
			b.Run("one-silent", func(b *testing.B) { g.oneSilent(b) })
			b.Run("cold", func(b *testing.B) { g.cold(b) })
			b.Run("idle-watches", func(b *testing.B) { idleWatches(b, size.members) })
		})
	}
}

// besides measures the view, the gateway one by one, and direct reads.
func (g *gateway) besides(b *testing.B, query, accept string) {
	const path = "/api/v1/namespaces/shop/pods"
	client := directClient(b)
	ways := []struct {
		name string
		read func() error
	}{
		{"direct", func() error {
			return itself(b.Context(), client, g.members, accept, func(_ string, of *member) string { return of.api.URL + path + query })
		}},
		{"proxied", func() error {
			return itself(b.Context(), g.client, g.members, accept, func(name string, _ *member) string {
				return "https://" + g.address + "/clusters/" + name + path + query
			})
		}},
	}
	for _, way := range ways { // Open connections and grants before measuring.
		if err := way.read(); err != nil {
			b.Fatal(err)
		}
	}
	var view, firsts []time.Duration
	others := make([]time.Duration, len(ways))
	var used time.Duration
	for b.Loop() {
		for i, way := range ways {
			began := time.Now()
			if err := way.read(); err != nil {
				b.Fatal(err)
			}
			others[i] += time.Since(began)
		}
		began, before := time.Now(), cpu(b)
		_, first, err := reads(b.Context(), g.client, "https://"+g.address+podsOfAll+query, "u", accept)
		if err != nil {
			b.Fatal(err)
		}
		view, firsts, used = append(view, time.Since(began)), append(firsts, first), used+cpu(b)-before
	}
	var sum time.Duration
	for _, took := range view {
		sum += took
	}
	slices.Sort(view)
	slices.Sort(firsts)
	b.ReportMetric(milliseconds(view[len(view)/2]), "p50-ms")
	b.ReportMetric(milliseconds(view[len(view)*99/100]), "p99-ms")
	b.ReportMetric(milliseconds(firsts[len(firsts)/2]), "first-byte-ms")
	b.ReportMetric(milliseconds(used)/float64(len(view)*len(g.members)), "cpu-ms/member")
	for i, way := range ways {
		b.ReportMetric(sum.Seconds()/others[i].Seconds(), "x-"+way.name)
	}
	b.ReportMetric(0, "ns/op")
}

// paged reads the first page of what kubectl asks for.
func (g *gateway) paged(b *testing.B, read *atomic.Int64) {
	var took []time.Duration
	before := read.Load()
	for b.Loop() {
		began := time.Now()
		if _, _, err := reads(b.Context(), g.client, "https://"+g.address+podsOfAll+"?limit=500", "u", asTable); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	asked := read.Load() - before
	slices.Sort(took)
	b.ReportMetric(milliseconds(took[len(took)/2]), "p50-ms")
	b.ReportMetric(float64(asked)/float64(len(took)), "lists/page")
	b.ReportMetric(0, "ns/op")
}

// oneSilent reads while one member is silent: a list, and a stream up to its first row.
func (g *gateway) oneSilent(b *testing.B) {
	of := g.members["m0050"]
	var before http.Handler
	of.over(func(served http.Handler) http.HandlerFunc {
		before = served
		return silent
	})
	defer of.serve(before.ServeHTTP)
	var lists, firsts []time.Duration
	for b.Loop() {
		began := time.Now()
		if _, _, err := reads(b.Context(), g.client, "https://"+g.address+podsOfAll+"?fieldSelector=a%3Db", "u", asTable); err != nil {
			b.Fatal(err)
		}
		lists = append(lists, time.Since(began))
		_, first, err := reads(b.Context(), g.client, "https://"+g.address+podsOfAll+"?stream=true", "u", asTable)
		if err != nil {
			b.Fatal(err)
		}
		firsts = append(firsts, first)
	}
	slices.Sort(lists)
	slices.Sort(firsts)
	b.ReportMetric(milliseconds(lists[len(lists)/2]), "p50-ms")
	b.ReportMetric(milliseconds(firsts[len(firsts)/2]), "first-byte-ms")
	b.ReportMetric(0, "ns/op")
}

// cold reads as users without grants: each is granted on each member first.
func (g *gateway) cold(b *testing.B) {
	n := 0
	for b.Loop() {
		n++
		if _, _, err := reads(b.Context(), g.client, "https://"+g.address+podsOfAll+"?fieldSelector=a%3Db&memberTimeoutSeconds=30", fmt.Sprint("user-", n), "application/json"); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(n), "ms/query")
	b.ReportMetric(0, "ns/op")
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// cpu is the CPU time of this process.
func cpu(b *testing.B) time.Duration {
	var of syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &of); err != nil {
		b.Fatal(err)
	}
	return time.Duration(of.Utime.Nano() + of.Stime.Nano())
}

// peakOf is the peak increase of memory while do runs. It includes the members, which run in this
// process.
func peakOf(do func()) int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	inUse := func() int64 {
		metrics.Read(sample)
		return int64(sample[0].Value.Uint64())
	}
	runtime.GC()
	before := inUse()
	var peak atomic.Int64
	var watching sync.WaitGroup
	done := make(chan struct{})
	watching.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			if now := inUse() - before; now > peak.Load() {
				peak.Store(now)
			}
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	})
	do()
	close(done)
	watching.Wait()
	return peak.Load()
}

// For each member that is asked at the same time, the gateway buffers one window and no more,
// whatever the size of the lists. Garbage is collected early, so that only live memory is measured.
func TestFleetview_LargeListNeedsLittleMemory(t *testing.T) {
	const bound = 32 << 20
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	g := newGateway(t, crowdOf(t, 20, listing(1100)), unbounded)
	for _, query := range []string{"?memberTimeoutSeconds=30", "?memberTimeoutSeconds=30&stream=true", "?memberTimeoutSeconds=30&limit=60000"} {
		var size int64
		var err error
		peak := peakOf(func() {
			size, _, err = reads(t.Context(), g.client, "https://"+g.address+podsOfAll+query, "u", "application/json")
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%q: a response of %d MiB with %d MiB more", query, size>>20, peak>>20)
		if size < bound*5/4 || peak > bound {
			t.Errorf("%q: a response of %d bytes with %d more in use", query, size, peak)
		}
	}
}

// The same holds for a watch that begins with present objects, however slow its reader is.
func TestFleetview_LargeInitialWatchNeedsLittleMemory(t *testing.T) {
	const bound, members, pods, size = 32 << 20, 20, 70, 32 << 10
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	g := newGateway(t, crowdOf(t, members, listedBy(listingOf(pods, size), watched(nil, make(chan string, members)))), unbounded)
	var told int64
	peak := peakOf(func() {
		res := g.do(http.MethodGet, podsOfAll+"?watch=true&memberTimeoutSeconds=30", "u", nil)
		told = slowly(t, res, members*pods)
	})
	t.Logf("%d MiB of events with %d MiB more", told>>20, peak>>20)
	if told < bound*5/4 || peak > bound {
		t.Errorf("got %d bytes with %d more in use", told, peak)
	}
}
