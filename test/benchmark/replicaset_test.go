// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	"fleetgate.io/fleetgate/pkg/placement"
	"fleetgate.io/fleetgate/pkg/placement/ocm/replicaset"
	"fleetgate.io/fleetgate/test/support/build"
)

const (
	setNamespace     = "team"
	setPlacement     = "everywhere"
	clustersOfSet    = 1000
	clustersDecision = 100
)

// benchmarkReplicaSet creates a set for 1,000 clusters; beside it a client creates the same
// ManifestWorks, eight in parallel.
func (m *manifestBed) benchmarkReplicaSet(b *testing.B) {
	ctx := b.Context()
	clusters, err := m.decided(ctx)
	if err != nil {
		b.Fatal(err)
	}
	skip := true
	manager, err := ctrl.NewManager(m.hubConfig, ctrl.Options{
		Scheme:     manifestScheme(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{ByObject: replicaset.CacheOptions()},
		Controller: config.Controller{SkipNameValidation: &skip},
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := placement.SetupReplicaSets(ctx, manager, 8, nil); err != nil {
		b.Fatal(err)
	}
	stop := running(b, manager.Start)
	defer stop()
	if !manager.GetCache().WaitForCacheSync(ctx) {
		b.Fatal("the gateway's caches are empty")
	}
	nth := 0
	together(b,
		variant{name: "fleetgate", figures: map[string]float64{"clusters/op": clustersOfSet}, do: func(ctx context.Context) (time.Duration, error) {
			nth++
			return m.roll(ctx, fmt.Sprintf("set-%d", nth))
		}},
		variant{name: "bare", do: func(ctx context.Context) (time.Duration, error) {
			return m.bareSet(ctx, clusters, fmt.Sprintf("bare-%d", nth))
		}})
}

// decided creates 1,000 clusters and a Placement with decisions for all of them.
func (m *manifestBed) decided(ctx context.Context) ([]string, error) {
	var clusters []string
	for nth := range clustersOfSet {
		clusters = append(clusters, fmt.Sprintf("c-%04d", nth))
	}
	err := sideways(append([]string{setNamespace}, clusters...), func(name string) error { return m.hub.Create(ctx, build.Namespace(name)) })
	if err != nil {
		return nil, err
	}
	of := &ocmclusterv1beta1.Placement{ObjectMeta: build.In(setNamespace, setPlacement)}
	if err := m.hub.Create(ctx, of); err != nil {
		return nil, err
	}
	for from := 0; from < clustersOfSet; from += clustersDecision {
		decision := &ocmclusterv1beta1.PlacementDecision{ObjectMeta: build.In(setNamespace, fmt.Sprintf("%s-decision-%d", setPlacement, from/clustersDecision))}
		decision.Labels = map[string]string{ocmclusterv1beta1.PlacementLabel: setPlacement, ocmclusterv1beta1.DecisionGroupIndexLabel: "0", ocmclusterv1beta1.DecisionGroupNameLabel: ""}
		if err := m.hub.Create(ctx, decision); err != nil {
			return nil, err
		}
		for _, cluster := range clusters[from : from+clustersDecision] {
			decision.Status.Decisions = append(decision.Status.Decisions, ocmclusterv1beta1.ClusterDecision{ClusterName: cluster})
		}
		if err := m.hub.Status().Update(ctx, decision); err != nil {
			return nil, err
		}
	}
	of.Status = ocmclusterv1beta1.PlacementStatus{NumberOfSelectedClusters: clustersOfSet, DecisionGroups: []ocmclusterv1beta1.DecisionGroupStatus{{}}}
	return clusters, m.hub.Status().Update(ctx, of)
}

// roll creates a set, waits until each cluster has its ManifestWork, and deletes the set.
func (m *manifestBed) roll(ctx context.Context, name string) (time.Duration, error) {
	template, err := manifestWorkOf(name, configMaps("default", 0, 10))
	if err != nil {
		return 0, err
	}
	set := &workv1alpha1.ManifestWorkReplicaSet{
		ObjectMeta: build.In(setNamespace, name),
		Spec: workv1alpha1.ManifestWorkReplicaSetSpec{
			PlacementRefs: []workv1alpha1.LocalPlacementReference{{Name: setPlacement}}, ManifestWorkTemplate: template.Spec},
	}
	labels := client.MatchingLabels{workv1alpha1.ReplicaSetLabel: setNamespace + "." + name}
	ctx, cancel := context.WithTimeout(ctx, 5*patience)
	defer cancel()
	watched, err := m.hub.Watch(ctx, &workv1.ManifestWorkList{}, labels)
	if err != nil {
		return 0, err
	}
	defer watched.Stop()
	begin := time.Now()
	if err := m.hub.Create(ctx, set); err != nil {
		return 0, err
	}
	if err := awaitEvents(ctx, watched, watch.Added, clustersOfSet); err != nil {
		return 0, err
	}
	took := time.Since(begin)
	if err := m.hub.Delete(ctx, set); err != nil {
		return 0, err
	}
	return took, awaitEvents(ctx, watched, watch.Deleted, clustersOfSet)
}

// awaitEvents waits for a number of events of a kind.
func awaitEvents(ctx context.Context, watched watch.Interface, of watch.EventType, count int) error {
	for seen := 0; seen < count; {
		event, open := <-watched.ResultChan()
		if !open {
			return fmt.Errorf("waiting for %d of %d events %s: %w", count-seen, count, of, context.Cause(ctx))
		}
		if event.Type == of {
			seen++
		}
	}
	return nil
}

// bareSet creates the ManifestWorks of a set.
func (m *manifestBed) bareSet(ctx context.Context, clusters []string, name string) (time.Duration, error) {
	template, err := manifestWorkOf(name, configMaps("default", 0, 10))
	if err != nil {
		return 0, err
	}
	work := func(cluster string) *workv1.ManifestWork {
		return &workv1.ManifestWork{ObjectMeta: build.In(cluster, name), Spec: template.Spec}
	}
	begin := time.Now()
	if err := sideways(clusters, func(cluster string) error { return m.hub.Create(ctx, work(cluster)) }); err != nil {
		return 0, err
	}
	took := time.Since(begin)
	return took, sideways(clusters, func(cluster string) error { return m.hub.Delete(ctx, work(cluster)) })
}
