// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"fleetgate.io/fleetgate/pkg/work/engine/availability"
	"fleetgate.io/fleetgate/pkg/work/engine/memberwatch"
	"fleetgate.io/fleetgate/pkg/work/engine/merge"
)

// requestTimeout exceeds the longest timeout of admission webhooks, 30 s.
const requestTimeout = 40 * time.Second

// Member is the API server of a member. All families of works share it.
type Member struct {
	// Config is the client configuration. Requests by Client have a timeout.
	Config *rest.Config
	Client *http.Client
	// Kinds is never refreshed: it keeps kinds that were removed.
	Kinds apimeta.RESTMapper
	// Watcher must be started by the caller.
	Watcher *memberwatch.Watcher
	objects dynamic.Interface
	stored  inventory
	// served maps the kinds of works' objects, for all families.
	served *servedKinds
	health *availability.Evaluator

	accounts accounts
}

// NewMember creates the clients of a member's API server. It sends no request yet.
func NewMember(config *rest.Config) (*Member, error) {
	config = rest.CopyConfig(config)
	if config.QPS == 0 {
		config.QPS = -1 // the member's own priority and fairness limits us
	}
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making the member's transport: %w", err)
	}
	// A request can hang, mostly in a webhook of the member, and would then block a worker
	// indefinitely. Watches are long-running requests and use the client without a timeout.
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
	watching.WarningHandlerWithContext = rest.NoWarnings{} // The client that writes an object reports deprecations.
	watches, err := metadata.NewForConfigAndClient(watching, transport)
	if err != nil {
		return nil, fmt.Errorf("making the member's client: %w", err)
	}
	unlimited, err := dynamic.NewForConfigAndClient(watching, transport)
	if err != nil {
		return nil, fmt.Errorf("making the member's client: %w", err)
	}
	m.Watcher = memberwatch.New(watches, unlimited)
	if m.health, err = availability.NewEvaluator(); err != nil {
		return nil, err
	}
	if m.stored, err = newInventory(watching, &limited); err != nil {
		return nil, fmt.Errorf("making the member's client: %w", err)
	}
	return m, nil
}

// Options configures an Engine. All fields must be set, unless stated otherwise.
type Options struct {
	// Tuning must have its defaults set.
	Tuning Tuning
	// Retries is the backoff for works with refused manifests, by name.
	Retries workqueue.TypedRateLimiter[string]
	// Records is the resource of the owners of a family's objects. The engine watches it.
	Records schema.GroupVersionResource
	// ReservesNamespaces asks Family.ReservedNamespace before a write into an existing namespace.
	ReservesNamespaces bool
}

// For creates the Engine of one family.
func (m *Member) For(dialect Dialect, o Options, family Family) *Engine {
	e := &Engine{
		Dialect: dialect,
		member:  m.objects,
		stored:  m.stored,
		kinds:   m.served,
		merger:  merge.Merger{Known: scheme.Scheme},
		health:  m.health,
		clock:   o.Tuning.Clock,
		tuning:  o.Tuning,
		retries: o.Retries,
		family:  family,
		changes: make(chan event.GenericEvent, 1024),
		caches:  newCaches(),
	}
	if o.ReservesNamespaces {
		e.namespaces = m.objects.Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))
	}
	e.watch = m.Watcher.For(o.Records, e.enqueue)
	return e
}

// Observed returns what the watch knows of an object.
func (e *Engine) Observed(object memberwatch.Object) memberwatch.Observation {
	return e.watch.Observed(object)
}

// Unwatched lists the resources of a work's objects that the agent cannot watch, sorted.
func (e *Engine) Unwatched(work string) []schema.GroupVersionResource { return e.watch.Unwatched(work) }
