// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/fleet"
)

const (
	// concurrency is the number of parallel writes: by the agents together, and by the bare client.
	// The gateway writes as many Works in parallel, and bindings in addition.
	concurrency = 16
	// placedConfigMaps, of 1 KiB each, are in the namespace of each placement.
	placedConfigMaps = 3
	// placementPatience bounds each wait.
	placementPatience = 10 * time.Minute
)

// placementBed is a hub, its gateway, and simulated members.
type placementBed struct {
	fleet               *fleet.Fleet
	hub                 client.WithWatch
	api                 apiClient
	placements, members int
	// chosen is the number of members of each placement: all, unless a benchmark sets fewer.
	chosen   int
	agents   *agents
	bindings *names
	// snapshots are the latest snapshots of each placement.
	snapshots map[string]int
	// watching stops the background goroutines.
	//nolint:containedctx // It is the life of what the bed runs.
	watching context.Context
	running  sync.WaitGroup
	end      func()

	tookJoin, tookScheduled, tookWorks, tookAvailable, tookChange time.Duration
	tookChangeAll, quietChangeAll                                 time.Duration

	available map[string]float64
	figures   []figure
}

func newPlacementBed(b *testing.B, placements, members int, flags ...string) *placementBed {
	b.Helper()
	ctrl.SetLogger(klog.Background())
	f := startFleetWith(b, fmt.Sprintf("placement-%d", members), fleet.Options{GatewayArgs: append(gatewayFlags(), flags...)})
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1beta1.AddToScheme, placementv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			b.Fatal(err)
		}
	}
	config := f.Hub.Config()
	config.QPS = -1
	hub, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	p := &placementBed{fleet: f, hub: hub, api: newAPIClient(b, config), placements: placements, members: members, chosen: members,
		agents: newAgents(hub), bindings: newNames(), snapshots: map[string]int{}, watching: ctx}
	p.end = func() { cancel(); p.running.Wait() }
	b.Cleanup(p.end)
	return p
}

// works returns the expected number of Works.
func (p *placementBed) works() int { return p.placements * p.chosen }

func (p *placementBed) memberNames() []string {
	var all []string
	for i := range p.members {
		all = append(all, fmt.Sprintf("%s%04d", memberPrefix, i))
	}
	return all
}

const memberPrefix = "member-"

// join creates the members and keeps sending their heartbeats.
func (p *placementBed) join(b *testing.B) {
	joined := newNames()
	see(p.watching, &p.running, p.hub, &clusterv1beta1.MemberClusterList{}, func(object client.Object) {
		m, ok := object.(*clusterv1beta1.MemberCluster)
		if ok && meta.IsStatusConditionTrue(m.Status.Conditions, clusterv1beta1.ConditionJoined) {
			joined.add(m.Name)
		}
	})
	p.agents.start(p.watching, &p.running)
	p.each(b, p.memberNames(), func(ctx context.Context, name string) error {
		m := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: p.labelsOf(name)}}
		m.Spec.Identity = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: clusterv1beta1.AgentAccount, Namespace: clusterv1beta1.MemberNamespace(name)}
		return p.hub.Create(ctx, m)
	})
	p.await(b, "members", func() bool { return joined.len() >= p.members })
}

const (
	// setLabel divides the members into sets of those that a placement chooses, stageLabel each set
	// into the stages of update runs.
	setLabel, stageLabel = "set", "stage"
	stages               = 3
)

// labelsOf returns the labels of a member.
func (p *placementBed) labelsOf(name string) map[string]string {
	nth, err := strconv.Atoi(strings.TrimPrefix(name, memberPrefix))
	if err != nil {
		return nil
	}
	return map[string]string{"benchmark": "placement", setLabel: strconv.Itoa(nth / p.chosen), stageLabel: strconv.Itoa(nth % stages)}
}

