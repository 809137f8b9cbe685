// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
)

// One decision, from the cache to the desired slices, for ten clusters out of many,
// without reads or writes of a hub.
func BenchmarkOcmplacement(b *testing.B) {
	byExpression := func(spec *ocmclusterv1beta1.PlacementSpec) {
		spec.Predicates = make([]ocmclusterv1beta1.ClusterPredicate, 1)
		spec.Predicates[0].RequiredClusterSelector.CELSelector.CELExpressions = []string{`managedCluster.status.clusterClaims.exists(c, c.name == "region" && c.value == "eu")`}
	}
	plain := func(*ocmclusterv1beta1.PlacementSpec) {}
	for _, bench := range []struct {
		name     string
		clusters int
		spec     func(*ocmclusterv1beta1.PlacementSpec)
	}{{"1000", 1000, plain}, {"1000-cel", 1000, byExpression}, {"10000", 10000, plain}} {
		b.Run(bench.name, func(b *testing.B) {
			r, decisions := cacheOf(), newDecisionIndex()
			for i := range bench.clusters {
				r.setCluster(managed(fmt.Sprintf("cluster%05d", i), func(c *clusterv1.ManagedCluster) {
					c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "region", Value: []string{"eu", "us"}[i%2]}}
					c.Status.Allocatable = clusterv1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")}
				}))
			}
			ten := int32(10)
			placement := placed(func(spec *ocmclusterv1beta1.PlacementSpec) { spec.NumberOfClusters = &ten; bench.spec(spec) })
			w := mustParse(b, placement)
			for b.Loop() {
				from := r.availableTo("team", w)
				counts, most := decisions.others(types.NamespacedName{})
				for i := range from.clusters {
					from.clusters[i].Decided = counts(from.clusters[i].Name)
				}
				if o := decide(placement, w, from, most, noon, nil); len(o.ranked.Picked) != 10 {
					b.Fatalf("%d clusters are picked", len(o.ranked.Picked))
				}
			}
		})
	}
}
