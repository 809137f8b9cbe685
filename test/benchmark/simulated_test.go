// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/agent/enroll"
	"fleetgate.io/fleetgate/pkg/cluster/agent/heartbeat"
)

// crowdPatience bounds what a thousand members do.
const crowdPatience = 15 * time.Minute

// joinCrowd joins simulated members and prints their cost: seconds, also as a ratio to a client
// with as many writes of the same sizes, writes and the gateway's memory, then writes per second of
// an idle fleet. An agent is the product's own code for enrolling and reporting, without a cluster,
// a tunnel or a watch; all share one process. idle is the time of the idle measurement: in five
// minutes every member reports once without a change.
func joinCrowd(b *testing.B, members int, idle time.Duration) {
	f := startFleet(b, fmt.Sprintf("membership-%d", members), "member-1")
	j := newJoiner(b, f)
	c := j.crowd(b)
	for b.Loop() {
		before, err := j.writes(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		took, err := j.joinSimulated(b.Context(), c.starter(b.Context()), members)
		if err != nil {
			b.Fatal(err)
		}
		after, err := j.writes(b.Context())
		if err := errors.Join(err, j.settleCrowd(b.Context())); err != nil {
			b.Fatal(err)
		}
		resident, err := residentMiB(f.Gateway.PID())
		if err != nil {
			b.Fatal(err)
		}
		rate, err := j.idleWrites(b.Context(), idle)
		if err != nil {
			b.Fatal(err)
		}
		writes := bare{client: j.hub, namespace: j.namespace(b), counted: since(before, after), workers: concurrency}
		least, err := timed(writes.write)(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(took.Seconds(), "s/join")
		b.ReportMetric(took.Seconds()/least.Seconds(), "x-bare")
		b.ReportMetric(float64(total(writes.counted))/float64(members), "writes/member")
		b.ReportMetric(resident, "gateway-MiB")
		b.ReportMetric(rate, "idle-writes/s")
	}
}

// crowd are members that have not joined yet.
func (j *joiner) crowd(b *testing.B) *crowd {
	b.Helper()
	values, err := os.ReadFile(j.values)
	if err != nil {
		b.Fatal(err)
	}
	c, err := newCrowd(values)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.close)
	return c
}

// settleCrowd waits until nothing is created; a crowd's heartbeats continue.
func (j *joiner) settleCrowd(ctx context.Context) error {
	const quiet = 3 * time.Second
	return j.rest(ctx, quiet, crowdPatience, func(w written) bool { return w.verb == "create" })
}

// crowd are simulated members.
type crowd struct {
	bootstrap enroll.Bootstrap
	discovery discovery.DiscoveryInterfaces
	scheme    *runtime.Scheme
	mapper    meta.RESTMapper
	// besides is what each agent does in addition to reporting; may be nil.
	besides func(ctx context.Context, agent crowdAgent)
	running sync.WaitGroup
	// answers is the response of all members' API servers about themselves.
	answers *httptest.Server
}

// crowdAgent is a registered agent of a crowd.
type crowdAgent struct {
	member string
	// config is the agent's configuration for the hub, token its current bearer token.
	config *rest.Config
	token  func(context.Context) (string, error)
	hub    client.WithWatch
}

// newCrowd returns agents with the values of a registration token. The caller closes it.
func newCrowd(values []byte) (*crowd, error) {
	c := &crowd{scheme: runtime.NewScheme()}
	if err := yaml.Unmarshal(values, &c.bootstrap); err != nil {
		return nil, err
	}
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1beta1.AddToScheme, placementv1beta1.AddToScheme} {
		if err := add(c.scheme); err != nil {
			return nil, err
		}
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(clusterv1beta1.GroupVersion.WithKind("InternalMemberCluster"), meta.RESTScopeNamespace)
	mapper.Add(coordinationv1.SchemeGroupVersion.WithKind("Lease"), meta.RESTScopeNamespace)
	mapper.Add(placementv1beta1.GroupVersion.WithKind("Work"), meta.RESTScopeNamespace)
	c.mapper = mapper
	c.answers = httptest.NewServer(http.HandlerFunc(answerAsMember))
	var err error
	c.discovery, err = discovery.NewDiscoveryClientForConfig(&rest.Config{Host: c.answers.URL, QPS: -1})
	return c, err
}

// close waits for the agents, whose contexts have ended.
func (c *crowd) close() {
	c.running.Wait()
	c.answers.Close()
}

// starter starts agents of the crowd that live until the context ends.
func (c *crowd) starter(ctx context.Context) func(name string) error {
	return func(name string) error {
		c.running.Go(func() { _ = c.join(ctx, name) })
		return nil
	}
}

// answerAsMember serves the response of all members' API servers.
func answerAsMember(w http.ResponseWriter, request *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch request.URL.Path {
	case "/readyz":
		_, _ = w.Write([]byte("ok"))
	case "/version":
		_, _ = w.Write([]byte(`{"major":"1","minor":"36","gitVersion":"v1.36.3"}`))
	default:
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`))
	}
}

// simulatedMember keeps objects in memory, and responds like all members.
type simulatedMember struct {
	kubernetes.Interface
	discovery discovery.DiscoveryInterfaces
}

func (m simulatedMember) Discovery() discovery.DiscoveryInterfaces { return m.discovery }

func (c *crowd) member() kubernetes.Interface {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	node.Status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("32Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	node.Status.Allocatable = node.Status.Capacity
	return simulatedMember{Interface: fake.NewClientset(node), discovery: c.discovery}
}

// join runs one agent until the context ends.
func (c *crowd) join(ctx context.Context, name string) error {
	ctx = log.IntoContext(ctx, logr.Discard())
	member := c.member()
	bootstrap := c.bootstrap
	bootstrap.ClientID = name
	enroller := enroll.New(enroll.Options{Member: member, Namespace: name, Bootstrap: enroll.Given(&bootstrap)})
	c.running.Go(func() { _ = enroller.Run(ctx) })
	registered, err := enroller.Member(ctx)
	if err != nil {
		return err
	}
	config, err := enroller.HubConfig(ctx)
	if err != nil {
		return err
	}
	config.QPS = -1
	hub, err := client.NewWithWatch(config, client.Options{Scheme: c.scheme, Mapper: c.mapper})
	if err != nil {
		return err
	}
	if c.besides != nil {
		agent := crowdAgent{member: registered, config: config, token: enroller.Token, hub: hub}
		c.running.Go(func() { c.besides(ctx, agent) })
	}
	reporter := &heartbeat.Reconciler{Hub: hub, Member: member, Name: registered, Server: "https://member.example", Clock: clock.RealClock{}}
	request := reconcile.Request{NamespacedName: client.ObjectKey{Namespace: clusterv1beta1.MemberNamespace(registered), Name: registered}}
	// Do what the controller in an agent does.
	const firstRetry, lastRetry = 100 * time.Millisecond, 15 * time.Second
	retries := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry)
	for {
		next, err := reporter.Reconcile(ctx, request)
		if err != nil {
			next.RequeueAfter = retries.When(request)
		} else {
			retries.Forget(request)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(next.RequeueAfter):
		}
	}
}

// simulatedName is the name of the nth member, from 1.
func simulatedName(nth int) string { return fmt.Sprintf("simulated-%d", nth) }

// joinSimulated starts agents at the same time and returns how long they took to join.
func (j *joiner) joinSimulated(ctx context.Context, start func(name string) error, members int) (time.Duration, error) {
	waiting, names := map[string]bool{}, make([]string, members)
	for i := range names {
		j.joined++
		names[i] = simulatedName(j.joined)
		waiting[registrationv1alpha1.ClusterName(names[i])] = true
	}
	joining, cancel := context.WithTimeout(ctx, crowdPatience)
	defer cancel()
	seen, err := j.watch(joining)
	if err != nil {
		return 0, err
	}
	defer seen.stop()
	for _, name := range names {
		if err := start(name); err != nil {
			return 0, err
		}
	}
	return seen.await(joining, waiting)
}

// anyWrite counts all writes that an API server accepted, also of Leases.
var anyWrite = regexp.MustCompile(`(?m)^apiserver_request_body_size_bytes_count\{group="[^"]*",resource="[^"]*",verb="(?:create|update|patch)"\} (\S+)$`)

// idleWrites returns the number of writes per second on an idle hub, its own controllers' included.
func (j *joiner) idleWrites(ctx context.Context, during time.Duration) (float64, error) {
	before, err := j.allWrites(ctx)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := sleep(ctx, during); err != nil {
		return 0, err
	}
	after, err := j.allWrites(ctx)
	return (after - before) / time.Since(begin).Seconds(), err
}

func (j *joiner) allWrites(ctx context.Context) (float64, error) { return j.sum(ctx, anyWrite) }

// anyRequest matches all requests of a kind that an API server answered, except watches, which it
// counts when they end.
var anyRequest = regexp.MustCompile(`(?m)^apiserver_request_total\{[^}]*resource="([^"]*)"[^}]*subresource="([^"]*)",verb="(GET|LIST|POST|PUT|PATCH|APPLY|DELETE|DELETECOLLECTION)"[^}]*\} (\S+)$`)

// requestsByKind are those that the hub has answered.
func (j *joiner) requestsByKind(ctx context.Context) (map[string]float64, error) {
	metrics, err := j.metrics(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]float64{}
	for _, match := range anyRequest.FindAllStringSubmatch(metrics, -1) {
		count, err := strconv.ParseFloat(match[4], 64)
		if err != nil {
			return nil, fmt.Errorf("reading metrics: %w", err)
		}
		all[match[3]+" "+strings.TrimSuffix(match[1]+"/"+match[2], "/")] += count
	}
	return all, nil
}

// sum adds the lines of the hub's metrics that match.
func (j *joiner) sum(ctx context.Context, lines *regexp.Regexp) (float64, error) {
	metrics, err := j.metrics(ctx)
	if err != nil {
		return 0, err
	}
	return sumOf(lines, metrics)
}

var resident = regexp.MustCompile(`(?m)^VmRSS:\s+(\d+) kB$`)

// residentMiB returns the memory of a process.
func residentMiB(pid int) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("reading how much memory the gateway has: %w", err)
	}
	match := resident.FindSubmatch(status)
	if match == nil {
		return 0, errors.New("this system does not report the gateway's memory")
	}
	kib, err := strconv.ParseFloat(string(match[1]), 64)
	const kibPerMiB = 1024
	return kib / kibPerMiB, err
}