// each calls a function for each name, in parallel up to concurrency.
func (p *placementBed) each(b *testing.B, list []string, do func(context.Context, string) error) {
	b.Helper()
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(concurrency)
	for _, name := range list {
		group.Go(func() error { return do(ctx, name) })
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
}

// measuredPrefix begins the names of measured placements. Every fleet has another placement, for
// its administrators on members.
const measuredPrefix = "shop-"

func (p *placementBed) placementNames() []string {
	var all []string
	for i := range p.placements {
		all = append(all, fmt.Sprintf("%s%02d", measuredPrefix, i))
	}
	return all
}

// isMeasured reports whether a binding or a Work belongs to a measured placement.
func isMeasured(object client.Object) bool {
	return strings.HasPrefix(object.GetLabels()[placementv1beta1.ParentPlacementLabel], measuredPrefix)
}

// place creates the placements; their resources exist already.
func (p *placementBed) place(b *testing.B) {
	see(p.watching, &p.running, p.hub, metadataOf(placementv1beta1.GroupVersion.WithKind("ClusterResourceBindingList")), func(object client.Object) {
		if isMeasured(object) {
			p.bindings.add(object.GetName())
		}
	})
	p.each(b, p.placementNames(), func(ctx context.Context, name string) error {
		return p.hub.Create(ctx, placementOf(name))
	})
}

// placementOf places a namespace on all members.
func placementOf(name string) *placementv1beta1.ClusterResourcePlacement {
	all, second := intstr.FromString("100%"), 1
	crp := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name}}
	crp.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: name}}
	crp.Spec.Strategy.RollingUpdate = &placementv1beta1.RollingUpdateConfig{MaxUnavailable: &all, UnavailablePeriodSeconds: &second}
	return crp
}

// prepare creates the resources of placements.
func (p *placementBed) prepare(b *testing.B, placements []string) {
	p.each(b, placements, func(ctx context.Context, name string) error {
		if err := p.hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
		for i := range placedConfigMaps {
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: fmt.Sprintf("settings-%d", i)}}
			object.Data = map[string]string{"payload": strings.Repeat("x", 1<<10)}
			if err := p.hub.Create(ctx, object); err != nil {
				return err
			}
		}
		return nil
	})
}

// change changes one ConfigMap of each of the first n placements.
func (p *placementBed) change(b *testing.B, placements int) {
	changed := p.placementNames()[:placements]
	awaited := map[string]int{}
	for _, name := range changed {
		p.snapshots[name]++
		awaited[name] = p.snapshots[name]
	}
	p.agents.expect(awaited)
	p.each(b, changed, func(ctx context.Context, name string) error {
		patch := fmt.Appendf(nil, `{"data":{"change":"%d"}}`, awaited[name])
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "settings-0"}}
		return p.hub.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
	})
}

// awaitChange waits until all Works of n placements have the snapshot of the latest change.
func (p *placementBed) awaitChange(b *testing.B, placements int) {
	p.await(b, "changed Works", func() bool { return p.agents.changes() >= placements*p.chosen })
}

// measureChange measures how long a change of one ConfigMap of each of n placements takes to be in
// all their Works, and until no more writes follow.
func (p *placementBed) measureChange(b *testing.B, part string, placements int) (took, quiet time.Duration) {
	changing, began := p.begin(b, part), time.Now()
	p.change(b, placements)
	p.awaitChange(b, placements)
	took = time.Since(began)
	p.settle(b)
	quiet = time.Since(began)
	changing.end(b)
	return took, quiet
}

func (p *placementBed) await(b *testing.B, what string, done func() bool) {
	b.Helper()
	const interval = 5 * time.Millisecond
	err := wait.PollUntilContextTimeout(b.Context(), interval, placementPatience, true, func(context.Context) (bool, error) { return done(), nil })
	if err != nil {
		b.Fatalf("waiting for %s: %v (%d bindings, %d Works, %d of them changed)", what, err, p.bindings.len(), p.agents.works.len(), p.agents.changes())
	}
}

// awaitAvailable waits until the placements are Available, and returns the time until each was.
func (p *placementBed) awaitAvailable(b *testing.B, placements []string) []time.Duration {
	b.Helper()
	return p.awaitEach(b, "ClusterResourcePlacement", placements, func(ctx context.Context, name string) (bool, error) {
		crp := &placementv1beta1.ClusterResourcePlacement{}
		err := p.hub.Get(ctx, client.ObjectKey{Name: name}, crp)
		return meta.IsStatusConditionTrue(crp.Status.Conditions, crp.ConditionType(placementv1beta1.ConditionAvailable)), err
	})
}

