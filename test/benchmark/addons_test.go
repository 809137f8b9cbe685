// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	addons "fleetgate.io/fleetgate/pkg/addon/hub"
	"fleetgate.io/fleetgate/pkg/addon/hub/template"
	"fleetgate.io/fleetgate/pkg/apis/crds"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/klusterlet"
	"fleetgate.io/fleetgate/pkg/placement/ocm/replicaset"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
)

const addOnNamespace = "add-ons"

// BenchmarkAddons installs an add-on with an AddOnTemplate on 1,000 clusters (100 with -short), which
// report that they applied it, then changes its configuration, and lets agents of three add-ons register,
// beside a bare client that makes only the writes without which no cluster has the add-on. Then it installs
// more add-ons, and changes nothing.
func BenchmarkAddons(b *testing.B) {
	clusters := chosenFrom
	if testing.Short() {
		clusters = clustersDecision
	}
	bed := newAddOnBed(b, clusters)
	of := fmt.Sprintf("hub/%d", clusters)
	nothing := func(context.Context) error { return nil }
	b.Run(of+"/installed", func(b *testing.B) { bed.compare(b, nothing, bed.installed, bed.bareInstalled) })
	b.Run(of+"/changed", func(b *testing.B) { bed.compare(b, nothing, bed.changed, bed.bareChanged) })
	b.Run(of+"/registered", func(b *testing.B) { bed.registered(b) })
	b.Run(of+"/idle", func(b *testing.B) { bed.idle(b) })
}

// idleAddOns is how many add-ons an idle hub has on each cluster.
const idleAddOns = 20

// idle counts the writes of a minute in which nothing changes, and the memory of the gateway's part.
func (a *addOnBed) idle(b *testing.B) {
	for a.runs < idleAddOns {
		if err := a.installed(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := a.counts.settled(b.Context()); err != nil {
		b.Fatal(err)
	}
	before := a.counts.all()
	for b.Loop() {
		time.Sleep(idleFor)
	}
	b.ReportMetric(float64(a.counts.all()-before)/float64(b.N), "writes/minute")
	b.ReportMetric(float64(heap()-a.heapBefore)/(1<<20), "MiB")
	b.ReportMetric(float64(a.runs*len(a.clusters)), "add-ons")
	b.ReportMetric(0, "ns/op")
}

// addOnKinds are the kinds that the gateway writes for add-ons.
var addOnKinds = []string{"managedclusteraddons", "clustermanagementaddons", "manifestworks", "certificatesigningrequests"}

// writeCounts counts the gateway's successful writes, by resource and subresource.
type writeCounts struct {
	mutex sync.Mutex
	// by is guarded by the mutex, and last is the time of the last write.
	by   map[string]int
	last time.Time
}

func (w *writeCounts) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if r.Method != http.MethodGet && err == nil && response.StatusCode < http.StatusMultipleChoices {
			w.mutex.Lock()
			defer w.mutex.Unlock()
			for _, kind := range addOnKinds {
				if strings.Contains(r.URL.Path, "/"+kind) {
					w.by[kind]++
					if strings.HasSuffix(r.URL.Path, "/status") {
						w.by[kind+"/status"]++
					}
				}
			}
			w.last = time.Now()
		}
		return response, err
	})
}

func (w *writeCounts) of(kind string) int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.by[kind]
}

func (w *writeCounts) all() int {
	all := 0
	for _, kind := range addOnKinds {
		all += w.of(kind)
	}
	return all
}

// settled waits until there was no write for some seconds, and returns when the last one was.
func (w *writeCounts) settled(ctx context.Context) (time.Time, error) {
	var last time.Time
	err := pollEvery(ctx, time.Second, func(context.Context) (bool, error) {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		last = w.last
		return time.Since(last) > 3*time.Second, nil
	})
	return last, err
}

// addOnBed is a hub with clusters that a Placement has selected, and the gateway's part for add-ons.
type addOnBed struct {
	connection *rest.Config
	hub        client.WithWatch
	clusters   []string
	counts     *writeCounts
	// runs counts add-ons.
	runs int
	// heapBefore is the heap before the gateway's part started.
	heapBefore int64
}

