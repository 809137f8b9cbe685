// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"fleetgate.io/fleetgate/pkg/apis/crds"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	"fleetgate.io/fleetgate/pkg/placement"
	"fleetgate.io/fleetgate/pkg/placement/ocm/replicaset"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

// servePlacements installs the Placement API on the hub and returns a client for it and for
// ManifestWorkReplicaSets.
func servePlacements() client.Client {
	GinkgoHelper()
	theirs, err := crds.ForHub(ocmclusterv1beta1.GroupName)
	Expect(err).NotTo(HaveOccurred())
	_, err = envtest.InstallCRDs(hub.Config(), envtest.CRDInstallOptions{CRDs: theirs, MaxTime: time.Minute})
	Expect(err).NotTo(HaveOccurred())
	return expect.Client(build.Unlimited(hub.Config()), hubScheme())
}

func hubScheme() *runtime.Scheme {
	return build.Scheme(apiextensionsv1.AddToScheme, workv1.AddToScheme, workv1alpha1.AddToScheme, ocmclusterv1beta1.AddToScheme, clusterv1.AddToScheme, clusterv1beta2.AddToScheme)
}

// startGateway runs the hub's controllers for the rest of a spec.
func startGateway() {
	GinkgoHelper()
	mgr, err := ctrl.NewManager(build.Unlimited(hub.Config()), ctrl.Options{
		Scheme: hubScheme(), Metrics: server.Options{BindAddress: "0"}, Cache: cache.Options{ByObject: replicaset.CacheOptions()},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	Expect(err).NotTo(HaveOccurred())
	gateway := expect.Started(func(ctx context.Context) (func(context.Context) error, error) {
		return mgr.Start, placement.SetupReplicaSets(ctx, mgr, 1, nil)
	})
	DeferCleanup(gateway.Stop)
}

// decided creates Placement "p" with a decision for the suite's cluster.
func decided(ctx context.Context, c client.Client, namespace string) {
	GinkgoHelper()
	Expect(c.Create(ctx, &ocmclusterv1beta1.Placement{ObjectMeta: build.In(namespace, "p")})).To(Succeed())
	decision := &ocmclusterv1beta1.PlacementDecision{ObjectMeta: build.In(namespace, "p-decision-1")}
	decision.Labels = map[string]string{ocmclusterv1beta1.PlacementLabel: "p"}
	Expect(c.Create(ctx, decision)).To(Succeed())
	decision.Status.Decisions = []ocmclusterv1beta1.ClusterDecision{{ClusterName: clusterName}}
	Expect(c.Status().Update(ctx, decision)).To(Succeed())
}

// bound adds the suite's cluster to a set that is bound to a namespace. The gateway requires that
// if the hub serves these kinds.
func bound(ctx context.Context, c client.Client, namespace string) {
	GinkgoHelper()
	expect.CreatedForSpec(ctx, c, &clusterv1.ManagedCluster{ObjectMeta: build.Named(clusterName)})
	set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: build.Named(namespace)}
	set.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.LabelSelector, LabelSelector: &metav1.LabelSelector{}}
	expect.CreatedForSpec(ctx, c, set)
	expect.CreatedForSpec(ctx, c, &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: build.In(namespace, set.Name), Spec: clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: set.Name},
	})
}

// setOf returns a set for Placement "p" with foreground deletion.
func setOf(namespace, name string, texts ...string) *workv1alpha1.ManifestWorkReplicaSet {
	GinkgoHelper()
	return &workv1alpha1.ManifestWorkReplicaSet{
		ObjectMeta: build.In(namespace, name),
		Spec: workv1alpha1.ManifestWorkReplicaSetSpec{
			CascadeDeletionPolicy: workv1alpha1.CascadeForeground,
			PlacementRefs: []workv1alpha1.LocalPlacementReference{{Name: "p", RolloutStrategy: clusterv1alpha1.RolloutStrategy{
				Type: clusterv1alpha1.RolloutProgressive, Progressive: &clusterv1alpha1.RolloutProgressiveConfig{},
			}}},
			ManifestWorkTemplate: workv1.ManifestWorkSpec{Workload: workv1.ManifestsTemplate{Manifests: manifests(texts...)}},
		},
	}
}

// setComplete are the conditions of a completed rollout.
func setComplete() []string {
	return []string{"PlacementVerified True AsExpected", "PlacementRolledOut True Complete", "ManifestworkApplied True AsExpected"}
}

// conditionsOf returns the conditions of a set as type status reason.
func conditionsOf(ctx context.Context, c client.Client, set *workv1alpha1.ManifestWorkReplicaSet) func(Gomega) []string {
	return func(g Gomega) []string {
		g.Expect(c.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
		var all []string
		for _, condition := range set.Status.Conditions {
			all = append(all, fmt.Sprintf("%s %s %s", condition.Type, condition.Status, condition.Reason))
		}
		return all
	}
}

var _ = Describe("A ManifestWorkReplicaSet and an agent", func() {
	It("apply the template to the cluster, report it without rules, and remove it", func(ctx SpecContext) {
		c, ns, team := servePlacements(), expect.FreshNamespace(ctx, memberClient), expect.FreshNamespace(ctx, hubClient)
		startGateway()
		decided(ctx, c, team)
		set, complete := setOf(team, "web", build.ConfigMapText(ns, "a", "x", "1")), setComplete()
		Expect(c.Create(ctx, set)).To(Succeed())
		Eventually(conditionsOf(ctx, c, set)).Should(HaveExactElements(complete))
		Expect(expect.Data(ctx, memberClient, ns, "a")()).To(Equal(map[string]string{"x": "1"}))

		By("another template")
		set.Spec.ManifestWorkTemplate.Workload.Manifests = manifests(build.ConfigMapText(ns, "a", "x", "2"), build.ConfigMapText(ns, "b"))
		Expect(c.Update(ctx, set)).To(Succeed())
		Eventually(expect.Data(ctx, memberClient, ns, "a")).Should(Equal(map[string]string{"x": "2"}))
		Eventually(conditionsOf(ctx, c, set)).Should(HaveExactElements(complete))

		By("one that the cluster refuses")
		set.Spec.ManifestWorkTemplate.Workload.Manifests = manifests(build.ConfigMapText("no-such-namespace", "a"))
		Expect(c.Update(ctx, set)).To(Succeed())
		Eventually(conditionsOf(ctx, c, set)).Should(ContainElement("PlacementRolledOut False Progressing"))

		Expect(c.Delete(ctx, set)).To(Succeed())
		Eventually(expect.Gone(ctx, c, set)).Should(BeTrue())
		Expect(expect.Data(ctx, memberClient, ns, "a")()).To(BeNil())
	})
})
