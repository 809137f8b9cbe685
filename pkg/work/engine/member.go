// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"net/http"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"fleetgate.io/fleetgate/pkg/work/engine/memberwatch"
	"fleetgate.io/fleetgate/pkg/work/engine/merge"
)

// requestTimeout is longer than an API server waits for webhooks, 30 s at most.
const requestTimeout = 40 * time.Second

// Member is a member's API server, as all families of works on it share it.
type Member struct {
	// Config reaches it, by Client, whose requests end after a while.
	Config *rest.Config
	Client *http.Client
	// Kinds never forgets a kind.
	Kinds apimeta.RESTMapper
	// Watcher has to run.
	Watcher *memberwatch.Watcher
	objects dynamic.Interface
	stored  inventory
	// served are the kinds of works' objects, for all families.
	served *servedKinds

	accounts accounts
}

// Reach makes the clients of a member's API server. It does not talk to it yet.
func Reach(config *rest.Config) (*Member, error) {
	config = rest.CopyConfig(config)
	if config.QPS == 0 {
		config.QPS = -1 // the member's own priority and fairness limits us
	}
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making the member's transport: %w", err)
	}
	// A request that hangs, mostly in a webhook of the member, must not keep a worker
	// for ever. Watches are meant to last: they keep the client without a limit.
	limited := *transport
	limited.Timeout = requestTimeout
	m := &Member{Config: config, Client: &limited}
	if m.Kinds, err = apiutil.NewDynamicRESTMapper(config, transport); err != nil {
		return nil, fmt.Errorf("making the member's mapper of kinds: %w", err)
	}
	m.served = &servedKinds{current: m.Kinds, clock: clock.RealClock{},
		fresh: func() (kindFinder, error) { return apiutil.NewDynamicRESTMapper(config, transport) }}
	if m.objects, err = dynamic.NewForConfigAndClient(config, &limited); err != nil {
		return nil, fmt.Errorf("making the member's client: %w", err)
	}
	watching := metadata.ConfigFor(config)
	watching.WarningHandlerWithContext = rest.NoWarnings{} // Who writes an object is told what is deprecated.
	watches, err := metadata.NewForConfigAndClient(watching, transport)
	if err != nil {
		return nil, fmt.Errorf("making the member's client: %w", err)
	}
	m.Watcher = memberwatch.New(watches)
	if m.stored, err = newInventory(watching, &limited); err != nil {
		return nil, fmt.Errorf("making the member's client: %w", err)
	}
	return m, nil
}

// Options says how an Engine works. All have to be set, but for what says otherwise.
type Options struct {
	// Effort is with its defaults.
	Effort Effort
	// Retries says when works of which something was refused are looked at again, by name.
	Retries workqueue.TypedRateLimiter[string]
	// Records is the resource of the owners of a family's objects. It is watched.
	Records schema.GroupVersionResource
	// About is the work, or the record, as an object on the hub by its name, that something
	// on the member is about: a work's object, or a record, of which the event has the name.
	// expected says that it tells nothing but what we did ourselves.
	About func(memberwatch.Event) (work client.Object, expected bool)
	// RefusesNamespace says why nothing is written into a namespace that exists, or is empty. Nil:
	// all are written into.
	RefusesNamespace func(metav1.Object) string
}

// For makes the Engine of one family of works.
func (m *Member) For(dialect Dialect, o Options) *Engine {
	e := &Engine{
		Dialect:  dialect,
		member:   m.objects,
		stored:   m.stored,
		kinds:    m.served,
		merger:   merge.Merger{Known: scheme.Scheme},
		clock:    o.Effort.Clock,
		effort:   o.Effort,
		retries:  o.Retries,
		about:    o.About,
		guard:    guardOf(m.objects, o.RefusesNamespace),
		touched:  make(chan event.GenericEvent, 1024),
		memories: newMemories(),
	}
	e.watch = m.Watcher.For(o.Records, e.touch)
	return e
}

// Saw is what the watch knows of an object.
func (e *Engine) Saw(object memberwatch.Object) memberwatch.Sighting { return e.watch.Saw(object) }

// Blind lists the resources of a work's objects that we may not watch, in order.
func (e *Engine) Blind(work string) []schema.GroupVersionResource { return e.watch.Blind(work) }