func newAddOnBed(b *testing.B, clusters int) *addOnBed {
	b.Helper()
	ctrl.SetLogger(logr.Discard())
	hub, err := env.Start(b.Context(), env.Options{Name: "add-ons"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = hub.Stop(context.WithoutCancel(b.Context())) })
	definitions, err := crds.ForHub(addonv1alpha1.GroupName, clusterv1.GroupName, workv1.GroupName)
	if err != nil {
		b.Fatal(err)
	}
	for _, definition := range definitions {
		if definition.Spec.Group == addonv1alpha1.GroupName {
			definition.Spec.Versions = definition.Spec.Versions[:1] // Nothing converts to v1beta1 here.
		}
	}
	if _, err := envtest.InstallCRDs(hub.Config(), envtest.CRDInstallOptions{CRDs: definitions, MaxTime: time.Minute}); err != nil {
		b.Fatal(err)
	}
	kinds := build.Scheme(clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, addonv1alpha1.AddToScheme, clusterv1.AddToScheme, clusterv1beta1.AddToScheme, workv1.AddToScheme)
	bed := &addOnBed{connection: build.Unlimited(hub.Config()), counts: &writeCounts{by: map[string]int{}}}
	if bed.hub, err = client.NewWithWatch(bed.connection, client.Options{Scheme: kinds}); err != nil {
		b.Fatal(err)
	}
	if err := bed.fill(b.Context(), clusters); err != nil {
		b.Fatal(err)
	}
	bed.heapBefore = heap()
	gateway, skip := build.Unlimited(hub.Config()), true
	gateway.Wrap(bed.counts.wrap)
	manager, err := ctrl.NewManager(gateway, ctrl.Options{
		Scheme: kinds, Metrics: server.Options{BindAddress: "0"}, Cache: cache.Options{ByObject: replicaset.CacheOptions()}, Controller: config.Controller{SkipNameValidation: &skip},
	})
	if err == nil {
		err = addons.SetupWithManager(b.Context(), manager, addons.Options{
			Clock: clock.RealClock{}, Workers: 8, Agents: klusterlet.AgentsOf(nil), HashOf: replicaset.HashOf,
			Authority: template.Authority{Parse: klusterlet.ParseAddOn, Sign: klusterlet.SignAddOn(clock.RealClock{})},
		})
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(running(b, manager.Start, bed.apply))
	return bed
}

// fill creates accepted clusters, a Placement that has selected all of them, and an AddOnTemplate.
func (a *addOnBed) fill(ctx context.Context, clusters int) error {
	for n := range clusters {
		a.clusters = append(a.clusters, fmt.Sprintf("cluster-%04d", n))
	}
	if err := a.hub.Create(ctx, build.Namespace(addOnNamespace)); err != nil {
		return err
	}
	err := sideways(a.clusters, func(name string) error {
		cluster := &clusterv1.ManagedCluster{ObjectMeta: build.Named(name)}
		if err := errors.Join(a.hub.Create(ctx, build.Namespace(name)), a.hub.Create(ctx, cluster)); err != nil {
			return err
		}
		meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{Type: clusterv1.ConditionHubAccepted, Status: metav1.ConditionTrue, Reason: "HubClusterAdminAccepted"})
		return a.hub.Status().Update(ctx, cluster)
	})
	if err != nil {
		return err
	}
	of := &clusterv1beta1.Placement{ObjectMeta: build.In(addOnNamespace, "all")}
	if err := a.hub.Create(ctx, of); err != nil {
		return err
	}
	for from := 0; from < len(a.clusters); from += clustersDecision {
		decision := &clusterv1beta1.PlacementDecision{ObjectMeta: build.In(addOnNamespace, fmt.Sprintf("all-decision-%d", from/clustersDecision))}
		decision.Labels = map[string]string{clusterv1beta1.PlacementLabel: of.Name, clusterv1beta1.DecisionGroupIndexLabel: "0"}
		if err := a.hub.Create(ctx, decision); err != nil {
			return err
		}
		for _, cluster := range a.clusters[from : from+clustersDecision] {
			decision.Status.Decisions = append(decision.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: cluster})
		}
		if err := a.hub.Status().Update(ctx, decision); err != nil {
			return err
		}
	}
	of.Status.NumberOfSelectedClusters = int32(len(a.clusters))
	meta.SetStatusCondition(&of.Status.Conditions, metav1.Condition{Type: clusterv1beta1.ConditionSatisfied, Status: metav1.ConditionTrue, Reason: "AllDecisionsScheduled"})
	return a.hub.Status().Update(ctx, of)
}

