// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/remotecommand"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/webhook/serving"
	"fleetgate.io/fleetgate/test/support/fleet"
	"fleetgate.io/fleetgate/test/support/kubelet"
)

const (
	proxyNamespace = "bench"
	proxyPod       = "echo"
	// listed is the number of objects in lists, each of about 1 KiB.
	listed = 5000
)

// BenchmarkProxy runs one client-go loop as the ordinary user admin to a member's API server:
// directly, through the gateway's own endpoint, and through the hub's API server. All keep their
// connections and take turns in every round.
func BenchmarkProxy(b *testing.B) {
	bed := newProxyBed(b)
	for _, e := range bed.entrances {
		b.Run(e.name, func(b *testing.B) {
			for _, c := range []int{1, 16, 128} {
				b.Run(fmt.Sprintf("get-c%d", c), func(b *testing.B) { bed.compare(b, e, getting(c)) })
			}
			b.Run("list5000", func(b *testing.B) { bed.compare(b, e, once(listing)) })
			b.Run("list5000-json", func(b *testing.B) { bed.compare(b, e, once(listingJSON)) })
			b.Run("crud", func(b *testing.B) { bed.compare(b, e, once(bed.changing)) })
			b.Run("exec", func(b *testing.B) { bed.compare(b, e, once(executing)) })
			b.Run("exec1000", func(b *testing.B) { bed.typing(b, e) })
			b.Run("watch1000-rss", func(b *testing.B) { bed.watching(b, e) })
		})
	}
}

// entrance is one path to the member.
type entrance struct {
	name   string
	config *rest.Config
	// binary requests what controllers do: protobuf with gzip. plain requests JSON without
	// compression.
	binary, plain kubernetes.Interface
}

// proxyBed is a fleet with objects on its member.
type proxyBed struct {
	fleet     *fleet.Fleet
	entrances []*entrance
	// changes counts created objects, for their names.
	changes int
}

// newProxyBed lets the agents use the gateway's own port. Requests to the gateway's endpoint then
// do not include the hub's API server in the tunnel.
func newProxyBed(b *testing.B) *proxyBed {
	b.Helper()
	ctrl.SetLogger(logr.Discard())
	bed := &proxyBed{fleet: startFleetWith(b, "proxy", fleet.Options{Members: []string{"member-1"}, Tunnel: cmp.Or(os.Getenv(tunnelVariable), fleet.TunnelPort), GatewayArgs: gatewayFlags()})}
	bed.entrances = []*entrance{
		newEntrance(b, "direct", bed.direct(b)), newEntrance(b, "gateway", bed.ownEndpoint(b)), newEntrance(b, "hub", bed.throughHub(b)),
	}
	bed.fill(b)
	bed.startPod(b)
	bed.awaitAll(b)
	return bed
}

func newEntrance(b *testing.B, name string, config *rest.Config) *entrance {
	b.Helper()
	config.QPS = -1
	plain := rest.CopyConfig(config)
	plain.DisableCompression = true
	binary := rest.CopyConfig(config)
	binary.ContentType = runtime.ContentTypeProtobuf
	binary.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	e := &entrance{name: name, config: config}
	var err error
	if e.plain, err = kubernetes.NewForConfig(plain); err == nil {
		e.binary, err = kubernetes.NewForConfig(binary)
	}
	if err != nil {
		b.Fatal(err)
	}
	return e
}

func (p *proxyBed) throughHub(b *testing.B) *rest.Config {
	b.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", p.fleet.MemberKubeconfig(p.fleet.Members[0].Name))
	if err != nil {
		b.Fatal(err)
	}
	return config
}

// ownEndpoint is the same user at the gateway's own endpoint.
func (p *proxyBed) ownEndpoint(b *testing.B) *rest.Config {
	b.Helper()
	config := p.throughHub(b)
	ca, err := hubClient(b, p.fleet).CoreV1().Secrets(gatewayNamespace).Get(b.Context(), serving.SecretName, metav1.GetOptions{})
	if err != nil {
		b.Fatal(err)
	}
	config.Host = p.fleet.GatewayURL() + "/clusters/" + p.fleet.Members[0].Name
	config.CAFile, config.CAData = "", ca.Data["ca.crt"]
	return config
}

