// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	sources "sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	"fleetgate.io/fleetgate/pkg/placement/ocm/scheduler/clustercel"
)

// lateHub is a hub whose events arrive in order for each kind, but with independent random delays:
// first at a cache, and later at the event handlers.
type lateHub struct {
	client.WithWatch
	//nolint:containedctx // It is the life of the hub.
	ctx context.Context

	// flawless is true if no write of a gateway fails.
	flawless bool

	mu   sync.Mutex // guards the following fields, and keeps news in the order of writes
	dice *rand.Rand
	// writes counts writes, and last is the number of the last write of each object.
	writes int
	last   map[string]int
	news   map[string]chan news
}

// news is an object before and after a write, nil where it did not exist.
type news struct {
	was, is client.Object
	write   int
}

func kindOf(object client.Object) string { return fmt.Sprintf("%T", object) }

func idOf(object client.Object) string {
	return kindOf(object) + " " + client.ObjectKeyFromObject(object).String()
}

func newLateHub(ctx context.Context, t *testing.T, dice *rand.Rand) *lateHub {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, clusterv1alpha1.AddToScheme, ocmclusterv1beta1.AddToScheme, clusterv1beta2.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	h := &lateHub{ctx: ctx, dice: dice, last: map[string]int{}, news: map[string]chan news{}}
	funcs := writing(h.write)
	create := funcs.Create
	funcs.Create = func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.CreateOption) error {
		if decision, ok := object.(*ocmclusterv1beta1.PlacementDecision); ok {
			decision.Status = ocmclusterv1beta1.PlacementDecisionStatus{}
		}
		return create(ctx, c, object, o...)
	}
	h.WithWatch = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&ocmclusterv1beta1.Placement{}, &ocmclusterv1beta1.PlacementDecision{}).WithInterceptorFuncs(funcs).Build()
	return h
}

