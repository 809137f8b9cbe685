// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/readyourwrites"
	"fleetgate.io/fleetgate/pkg/kube/writepriority"
	"fleetgate.io/fleetgate/pkg/placement/dispatch"
	"fleetgate.io/fleetgate/pkg/placement/eviction"
	"fleetgate.io/fleetgate/pkg/placement/failover"
	"fleetgate.io/fleetgate/pkg/placement/helmchart"
	"fleetgate.io/fleetgate/pkg/placement/objects"
	"fleetgate.io/fleetgate/pkg/placement/override"
	"fleetgate.io/fleetgate/pkg/placement/rollout"
	"fleetgate.io/fleetgate/pkg/placement/scheduler"
	"fleetgate.io/fleetgate/pkg/placement/selection"
	"fleetgate.io/fleetgate/pkg/placement/snapshot"
	"fleetgate.io/fleetgate/pkg/placement/status"
	"fleetgate.io/fleetgate/pkg/placement/statusback"
	"fleetgate.io/fleetgate/pkg/placement/updaterun"
)

// recorderName is the source of the events; clients look for it.
const recorderName = "placement-controller"

// Options configure the controllers. The zero values are defaults.
type Options struct {
	// Workers is the number of placements that each controller reconciles at a time; 0 means 8.
	Workers int
	// DispatchWorkers is the number of bindings that are turned into Works at a time; 0 means 64,
	// because they mostly wait for the hub.
	DispatchWorkers int
	// Settle is how long changes of selected resources, or of bindings, are gathered; 0 means 50 ms.
	Settle time.Duration
	// ConfigMapEnvelopes treats annotated ConfigMaps as envelopes.
	ConfigMapEnvelopes bool
	// Charts renders ConfigMaps and Secrets with the annotation placementv1beta1.HelmChartAnnotation;
	// nil places them unchanged.
	Charts helmchart.Engine
	// ChartPackages fetches charts from registries; nil forbids it.
	ChartPackages helmchart.Packages
	// CheckAuthors limits placements to the resources that their authors were allowed to place at
	// admission (selection.Bound).
	CheckAuthors bool
	// Tenancy limits the members that ResourcePlacements choose from; nil means no limit.
	Tenancy scheduler.Tenancy
	// Marks are the labels and taints of members' ManagedClusters; nil means none.
	Marks scheduler.Marks
	// SnapshotIntervals are the durations for which changes of selected resources are gathered into one
	// resource snapshot.
	SnapshotIntervals snapshot.Intervals
	// Filter excludes kinds and namespaces from all placements.
	Filter selection.Filter
	// Silence is the time without a heartbeat after which the state of a member becomes unknown; 0 means
	// three minutes.
	Silence time.Duration
	// Clock is the clock; nil means the real one.
	Clock clock.PassiveClock
	// Order makes writes wait for more urgent ones, including those of other packages; nil means a
	// separate order.
	Order *writepriority.Order
	// Metrics export how long changes of placements take; nil disables them.
	Metrics prometheus.Registerer
}

func (o *Options) complete() {
	if o.Workers == 0 {
		o.Workers = 8
	}
	if o.DispatchWorkers == 0 {
		o.DispatchWorkers = 64
	}
	if o.Settle == 0 {
		o.Settle = 50 * time.Millisecond
	}
	if o.Silence == 0 {
		o.Silence = 3 * time.Minute
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Order == nil {
		o.Order = &writepriority.Order{}
	}
}

// urgency is the priority of a write: decisions first, then Works, then statuses of both.
func urgency(object client.Object, status bool) writepriority.Urgency {
	if status {
		return writepriority.Account
	}
	if _, ok := object.(*placementv1beta1.Work); ok {
		return writepriority.Delivery
	}
	return writepriority.Decision
}

// SetupWithManager registers all controllers of placement, including that of package dispatch. The
// manager's scheme must include the groups placement and cluster; its cache should have
// dispatch.CacheOptions.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, o Options) error {
	o.complete()
	for _, addIndexes := range []func(context.Context, client.FieldIndexer) error{objects.AddIndexes, updaterun.AddIndexes, dispatch.AddIndexes} {
		if err := addIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
			return err
		}
	}
	cached, live, err := clients(mgr)
	if err != nil {
		return err
	}
	cached = o.Order.Client(cached, urgency)
	selector, watcher, err := selectorFor(mgr, live, o.Settle, o.Filter)
	if err != nil {
		return err
	}
	if err := mgr.Add(watcher); err != nil {
		return fmt.Errorf("adding the watcher of selected resources: %w", err)
	}
	recorder := mgr.GetEventRecorder(recorderName)
	envelopes := snapshot.Envelopes{ConfigMaps: o.ConfigMapEnvelopes, Charts: o.Charts != nil}
	contents := snapshot.NewContents(cached, live, envelopes)
	snapshots := &snapshot.Reconciler{Client: cached, Live: live, Selector: selector, Users: updaterun.Users{Client: cached},
		Changes: watcher.Source(), Recorder: recorder, Envelopes: envelopes, Snapshots: contents, CheckAuthors: o.CheckAuthors,
		Workers: o.Workers, Intervals: o.SnapshotIntervals, Clock: o.Clock}
	arrival, err := addArrival(mgr, o)
	if err != nil {
		return err
	}
	rollouts := &rollout.Reconciler{Client: cached, Clock: o.Clock, Snapshots: contents, Workers: o.Workers}
	scheduling := &scheduler.Reconciler{Client: cached, Live: live, Profile: scheduler.Telling(scheduler.Profile()), Rollout: rollouts, Tenancy: o.Tenancy,
		Recorder: recorder, Marks: o.Marks, Clock: o.Clock, Workers: o.Workers}
	controllers := []controller{
		snapshots,
		scheduling,
		&eviction.Reconciler{Client: cached, Live: live},
		&failover.Reconciler{Client: cached, Recorder: recorder, Clock: o.Clock, Scheduler: scheduling, Workers: o.Workers, Silence: o.Silence},
		rollouts,
		&updaterun.Reconciler{Client: cached, Live: live, Snapshots: contents, Taker: snapshots, Recorder: recorder, Clock: o.Clock, Workers: o.Workers},
		&statusback.Reconciler{Client: cached, Live: live, Snapshots: contents, Workers: o.Workers},
		&status.Reconciler{Client: cached, Snapshots: contents, Recorder: recorder, Clock: o.Clock, Settle: o.Settle, Workers: o.Workers, Arrival: arrival},
	}
	for _, c := range override.NewReconcilers(cached, updaterun.Users{Client: cached}) {
		controllers = append(controllers, c)
	}
	works := &dispatch.Reconciler{Client: cached, Live: mgr.GetAPIReader(), Snapshots: contents, Scopes: scopesOf(mgr.GetRESTMapper()),
		Authors: o.authors(mgr.GetRESTMapper()), Recorder: recorder, Clock: o.Clock, Workers: o.DispatchWorkers}
	if works.Charts, err = addCharts(mgr, o, works.Scopes); err != nil {
		return err
	}
	for _, c := range append(controllers, works) {
		if err := c.SetupWithManager(mgr); err != nil {
			return err
		}
	}
	return nil
}

