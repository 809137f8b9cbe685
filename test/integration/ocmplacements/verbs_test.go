// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ocmplacements_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

// bed is the environment of one spec: a namespace, and a set of the same name that is bound to it,
// with its own clusters.
type bed struct{ namespace string }

func newBed(ctx context.Context, clusters int) *bed {
	GinkgoHelper()
	b := &bed{namespace: expect.FreshNamespace(ctx, hubClient)}
	for i := range clusters {
		b.join(ctx, b.name(i+1))
	}
	b.set(ctx, b.namespace)
	b.bind(ctx, b.namespace)
	return b
}

// name returns the name of the nth cluster. Names sort like their numbers.
func (b *bed) name(n int) string { return fmt.Sprintf("%s-c%03d", b.namespace, n) }

func (b *bed) names(numbers ...int) []string {
	names := []string{}
	for _, n := range numbers {
		names = append(names, b.name(n))
	}
	return names
}

// join creates a cluster in the bed's set, and its namespace.
func (b *bed) join(ctx context.Context, name string) {
	GinkgoHelper()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: build.Named(name)}
	cluster.Labels = map[string]string{clusterv1.ClusterSetLabel: b.namespace}
	expect.CreatedForSpec(ctx, hubClient, cluster)
}

func (b *bed) set(ctx context.Context, name string) {
	GinkgoHelper()
	expect.CreatedForSpec(ctx, hubClient, &clusterv1beta2.ManagedClusterSet{ObjectMeta: build.Named(name)})
}

func (b *bed) bind(ctx context.Context, set string) {
	GinkgoHelper()
	expect.Created(ctx, hubClient, b.binding(set))
}

func (b *bed) binding(set string) *clusterv1beta2.ManagedClusterSetBinding {
	return &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: build.In(b.namespace, set), Spec: clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: set},
	}
}

// place creates a Placement.
func (b *bed) place(ctx context.Context, name string, change func(*clusterv1beta1.PlacementSpec)) *clusterv1beta1.Placement {
	GinkgoHelper()
	placement := &clusterv1beta1.Placement{ObjectMeta: build.In(b.namespace, name)}
	if change != nil {
		change(&placement.Spec)
	}
	expect.CreatedForSpec(ctx, hubClient, placement)
	return placement
}

// wants sets a number of clusters, chosen by name only.
func wants(n int32) func(*clusterv1beta1.PlacementSpec) {
	return func(spec *clusterv1beta1.PlacementSpec) {
		spec.NumberOfClusters = &n
		spec.PrioritizerPolicy.Mode = clusterv1beta1.ModeExact
	}
}

// both applies several changes.
func both(changes ...func(*clusterv1beta1.PlacementSpec)) func(*clusterv1beta1.PlacementSpec) {
	return func(spec *clusterv1beta1.PlacementSpec) {
		for _, change := range changes {
			change(spec)
		}
	}
}

// scores uses a score, built in, or of an AddOnPlacementScore whose name precedes a slash.
func scores(name string) func(*clusterv1beta1.PlacementSpec) {
	return func(spec *clusterv1beta1.PlacementSpec) {
		coordinate := clusterv1beta1.ScoreCoordinate{Type: clusterv1beta1.CoordinateBuiltIn, BuiltIn: name}
		if sheet, addOn, ok := strings.Cut(name, "/"); ok {
			coordinate = clusterv1beta1.ScoreCoordinate{Type: clusterv1beta1.CoordinateAddOn, AddOn: &clusterv1beta1.AddOnScore{ResourceName: sheet, ScoreName: addOn}}
		}
		spec.PrioritizerPolicy.Configurations = append(spec.PrioritizerPolicy.Configurations, clusterv1beta1.PrioritizerConfig{ScoreCoordinate: coordinate, Weight: 1})
	}
}

// selects adds a cluster selector.
func selects(change func(*clusterv1beta1.ClusterSelector)) func(*clusterv1beta1.PlacementSpec) {
	return func(spec *clusterv1beta1.PlacementSpec) {
		predicate := clusterv1beta1.ClusterPredicate{}
		change(&predicate.RequiredClusterSelector)
		spec.Predicates = append(spec.Predicates, predicate)
	}
}

func tolerates(toleration clusterv1beta1.Toleration) func(*clusterv1beta1.PlacementSpec) {
	return func(spec *clusterv1beta1.PlacementSpec) { spec.Tolerations = append(spec.Tolerations, toleration) }
}