// writing intercepts every write with one function.
func writing(by func(object client.Object, do func() error) error) interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.CreateOption) error {
			return by(object, func() error { return c.Create(ctx, object, o...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.UpdateOption) error {
			return by(object, func() error { return c.Update(ctx, object, o...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, p client.Patch, o ...client.PatchOption) error {
			return by(object, func() error { return c.Patch(ctx, object, p, o...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.DeleteOption) error {
			return by(object, func() error { return c.Delete(ctx, object, o...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, object client.Object, p client.Patch, o ...client.SubResourcePatchOption) error {
			return by(object, func() error { return c.SubResource(name).Patch(ctx, object, p, o...) })
		},
	}
}

// write writes, and queues the event.
func (h *lateHub) write(object client.Object, do func() error) error {
	time.Sleep(h.while(20 * time.Millisecond))
	h.mu.Lock()
	defer h.mu.Unlock()
	was, is := h.read(object), client.Object(nil)
	if err := do(); err != nil {
		return err
	}
	is = h.read(object)
	h.writes++
	h.last[idOf(object)] = h.writes
	if events := h.news[kindOf(object)]; events != nil {
		events <- news{was: was, is: is, write: h.writes}
	}
	return nil
}

// read is an object's current state; nil if it does not exist.
func (h *lateHub) read(object client.Object) client.Object {
	is := object.DeepCopyObject().(client.Object)
	if err := h.WithWatch.Get(h.ctx, client.ObjectKeyFromObject(object), is); err != nil {
		return nil
	}
	return is
}

func (h *lateHub) while(most time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Duration(h.dice.Int64N(int64(most)))
}

// written is the number of writes.
func (h *lateHub) written() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.writes
}

// oneIn is true once in n times on average.
func (h *lateHub) oneIn(n int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dice.IntN(n) == 0
}

// lateGateway is a gateway on such a hub. It reads its cache, but waits for its own writes to
// arrive there. Its writes fail at random, whether or not they were carried out.
type lateGateway struct {
	*lateHub
	tell map[string]handler.EventHandler
	to   queue

	mu    sync.Mutex // guards the following fields
	grown sync.Cond  // signals every change of the cache, and its end
	dead  bool
	cache map[string]client.Object
	// applied is, by kind, the last write in the cache; wrote is, by object, its own writes.
	applied, wrote map[string]int
}

// decide runs a gateway until the context ends, and returns the counter of its decisions. Writes in
// progress are finished.
func (h *lateHub) decide(ctx context.Context, t *testing.T, compiler *clustercel.Compiler) (decisions func() uint64) {
	t.Helper()
	registry := prometheus.NewRegistry()
	metrics, err := newMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	g := &lateGateway{lateHub: h, cache: map[string]client.Object{}, applied: map[string]int{}, wrote: map[string]int{}}
	g.grown.L = &g.mu
	context.AfterFunc(ctx, g.die)
	r := &Reconciler{
		Client: interceptor.NewClient(h.WithWatch, g.funcs()), Live: h, Recorder: events.NewFakeRecorder(100000), Clock: clock.RealClock{}, metrics: metrics, compiler: compiler,
		cache: newClusterCache(), decisions: newDecisionIndex(), statuses: map[types.NamespacedName]*ocmclusterv1beta1.PlacementStatus{},
	}
	g.tell = map[string]handler.EventHandler{
		kindOf(&ocmclusterv1beta1.Placement{}): r.placements(), kindOf(&ocmclusterv1beta1.PlacementDecision{}): states(r.decision), kindOf(&clusterv1.ManagedCluster{}): states(r.cluster),
		kindOf(&clusterv1beta2.ManagedClusterSet{}): states(r.set), kindOf(&clusterv1beta2.ManagedClusterSetBinding{}): states(r.binding), kindOf(&clusterv1alpha1.AddOnPlacementScore{}): states(r.sheet),
	}
	again := true
	c, err := controller.NewUnmanaged("late", controller.Options{Reconciler: r, SkipNameValidation: &again, MaxConcurrentReconciles: 4, LogConstructor: func(*reconcile.Request) logr.Logger { return logr.Discard() }})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Watch(sources.Func(func(_ context.Context, q queue) error { g.to = q; g.listen(ctx); return nil })); err != nil {
		t.Fatal(err)
	}
	go func() { _ = c.Start(ctx) }()
	synctest.Wait()
	return func() uint64 {
		gathered, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, of := range gathered {
			if of.GetName() == "scheduling_scheduling_duration_seconds" {
				return of.Metric[0].Histogram.GetSampleCount()
			}
		}
		return 0
	}
}

// listen reads existing objects, which are delivered before any decision, and then events.
func (g *lateGateway) listen(ctx context.Context) {
	g.lateHub.mu.Lock()
	defer g.lateHub.mu.Unlock()
	for kind, to := range g.tell {
		for _, is := range g.all(kind) {
			g.take(kind, news{is: is, write: g.writes})
			to.Create(ctx, event.CreateEvent{Object: is, IsInInitialList: true}, g.to)
		}
		events, later := make(chan news, 10000), make(chan news, 10000)
		g.news[kind] = events
		go g.passOn(ctx, events, func(n news) { g.take(kind, n); later <- n })
		go g.passOn(ctx, later, func(n news) {
			switch {
			case n.is == nil && n.was != nil:
				to.Delete(ctx, event.DeleteEvent{Object: n.was}, g.to)
			case n.is != nil && n.was == nil:
				to.Create(ctx, event.CreateEvent{Object: n.is}, g.to)
			case n.is != nil:
				to.Update(ctx, event.UpdateEvent{ObjectOld: n.was, ObjectNew: n.is}, g.to)
			}
		})
	}
}

// all are the existing objects of a kind.
func (h *lateHub) all(kind string) (there []client.Object) {
	for _, list := range []client.ObjectList{
		&ocmclusterv1beta1.PlacementList{}, &ocmclusterv1beta1.PlacementDecisionList{}, &clusterv1.ManagedClusterList{},
		&clusterv1beta2.ManagedClusterSetList{}, &clusterv1beta2.ManagedClusterSetBindingList{}, &clusterv1alpha1.AddOnPlacementScoreList{},
	} {
		if err := h.List(h.ctx, list); err != nil {
			panic(err)
		}
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			if object := item.(client.Object); kindOf(object) == kind {
				there = append(there, object.DeepCopyObject().(client.Object))
			}
			return nil
		})
	}
	return there
}

// passOn handles events with a delay between them.
func (g *lateGateway) passOn(ctx context.Context, from chan news, to func(news)) {
	for {
		select {
		case <-ctx.Done():
			return
		case n := <-from:
			time.Sleep(g.while(150 * time.Millisecond))
			to(n)
		}
	}
}

// take applies events to the cache.
func (g *lateGateway) take(kind string, n news) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.applied[kind] = n.write
	g.grown.Broadcast()
	switch {
	case n.is != nil:
		g.cache[idOf(n.is)] = n.is
	case n.was != nil:
		delete(g.cache, idOf(n.was))
	}
}

// die ends all waiting: no decision or write begins any more.
func (g *lateGateway) die() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dead = true
	g.grown.Broadcast()
}

// cached is an object in the cache, nil if it does not exist, once the gateway's own write has
// arrived.
func (g *lateGateway) cached(object client.Object) (client.Object, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.applied[kindOf(object)] < g.wrote[idOf(object)] && !g.dead {
		g.grown.Wait()
	}
	if g.dead {
		return nil, errLost
	}
	return g.cache[idOf(object)], nil
}

func (g *lateGateway) funcs() interceptor.Funcs {
	funcs := writing(g.faulty)
	funcs.Get = func(_ context.Context, _ client.WithWatch, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
		object.SetNamespace(key.Namespace)
		object.SetName(key.Name)
		is, err := g.cached(object)
		if err != nil {
			return err
		}
		if is == nil {
			return apierrors.NewNotFound(schema.GroupResource{Resource: kindOf(object)}, key.Name)
		}
		switch object := object.(type) {
		case *ocmclusterv1beta1.Placement:
			is.(*ocmclusterv1beta1.Placement).DeepCopyInto(object)
		case *ocmclusterv1beta1.PlacementDecision:
			is.(*ocmclusterv1beta1.PlacementDecision).DeepCopyInto(object)
		default:
			return fmt.Errorf("a gateway does not read a %T", object)
		}
		return nil
	}
	return funcs
}

var errLost = errors.New("the connection is lost")

// faulty writes, or fails to, or loses the response.
func (g *lateGateway) faulty(object client.Object, write func() error) error {
	g.mu.Lock()
	dead := g.dead
	g.mu.Unlock()
	if dead || !g.flawless && g.oneIn(20) {
		return errLost
	}
	if err := write(); err != nil {
		return err
	}
	if !g.flawless && g.oneIn(20) {
		return errLost
	}
	g.lateHub.mu.Lock()
	last := g.last[idOf(object)]
	g.lateHub.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wrote[idOf(object)] = last
	return nil
}