type controller interface {
	SetupWithManager(mgr ctrl.Manager) error
}

// authors limit deliveries; nil means no limit.
func (o *Options) authors(mapper meta.RESTMapper) *dispatch.Authors {
	if !o.CheckAuthors {
		return nil
	}
	return &dispatch.Authors{Resource: func(kind schema.GroupKind) (schema.GroupResource, bool, error) {
		mapping, known, err := mappingOf(mapper, kind)
		if err != nil || !known {
			return schema.GroupResource{}, false, err
		}
		return mapping.Resource.GroupResource(), true, nil
	}}
}

// addArrival measures how long placements take, and exports it if there is a registerer.
func addArrival(mgr ctrl.Manager, o Options) (*status.Arrival, error) {
	arrival := status.NewArrival(o.Clock.Now())
	if o.Metrics == nil {
		return arrival, nil
	}
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return arrival.Run(ctx, o.Metrics) })); err != nil {
		return nil, fmt.Errorf("adding the metric of how long placements take: %w", err)
	}
	return arrival, nil
}

// addCharts adds the renderer of charts, and returns nil if there is no engine for them.
func addCharts(mgr ctrl.Manager, o Options, scopes helmchart.Scopes) (dispatch.Charts, error) {
	if o.Charts == nil {
		return nil, nil
	}
	charts := helmchart.NewRenderer(o.Charts, o.ChartPackages, scopes, o.Clock)
	if err := mgr.Add(charts); err != nil {
		return nil, fmt.Errorf("adding the renderer of charts: %w", err)
	}
	return charts, nil
}

// scopesOf uses the hub's discovery. A kind that the hub serves only in another version has the same
// scope.
func scopesOf(mapper meta.RESTMapper) helmchart.Scopes {
	return func(kind schema.GroupVersionKind) (namespaced, known bool, err error) {
		mapping, known, err := mappingOf(mapper, kind.GroupKind())
		if err != nil || !known {
			return false, false, err
		}
		return mapping.Scope.Name() == meta.RESTScopeNameNamespace, true, nil
	}
}

// mappingOf is the resource of a kind, and false if the hub does not serve it.
func mappingOf(mapper meta.RESTMapper, kind schema.GroupKind) (*meta.RESTMapping, bool, error) {
	mapping, err := mapper.RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		return nil, false, nil
	}
	return mapping, err == nil, err
}

// clients returns a client that reads from the manager's cache and sees its own writes there, which the
// arithmetic of rollouts needs, and a client without the cache.
func clients(mgr ctrl.Manager) (cached, live client.Client, err error) {
	config := unthrottled(mgr)
	if live, err = client.New(config, client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()}); err != nil {
		return nil, nil, fmt.Errorf("making a client of the hub: %w", err)
	}
	cached, err = readyourwrites.NewClient(mgr, config)
	return cached, live, err
}

// unthrottled leaves fairness to the hub's API server, which knows the load.
func unthrottled(mgr ctrl.Manager) *rest.Config {
	config := rest.CopyConfig(mgr.GetConfig())
	config.QPS, config.RateLimiter = -1, nil
	return config
}

func selectorFor(mgr ctrl.Manager, rights client.Writer, settle time.Duration, filter selection.Filter) (*selection.Selector, *selection.Watcher, error) {
	config, httpClient := unthrottled(mgr), mgr.GetHTTPClient()
	// These clients read any selected kind. Each list and watch of a deprecated version returns a
	// warning, which the gateway's operator cannot act on.
	config.WarningHandlerWithContext = rest.NoWarnings{}
	discoverer, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, nil, fmt.Errorf("making a discovery client of the hub: %w", err)
	}
	metadataClient, err := metadata.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, nil, fmt.Errorf("making a metadata client of the hub: %w", err)
	}
	dynamicClient, err := dynamic.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, nil, fmt.Errorf("making a dynamic client of the hub: %w", err)
	}
	kinds := selection.NewKinds(discoverer, filter)
	watcher := selection.NewWatcher(kinds, metadataClient, rights, settle)
	return selection.NewSelector(kinds, watcher, dynamicClient), watcher, nil
}