// decisions returns a Placement's decisions by the numbers in their names.
func decisions(ctx context.Context, placement *clusterv1beta1.Placement) []clusterv1beta1.PlacementDecision {
	GinkgoHelper()
	list := &clusterv1beta1.PlacementDecisionList{}
	Expect(hubClient.List(ctx, list, client.InNamespace(placement.Namespace), client.MatchingLabels{clusterv1beta1.PlacementLabel: placement.Name})).To(Succeed())
	slices.SortFunc(list.Items, func(a, b clusterv1beta1.PlacementDecision) int {
		return len(a.Name)*1000 - len(b.Name)*1000 + strings.Compare(a.Name, b.Name)
	})
	return list.Items
}

// chosen returns a Placement's clusters once its status agrees.
func chosen(ctx context.Context, placement *clusterv1beta1.Placement) func(Gomega) []string {
	return func(g Gomega) []string {
		names := []string{}
		for _, decision := range decisions(ctx, placement) {
			for _, d := range decision.Status.Decisions {
				names = append(names, d.ClusterName)
			}
		}
		is := &clusterv1beta1.Placement{}
		g.Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(placement), is)).To(Succeed())
		g.Expect(is.Status.NumberOfSelectedClusters).To(BeEquivalentTo(len(names)))
		return names
	}
}

// said returns the conditions of a Placement in order.
func said(ctx context.Context, placement *clusterv1beta1.Placement) func(Gomega) []string {
	return func(g Gomega) []string {
		is := &clusterv1beta1.Placement{}
		g.Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(placement), is)).To(Succeed())
		var all []string
		for _, c := range is.Status.Conditions {
			g.Expect(c.ObservedGeneration).To(Equal(is.Generation))
			all = append(all, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
		}
		return all
	}
}

const (
	fine      = "PlacementMisconfigured=False Succeedconfigured: Placement configurations check pass"
	satisfied = "PlacementSatisfied=True AllDecisionsScheduled: All cluster decisions scheduled"
)

// cluster changes a cluster and its status.
func cluster(ctx context.Context, name string, change func(*clusterv1.ManagedCluster)) {
	GinkgoHelper()
	is := &clusterv1.ManagedCluster{ObjectMeta: build.Named(name)}
	Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(is), is)).To(Succeed())
	change(is)
	status := is.Status
	Expect(hubClient.Update(ctx, is)).To(Succeed())
	is.Status = status
	Expect(hubClient.Status().Update(ctx, is)).To(Succeed())
}

func taint(effect clusterv1.TaintEffect) func(*clusterv1.ManagedCluster) {
	return func(c *clusterv1.ManagedCluster) {
		c.Spec.Taints = []clusterv1.Taint{{Key: "maintenance", Effect: effect, TimeAdded: metav1.Now()}}
	}
}

func untaint(c *clusterv1.ManagedCluster) { c.Spec.Taints = nil }

func claim(name, value string) func(*clusterv1.ManagedCluster) {
	return func(c *clusterv1.ManagedCluster) {
		c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: name, Value: value}}
	}
}

func label(key, value string) func(*clusterv1.ManagedCluster) {
	return func(c *clusterv1.ManagedCluster) { c.Labels[key] = value }
}

func cpu(amount string) func(*clusterv1.ManagedCluster) {
	return func(c *clusterv1.ManagedCluster) {
		c.Status.Capacity = clusterv1.ResourceList{corev1.ResourceCPU: resource.MustParse("100")}
		c.Status.Allocatable = clusterv1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
	}
}

// score sets a score in a cluster's AddOnPlacementScore usage.
func score(ctx context.Context, cluster string, value int32, until *metav1.Time) {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: build.Named(cluster)}
	Expect(client.IgnoreAlreadyExists(hubClient.Create(ctx, namespace))).To(Succeed())
	is := &clusterv1alpha1.AddOnPlacementScore{ObjectMeta: build.In(cluster, "usage")}
	Expect(client.IgnoreAlreadyExists(hubClient.Create(ctx, is.DeepCopy()))).To(Succeed())
	Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(is), is)).To(Succeed())
	is.Status = clusterv1alpha1.AddOnPlacementScoreStatus{Scores: []clusterv1alpha1.AddOnPlacementScoreItem{{Name: "cpu", Value: value}}, ValidUntil: until}
	Expect(hubClient.Status().Update(ctx, is)).To(Succeed())
}

// writes counts the gateway's writes until there was none for a while.
func writes(do func()) int64 {
	GinkgoHelper()
	before, last := written.Load(), int64(-1)
	do()
	Eventually(func() bool {
		settled := written.Load() == last
		last = written.Load()
		return settled
	}).WithPolling(quiet).Should(BeTrue())
	return last - before
}

// quiet is longer than the gateway batches changes.
const quiet = 500 * time.Millisecond