// apply reports in place of the clusters that each version of a ManifestWork was applied. A conflict is
// followed by an event.
func (a *addOnBed) apply(ctx context.Context) error {
	var group errgroup.Group
	group.SetLimit(writers)
	for ctx.Err() == nil {
		watched, err := a.hub.Watch(ctx, &workv1.ManifestWorkList{})
		if err != nil {
			return client.IgnoreNotFound(err)
		}
		for event := range watched.ResultChan() {
			work, ok := event.Object.(*workv1.ManifestWork)
			if !ok || !setApplied(work) {
				continue
			}
			group.Go(func() error {
				_ = a.hub.Status().Update(ctx, work)
				return nil
			})
		}
		watched.Stop()
	}
	return group.Wait()
}

func setApplied(work *workv1.ManifestWork) bool {
	changed := false
	for _, kind := range []string{workv1.ConditionApplied, workv1.ConditionAvailable} {
		condition := metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Done", ObservedGeneration: work.Generation}
		changed = meta.SetStatusCondition(&work.Status.Conditions, condition) || changed
	}
	if work.Status.ResourceStatus.Manifests == nil {
		work.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{}
	}
	return changed
}

// compare reports how long an operation took, and what the gateway wrote for each cluster. What prepares it
// is not measured.
func (a *addOnBed) compare(b *testing.B, prepare, ours, bare func(context.Context) error) {
	var until time.Duration
	kinds := []string{"manifestworks", "managedclusteraddons", "managedclusteraddons/status", "clustermanagementaddons/status", "certificatesigningrequests"}
	written := map[string]int{}
	together(b,
		variant{name: "fleetgate", do: func(ctx context.Context) (time.Duration, error) {
			if err := prepare(ctx); err != nil {
				return 0, err
			}
			before := map[string]int{}
			for _, kind := range kinds {
				before[kind] = a.counts.of(kind)
			}
			begin := time.Now()
			took, err := timed(ours)(ctx)
			if err != nil {
				return 0, err
			}
			last, err := a.counts.settled(ctx)
			until += last.Sub(begin)
			for _, kind := range kinds {
				written[kind] += a.counts.of(kind) - before[kind]
			}
			return took, err
		}},
		variant{name: "bare", do: timed(bare)})
	b.ReportMetric(until.Seconds()/float64(b.N), "s-until-quiet")
	for _, kind := range kinds {
		b.ReportMetric(float64(written[kind])/float64(b.N*len(a.clusters)), kind+"/cluster")
	}
}

