// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package helmchart

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// engine returns a test's result for each member.
type engine struct {
	mu      sync.Mutex
	render  func(*Release) (*Rendered, error)
	members []string
}

func (e *engine) Render(_ context.Context, r *Release) (*Rendered, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.members = append(e.members, r.Member.Name)
	return e.render(r)
}

func (e *engine) requested() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.members, " ")
}

type fixture struct {
	*Renderer
	engine *engine
	clock  *clocktesting.FakePassiveClock
	queue  workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func start(t *testing.T, render func(*Release) (*Rendered, error)) *fixture {
	t.Helper()
	f := &fixture{engine: &engine{render: render}, clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))}
	f.Renderer = NewRenderer(f.engine, nil, builtin, f.clock)
	f.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	ctx, cancel := context.WithCancel(t.Context())
	if err := f.Source().Start(ctx, f.queue); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- f.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		f.queue.ShutDown()
	})
	return f
}

func waiting(member string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: "binding-" + member}}
}

// ask requests a member's manifests, waits for the notification, and requests them again.
func (f *fixture) ask(t *testing.T, member string) (string, error) {
	t.Helper()
	r := &Release{Name: "a", Namespace: "addons", Package: []byte("chart"), Member: Member{Name: member}}
	manifests, err := f.Manifests(r, waiting(member))
	if errors.Is(err, ErrRendering) {
		key, _ := f.queue.Get()
		f.queue.Done(key)
		if key != waiting(member) {
			t.Errorf("queued %s, want %s", key, waiting(member))
		}
		manifests, err = f.Manifests(r, waiting(member))
	}
	if err != nil {
		return "", err
	}
	return string(manifests[0].Raw), nil
}

func TestRenderer_CachesResults(t *testing.T) {
	f := start(t, func(r *Release) (*Rendered, error) {
		return &Rendered{Objects: []Object{object("ConfigMap", "", r.Member.Name)}}, nil
	})
	for _, member := range []string{"a", "b", "a", "a", "b"} {
		got, err := f.ask(t, member)
		if err != nil || !strings.Contains(got, fmt.Sprintf("%q", member)) {
			t.Errorf("member %s gets %s, %v", member, got, err)
		}
	}
	if requested := f.engine.requested(); requested != "a b" {
		t.Errorf("rendered for %s", requested)
	}
}

func TestRenderer_DoesNotRetryProblems(t *testing.T) {
	f := start(t, func(*Release) (*Rendered, error) { return nil, &Problem{What: "no"} })
	for range 3 {
		var problem *Problem
		if _, err := f.ask(t, "a"); !errors.As(err, &problem) {
			t.Errorf("error = %v", err)
		}
		f.clock.SetTime(f.clock.Now().Add(time.Hour))
	}
	if requested := f.engine.requested(); requested != "a" {
		t.Errorf("rendered for %s", requested)
	}
}

func TestRenderer_ExhaustingChartPausesForAllMembers(t *testing.T) {
	f := start(t, func(*Release) (*Rendered, error) { return nil, fmt.Errorf("%w: too long", ErrExhausted) })
	for _, member := range []string{"a", "b", "a"} {
		if _, err := f.ask(t, member); !errors.Is(err, ErrExhausted) {
			t.Errorf("error = %v", err)
		}
	}
	if requested := f.engine.requested(); requested != "a" {
		t.Errorf("a chart that takes too long was tried for %s", requested)
	}
	f.clock.SetTime(f.clock.Now().Add(2 * Pause))
	if _, err := f.ask(t, "b"); !errors.Is(err, ErrExhausted) {
		t.Errorf("error = %v", err)
	}
	if requested := f.engine.requested(); requested != "a b" {
		t.Errorf("after a while it was tried for %s", requested)
	}
}

// everything fetches every chart but one.
type everything struct{}

func (everything) Fetch(_ context.Context, source Source) ([]byte, error) {
	if source.Version == "0" {
		return nil, &Problem{What: "no"}
	}
	return []byte(source.String()), nil
}

func TestRenderer_FetchesCharts(t *testing.T) {
	e := &engine{render: func(r *Release) (*Rendered, error) {
		return &Rendered{Objects: []Object{object("ConfigMap", "", strings.TrimPrefix(string(r.Package), SchemeOCI))}}, nil
	}}
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	release := func(version string) *Release {
		return &Release{Namespace: "addons", Source: &Source{Chart: "oci://a/b", Version: version}}
	}
	manifests, err := NewRenderer(e, everything{}, builtin, clock).render(t.Context(), release("1.0.0"))
	if err != nil || !strings.Contains(string(manifests[0].Raw), `"a/b 1.0.0"`) {
		t.Errorf("rendered %s, %v", manifests, err)
	}
	var problem *Problem
	if _, err := NewRenderer(e, everything{}, builtin, clock).render(t.Context(), release("0")); !errors.As(err, &problem) {
		t.Errorf("error = %v", err)
	}
	if _, err := NewRenderer(e, nil, builtin, clock).render(t.Context(), release("1.0.0")); !errors.As(err, &problem) || !strings.Contains(err.Error(), "placement.helmChartRegistries") {
		t.Errorf("error = %v", err)
	}
}

func TestRenderer_DropsOldResults(t *testing.T) {
	f := start(t, func(r *Release) (*Rendered, error) {
		return &Rendered{Objects: []Object{object("ConfigMap", "", r.Member.Name+strings.Repeat("x", 10*trifle))}}, nil
	})
	f.memory = 100 * trifle
	for i := range 50 {
		if _, err := f.ask(t, fmt.Sprint("m", i)); err != nil {
			t.Fatal(err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.size > f.memory || len(f.done) != len(f.order) || len(f.done) < 5 || len(f.requested) > 0 {
		t.Errorf("%d bytes of %d results are remembered, %d are in order, %d are still asked for", f.size, len(f.done), len(f.order), len(f.requested))
	}
}