// awaitEach waits until all named objects of a kind are done, and returns the time until each was.
// Their statuses are large, so they are read only after a change.
func (p *placementBed) awaitEach(b *testing.B, kind string, names []string, done func(context.Context, string) (bool, error)) []time.Duration {
	b.Helper()
	const interval = 100 * time.Millisecond
	var took []time.Duration
	began, waiting := time.Now(), map[string]string{} // versions
	for _, name := range names {
		waiting[name] = ""
	}
	versions := metadataOf(placementv1beta1.GroupVersion.WithKind(kind + "List"))
	err := wait.PollUntilContextTimeout(b.Context(), interval, placementPatience, true, func(ctx context.Context) (bool, error) {
		if err := p.hub.List(ctx, versions); err != nil {
			return false, err
		}
		for i := range versions.Items {
			name := versions.Items[i].Name
			if version, waits := waiting[name]; !waits || version == versions.Items[i].ResourceVersion {
				continue
			}
			waiting[name] = versions.Items[i].ResourceVersion
			if ready, err := done(ctx, name); err != nil {
				return false, err
			} else if ready {
				took = append(took, time.Since(began))
				delete(waiting, name)
			}
		}
		return len(waiting) == 0, nil
	})
	if err != nil {
		b.Fatalf("waiting for %s objects: %v: %d of %d are left", kind, err, len(waiting), len(names))
	}
	return took
}

// writes returns the writes that the hub has counted.
func (p *placementBed) writes(b *testing.B) []written {
	b.Helper()
	var metrics bytes.Buffer
	if err := p.api.get(b.Context(), "/metrics", &metrics); err != nil {
		b.Fatal(err)
	}
	all, err := parseWrites(metrics.String())
	if err != nil {
		b.Fatal(err)
	}
	return all
}

// settle waits until only heartbeats are written.
func (p *placementBed) settle(b *testing.B) {
	b.Helper()
	const quiet = time.Second
	last := []written(nil)
	err := wait.PollUntilContextTimeout(b.Context(), quiet, placementPatience, true, func(context.Context) (bool, error) {
		now := p.writes(b)
		more := since(last, now)
		last = now
		return !slices.ContainsFunc(more, func(w written) bool { return !w.isReport() }), nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// names is a set that one goroutine fills while another reads its size.
type names struct {
	mu  sync.Mutex
	set map[string]bool
}

func newNames() *names { return &names{set: map[string]bool{}} }

// add reports whether it was not there.
func (n *names) add(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.set[name] {
		return false
	}
	n.set[name] = true
	return true
}

func (n *names) len() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.set)
}

func metadataOf(gvk schema.GroupVersionKind) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk)
	return list
}

// see calls a function for each object that is created or changed, until the context ends. A busy
// hub ends watches with slow readers. Each resumes where it ended: a new list would send all
// objects and end the sooner. If it cannot resume, it waits before the new list like client-go's
// reflectors in agents and gateways.
func see(ctx context.Context, running *sync.WaitGroup, hub client.WithWatch, list client.ObjectList, tell func(client.Object), options ...client.ListOption) {
	running.Go(func() {
		const first, most, reset, factor, jitter, doublings = 800 * time.Millisecond, 30 * time.Second, 2 * time.Minute, 2, 1, 5
		wait := wait.Backoff{Duration: first, Cap: most, Steps: doublings, Factor: factor, Jitter: jitter}.DelayWithReset(clock.RealClock{}, reset)
		for ctx.Err() == nil {
			seen := list.DeepCopyObject().(client.ObjectList)
			err := hub.List(ctx, seen, options...)
			if err == nil {
				err = meta.EachListItem(seen, func(object runtime.Object) error { tell(object.(client.Object)); return nil })
			}
			if err == nil {
				err = follow(ctx, hub, seen, tell, options...)
			}
			if err != nil && ctx.Err() == nil {
				klog.Infof("Listing %T again: %v", list, err)
				time.Sleep(wait())
			}
		}
	})
}

// follow watches after a list, and returns an error when the hub no longer has the resourceVersion.
func follow(ctx context.Context, hub client.WithWatch, list client.ObjectList, tell func(client.Object), options ...client.ListOption) error {
	version := list.GetResourceVersion()
	for ctx.Err() == nil {
		after := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true}}
		w, err := hub.Watch(ctx, list, append([]client.ListOption{after}, options...)...)
		if err != nil {
			return err
		}
		for event := range w.ResultChan() {
			object, ok := event.Object.(client.Object)
			if !ok {
				w.Stop()
				return apierrors.FromObject(event.Object)
			}
			version = object.GetResourceVersion()
			if event.Type != watch.Deleted && event.Type != watch.Bookmark {
				tell(object)
			}
		}
		w.Stop()
	}
	return nil
}