// direct is a user who reaches the member without the hub: the same name and group, with RBAC on
// the member.
func (p *proxyBed) direct(b *testing.B) *rest.Config {
	b.Helper()
	config, err := p.fleet.Members[0].Cluster.ConfigFor("admin", "fleetgate:admins")
	if err != nil {
		b.Fatal(err)
	}
	return config
}

// fill creates the listed objects.
func (p *proxyBed) fill(b *testing.B) {
	b.Helper()
	api := p.breakGlass(b)
	if _, err := api.CoreV1().Namespaces().Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: proxyNamespace}}, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(16)
	for i := range listed {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("listed-%d", i)}, Data: map[string]string{}}
		for line := range 10 {
			object.Data[fmt.Sprintf("setting-%d", line)] = fmt.Sprintf("https://%x.example.com/of/some/service", random.Uint64())
		}
		group.Go(func() error {
			_, err := api.CoreV1().ConfigMaps(proxyNamespace).Create(ctx, object, metav1.CreateOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
}

func (p *proxyBed) breakGlass(b *testing.B) kubernetes.Interface {
	b.Helper()
	config := p.fleet.Members[0].Cluster.Config()
	config.QPS = -1
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	return api
}

func hubClient(b *testing.B, f *fleet.Fleet) kubernetes.Interface {
	b.Helper()
	api, err := kubernetes.NewForConfig(f.Hub.Config())
	if err != nil {
		b.Fatal(err)
	}
	return api
}

// startPod creates a Pod whose commands run on this machine.
func (p *proxyBed) startPod(b *testing.B) {
	b.Helper()
	member, err := client.New(p.fleet.Members[0].Cluster.Config(), client.Options{})
	if err != nil {
		b.Fatal(err)
	}
	k := kubelet.Start()
	b.Cleanup(k.Close)
	node, err := k.Node(b.Context(), member, "bench")
	if err != nil {
		b.Fatal(err)
	}
	await(b, "the pod of exec", func(ctx context.Context) error {
		_, err := kubelet.Pod(ctx, member, node.Name, proxyNamespace, proxyPod)
		return err
	})
}

// awaitAll waits until all paths work: the member has joined, its tunnel is open, and the RBAC
// rules are placed.
func (p *proxyBed) awaitAll(b *testing.B) {
	b.Helper()
	for _, e := range p.entrances {
		await(b, e.name+" to the member", func(ctx context.Context) error { return get(ctx, e) })
	}
}

func await(b *testing.B, what string, try func(context.Context) error) {
	b.Helper()
	var last error
	const interval = 200 * time.Millisecond
	if err := wait.PollUntilContextTimeout(b.Context(), interval, patience, true, func(ctx context.Context) (bool, error) {
		last = try(ctx)
		return last == nil, nil
	}); err != nil {
		b.Fatalf("%s: %v: %v", what, err, last)
	}
}

// job does something at an entrance and returns the time of each part, also of parallel ones.
type job func(context.Context, *entrance) ([]time.Duration, error)

func once(do func(context.Context, *entrance) error) job {
	return func(ctx context.Context, e *entrance) ([]time.Duration, error) {
		began := time.Now()
		err := do(ctx, e)
		return []time.Duration{time.Since(began)}, err
	}
}

func get(ctx context.Context, e *entrance) error {
	_, err := e.plain.CoreV1().ConfigMaps(proxyNamespace).Get(ctx, "listed-17", metav1.GetOptions{})
	return err
}

// getting returns a round of requests by parallel callers.
func getting(callers int) job {
	const each = 4
	return func(ctx context.Context, e *entrance) ([]time.Duration, error) {
		took := make([]time.Duration, callers*each)
		group, ctx := errgroup.WithContext(ctx)
		for caller := range callers {
			group.Go(func() error {
				for i := range each {
					began := time.Now()
					if err := get(ctx, e); err != nil {
						return err
					}
					took[caller*each+i] = time.Since(began)
				}
				return nil
			})
		}
		return took, group.Wait()
	}
}

func listing(ctx context.Context, e *entrance) error { return list(ctx, e.binary) }

func listingJSON(ctx context.Context, e *entrance) error { return list(ctx, e.plain) }

func list(ctx context.Context, api kubernetes.Interface) error {
	all, err := api.CoreV1().ConfigMaps(proxyNamespace).List(ctx, metav1.ListOptions{})
	if err == nil && len(all.Items) < listed {
		err = fmt.Errorf("listed %d objects, not %d", len(all.Items), listed)
	}
	return err
}

// changing creates, updates and deletes one object.
func (p *proxyBed) changing(ctx context.Context, e *entrance) error {
	p.changes++
	api := e.plain.CoreV1().ConfigMaps(proxyNamespace)
	object, err := api.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("changed-%d", p.changes)}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	object.Data = map[string]string{"a": "b"}
	if _, err := api.Update(ctx, object, metav1.UpdateOptions{}); err != nil {
		return err
	}
	return api.Delete(ctx, object.Name, metav1.DeleteOptions{})
}

// commandOf is a command in the Pod that echoes its input.
func commandOf(e *entrance) (remotecommand.Executor, error) {
	url := e.plain.CoreV1().RESTClient().Get().Namespace(proxyNamespace).Resource("pods").Name(proxyPod).SubResource("exec").
		Param("command", "cat").Param("stdin", "true").Param("stdout", "true").URL()
	return remotecommand.NewWebSocketExecutor(e.config, "GET", url.String())
}

// executing runs one command in the Pod with some input.
func executing(ctx context.Context, e *entrance) error {
	executor, err := commandOf(e)
	if err != nil {
		return err
	}
	const said = "anybody there?"
	var heard bytes.Buffer
	if err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: strings.NewReader(said), Stdout: &heard}); err != nil {
		return err
	}
	if heard.String() != said {
		return fmt.Errorf("exec answers %q", heard.String())
	}
	return nil
}