// manifests are what the template installs: a Deployment and its configuration.
func manifests(level string) []workv1.Manifest {
	var all []workv1.Manifest
	for _, text := range []string{
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","namespace":"agents"},"data":{"level":"` + level + `"}}`,
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"agent","namespace":"agents"},"spec":{"selector":{"matchLabels":{"app":"agent"}},` +
			`"template":{"metadata":{"labels":{"app":"agent"}},"spec":{"containers":[{"name":"main","image":"registry.example.com/agent:v1"}]}}}}`,
	} {
		manifest := workv1.Manifest{}
		manifest.Raw = []byte(text)
		all = append(all, manifest)
	}
	return all
}

func (a *addOnBed) addOn() string  { return fmt.Sprint("add-on-", a.runs) }
func (a *addOnBed) config() string { return fmt.Sprint("config-", a.runs) }
func (a *addOnBed) level(level string) addonv1alpha1.AddOnDeploymentConfigSpec {
	return addonv1alpha1.AddOnDeploymentConfigSpec{CustomizedVariables: []addonv1alpha1.CustomizedVariable{{Name: "LEVEL", Value: level}}}
}

// installed creates an add-on and waits until each cluster has its ManifestWork.
func (a *addOnBed) installed(ctx context.Context) error {
	a.runs++
	from := &addonv1alpha1.AddOnTemplate{ObjectMeta: build.Named(fmt.Sprint("template-", a.runs)), Spec: addonv1alpha1.AddOnTemplateSpec{AddonName: a.addOn()}}
	from.Spec.AgentSpec.Workload.Manifests = manifests("{{LEVEL}}")
	from.Spec.Registration = []addonv1alpha1.RegistrationSpec{{Type: addonv1alpha1.RegistrationKubeClient}}
	addOn := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: build.Named(a.addOn())}
	addOn.Spec.SupportedConfigs = []addonv1alpha1.ConfigMeta{
		{ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: addonv1alpha1.GroupName, Resource: "addontemplates"}, DefaultConfig: &addonv1alpha1.ConfigReferent{Name: from.Name}},
		{ConfigGroupResource: template.DeploymentConfigs(), DefaultConfig: &addonv1alpha1.ConfigReferent{Namespace: addOnNamespace, Name: a.config()}},
	}
	addOn.Spec.InstallStrategy = addonv1alpha1.InstallStrategy{Type: addonv1alpha1.InstallPlacements, Placements: []addonv1alpha1.PlacementStrategy{
		{PlacementRef: addonv1alpha1.PlacementRef{Namespace: addOnNamespace, Name: "all"}},
	}}
	return a.until(ctx, 1, func() error {
		return errors.Join(a.hub.Create(ctx, from), a.hub.Create(ctx, &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: build.In(addOnNamespace, a.config()), Spec: a.level("0")}), a.hub.Create(ctx, addOn))
	})
}

// changed changes the configuration and waits until each cluster has the changed ManifestWork.
func (a *addOnBed) changed(ctx context.Context) error {
	config := &addonv1alpha1.AddOnDeploymentConfig{}
	if err := a.hub.Get(ctx, client.ObjectKey{Namespace: addOnNamespace, Name: a.config()}, config); err != nil {
		return err
	}
	config.Spec = a.level(fmt.Sprint(config.Generation))
	return a.until(ctx, config.Generation+1, func() error { return a.hub.Update(ctx, config) })
}

// until waits until each cluster has the ManifestWork in a generation.
func (a *addOnBed) until(ctx context.Context, generation int64, do func() error) error {
	ctx, cancel := context.WithTimeout(ctx, 5*patience)
	defer cancel()
	watched, err := a.hub.Watch(ctx, &workv1.ManifestWorkList{}, client.MatchingLabels{addonv1alpha1.AddOnNameLabel: a.addOn()})
	if err != nil {
		return err
	}
	defer watched.Stop()
	if err := do(); err != nil {
		return err
	}
	current := map[string]bool{}
	for event := range watched.ResultChan() {
		if work, ok := event.Object.(*workv1.ManifestWork); ok && work.Generation == generation {
			current[work.Namespace] = true
		}
		if len(current) == len(a.clusters) {
			return nil
		}
	}
	return fmt.Errorf("%d of %d clusters have generation %d: %w", len(current), len(a.clusters), generation, context.Cause(ctx))
}

func (a *addOnBed) bareWork(cluster string) *workv1.ManifestWork {
	work := &workv1.ManifestWork{ObjectMeta: build.In(cluster, fmt.Sprint("bare-", a.runs))}
	work.Spec.Workload.Manifests = manifests("0")
	return work
}

// bareInstalled writes the add-on of each cluster, its status once, and its ManifestWork. The add-on has
// no ClusterManagementAddOn, so that the gateway leaves it alone.
func (a *addOnBed) bareInstalled(ctx context.Context) error {
	return sideways(a.clusters, func(cluster string) error {
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: build.In(cluster, fmt.Sprint("bare-", a.runs))}
		if err := a.hub.Create(ctx, addOn); err != nil {
			return err
		}
		meta.SetStatusCondition(&addOn.Status.Conditions, metav1.Condition{Type: addonv1alpha1.ConditionConfigured, Status: metav1.ConditionTrue, Reason: addonv1alpha1.ReasonConfigurationsConfigured})
		return errors.Join(a.hub.Status().Update(ctx, addOn), a.hub.Create(ctx, a.bareWork(cluster)))
	})
}

// bareChanged writes each ManifestWork, and the status of each add-on.
func (a *addOnBed) bareChanged(ctx context.Context) error {
	return sideways(a.clusters, func(cluster string) error {
		work := a.bareWork(cluster)
		spec := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{"level":"%d"}}}`, time.Now().UnixNano()))
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: build.In(cluster, work.Name)}
		status := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"status":{"namespace":"n-%d"}}`, time.Now().UnixNano()))
		return errors.Join(a.hub.Patch(ctx, work, spec), a.hub.Status().Patch(ctx, addOn, status))
	})
}
