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
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"fleetgate.io/fleetgate/pkg/apis/crds"
	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	"fleetgate.io/fleetgate/pkg/placement"
	"fleetgate.io/fleetgate/pkg/placement/replicaset"
	"fleetgate.io/fleetgate/test/build"
	"fleetgate.io/fleetgate/test/expect"
)

// startGateway runs the hub's part for the rest of a spec, and returns a client that knows
// its kinds.
func startGateway() client.Client {
	GinkgoHelper()
	theirs, err := crds.ForHub(ocmclusterv1beta1.GroupName)
	Expect(err).NotTo(HaveOccurred())
	_, err = envtest.InstallCRDs(hub.Config(), envtest.CRDInstallOptions{CRDs: theirs, MaxTime: time.Minute})
	Expect(err).NotTo(HaveOccurred())
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		apiextensionsv1.AddToScheme, workv1.AddToScheme, workv1alpha1.AddToScheme, ocmclusterv1beta1.AddToScheme,
	} {
		Expect(add(known)).To(Succeed())
	}
	mgr, err := ctrl.NewManager(build.Unlimited(hub.Config()), ctrl.Options{
		Scheme: known, Metrics: server.Options{BindAddress: "0"}, Cache: cache.Options{ByObject: replicaset.CacheOptions()},
	})
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	Expect(placement.SetupReplicaSets(ctx, mgr, 1)).To(Succeed())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	DeferCleanup(func() {
		cancel()
		Eventually(done).Should(Receive(BeNil()))
	})
	c, err := client.New(build.Unlimited(hub.Config()), client.Options{Scheme: known})
	Expect(err).NotTo(HaveOccurred())
	return c
}

// conditionsOf a set, as type status reason.
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
	It("bring what is in the template to the cluster, say so without any rule, and take it away", func(ctx SpecContext) {
		c, ns := startGateway(), expect.FreshNamespace(ctx, memberClient)
		expect.Created(ctx, hubClient, build.Namespace("team-a"))
		Expect(c.Create(ctx, &ocmclusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "p"}})).To(Succeed())
		decision := &ocmclusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
			Namespace: "team-a", Name: "p-decision-1", Labels: map[string]string{ocmclusterv1beta1.PlacementLabel: "p"},
		}}
		Expect(c.Create(ctx, decision)).To(Succeed())
		decision.Status.Decisions = []ocmclusterv1beta1.ClusterDecision{{ClusterName: clusterName}}
		Expect(c.Status().Update(ctx, decision)).To(Succeed())
		set := &workv1alpha1.ManifestWorkReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web"},
			Spec: workv1alpha1.ManifestWorkReplicaSetSpec{
				CascadeDeletionPolicy: workv1alpha1.CascadeForeground,
				PlacementRefs: []workv1alpha1.LocalPlacementReference{{Name: "p", RolloutStrategy: clusterv1alpha1.RolloutStrategy{
					Type: clusterv1alpha1.RolloutProgressive, Progressive: &clusterv1alpha1.RolloutProgressiveConfig{},
				}}},
				ManifestWorkTemplate: workv1.ManifestWorkSpec{Workload: workv1.ManifestsTemplate{Manifests: manifests(build.ConfigMapText(ns, "a", "x", "1"))}},
			},
		}
		Expect(c.Create(ctx, set)).To(Succeed())
		complete := []string{"PlacementVerified True AsExpected", "PlacementRolledOut True Complete", "ManifestworkApplied True AsExpected"}
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