// result collects the times of one entrance.
type result struct {
	// took has one value per part; busy is the time of whole rounds; cpu is the gateway's.
	took      []time.Duration
	busy, cpu time.Duration
}

func (r *result) add(took []time.Duration, busy, cpu time.Duration) {
	r.took = append(r.took, took...)
	r.busy, r.cpu = r.busy+busy, r.cpu+cpu
}

func (r *result) quantile(q float64) time.Duration {
	slices.Sort(r.took)
	return r.took[int(q*float64(len(r.took)-1))]
}

func (r *result) perSecond() float64 { return float64(len(r.took)) / r.busy.Seconds() }

// compare runs the job at all entrances in every round, and reports one of them.
func (p *proxyBed) compare(b *testing.B, mine *entrance, do job) {
	results := map[*entrance]*result{}
	for _, e := range p.entrances {
		results[e] = &result{}
		if _, err := do(b.Context(), e); err != nil { // Open connections and warm caches.
			b.Fatalf("%s: %v", e.name, err)
		}
	}
	for b.Loop() {
		for _, e := range p.entrances {
			cpu, began := cpuOf(b, p.fleet.Gateway.PID()), time.Now()
			took, err := do(b.Context(), e)
			if err != nil {
				b.Fatalf("%s: %v", e.name, err)
			}
			results[e].add(took, time.Since(began), cpuOf(b, p.fleet.Gateway.PID())-cpu)
		}
	}
	report(b, results[mine], results[p.entrances[0]])
	if mine != p.entrances[0] {
		b.ReportMetric(float64(residentOf(b, p.fleet.Gateway.PID()))/(1<<20), "gateway-MiB")
	}
}

// report prints one entrance's figures and their ratio to the direct ones.
func report(b *testing.B, mine, direct *result) {
	b.ReportMetric(milliseconds(mine.quantile(0.5)), "p50-ms")
	b.ReportMetric(milliseconds(mine.quantile(0.99)), "p99-ms")
	b.ReportMetric(mine.perSecond(), "req/s")
	// Go's own figure would be the time of the whole round.
	b.ReportMetric(float64(mine.busy.Nanoseconds())/float64(len(mine.took)), "ns/op")
	if mine == direct {
		return
	}
	b.ReportMetric(milliseconds(mine.quantile(0.5)-direct.quantile(0.5)), "added-p50-ms")
	b.ReportMetric(mine.perSecond()/direct.perSecond(), "of-direct")
	b.ReportMetric(milliseconds(mine.cpu)/float64(len(mine.took)), "gateway-cpu-ms/op")
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1e3 }
