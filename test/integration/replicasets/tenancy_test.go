// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package replicasets_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/clusterset"
	"fleetgate.io/fleetgate/pkg/kube/hash"
	"fleetgate.io/fleetgate/pkg/placement/ocm/replicaset"
)

// setOfAll is the ManagedClusterSet of all clusters, except those labelled apart.
const setOfAll = "all"

// apart is a label that excludes a cluster from setOfAll.
const apart = "apart"

func tenancyOf(mgr ctrl.Manager) replicaset.Tenancy {
	return clusterset.Tenancy{Reader: mgr.GetClient(), Counts: func(context.Context, *clusterv1.ManagedCluster) (bool, error) { return true, nil }}
}

func makeSetOfAll(ctx context.Context, on client.Client) {
	GinkgoHelper()
	set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: setOfAll}}
	set.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.LabelSelector, LabelSelector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: apart, Operator: metav1.LabelSelectorOpDoesNotExist}},
	}}
	Eventually(func() error { return on.Create(ctx, set.DeepCopy()) }).Should(Succeed())
}

func bindSetOfAll(ctx context.Context, on client.Client, namespace string) {
	GinkgoHelper()
	Expect(on.Create(ctx, &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: setOfAll}, Spec: clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: setOfAll},
	})).To(Succeed())
}

// makeCluster creates a ManagedCluster if it does not exist.
func makeCluster(ctx context.Context, on client.Client, name string, labels map[string]string) {
	GinkgoHelper()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	Expect(client.IgnoreAlreadyExists(on.Create(ctx, cluster))).To(Succeed())
}

// decideUnknown sets a decision with names, some of which are no clusters.
func (b *bed) decideUnknown(ctx context.Context, name string, clusters ...string) {
	GinkgoHelper()
	decision := &ocmclusterv1beta1.PlacementDecision{}
	Expect(hubClient.Get(ctx, client.ObjectKey{Namespace: b.namespace, Name: name}, decision)).To(Succeed())
	decision.Status.Decisions = nil
	for _, cluster := range clusters {
		decision.Status.Decisions = append(decision.Status.Decisions, ocmclusterv1beta1.ClusterDecision{ClusterName: cluster})
	}
	Expect(hubClient.Status().Update(ctx, decision)).To(Succeed())
}

var _ = Describe("A PlacementDecision that a user wrote", func() {
	It("delivers nothing to clusters of unbound sets, which the status names", func(ctx SpecContext) {
		b := newBed(ctx, 2)
		private := b.clusters[1]
		makeCluster(ctx, hubClient, private, map[string]string{apart: "yes"})
		b.place(ctx, "p", b.clusters)
		set := b.set(ctx, "web", everywhere("p"))
		Eventually(message(ctx, set, workv1alpha1.ConditionPlacementVerified)).Should(And(
			ContainSubstring("are in no ManagedClusterSet bound to this namespace"), ContainSubstring(private)))
		Eventually(colours(ctx, set)).Should(Equal(have("blue", b.clusters[0])))
		Expect(said(ctx, set)(Default)).To(ContainElements("PlacementVerified False NotAsExpected", progressing))

		By("binding a set with that cluster")
		cluster := &clusterv1.ManagedCluster{}
		Expect(hubClient.Get(ctx, client.ObjectKey{Name: private}, cluster)).To(Succeed())
		cluster.Labels = nil
		Expect(hubClient.Update(ctx, cluster)).To(Succeed())
		Eventually(colours(ctx, set)).Should(Equal(have("blue", b.clusters...)))
		Eventually(said(ctx, set)).Should(ContainElement(verified))

		By("removing the cluster from the set: it gets nothing new and keeps its objects")
		Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(cluster), cluster)).To(Succeed())
		cluster.Labels = map[string]string{apart: "yes"}
		Expect(hubClient.Update(ctx, cluster)).To(Succeed())
		Eventually(message(ctx, set, workv1alpha1.ConditionPlacementVerified)).Should(ContainSubstring(private))
		update(ctx, set, func(set *workv1alpha1.ManifestWorkReplicaSet) { set.Spec.ManifestWorkTemplate = template("red") })
		both := append(have("red", b.clusters[0]), have("blue", private)...)
		Eventually(colours(ctx, set)).Should(Equal(both))
		Consistently(colours(ctx, set), "2s").Should(Equal(both))
	})

	It("delivers nothing to a namespace of the hub without a cluster", func(ctx SpecContext) {
		b := newBed(ctx, 1)
		b.place(ctx, "p", b.clusters)
		victim := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.namespace + "-victim"}}
		Expect(hubClient.Create(ctx, victim)).To(Succeed())
		b.decideUnknown(ctx, "p-decision-1", b.clusters[0], victim.Name)
		set := b.set(ctx, "web", everywhere("p"))
		Eventually(message(ctx, set, workv1alpha1.ConditionPlacementVerified)).Should(ContainSubstring(victim.Name))
		Eventually(colours(ctx, set)).Should(Equal(have("blue", b.clusters[0])))
	})

	It("delivers nothing through a binding whose name differs from its set's", func(ctx SpecContext) {
		b := newBed(ctx, 1)
		private := b.clusters[0]
		makeCluster(ctx, hubClient, private, map[string]string{apart: "yes", clusterv1.ClusterSetLabel: "private"})
		Expect(client.IgnoreAlreadyExists(hubClient.Create(ctx, &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "private"}}))).To(Succeed())
		Expect(hubClient.Create(ctx, &clusterv1beta2.ManagedClusterSetBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "mine"}, Spec: clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: "private"},
		})).To(Succeed())
		b.place(ctx, "p", b.clusters)
		set := b.set(ctx, "web", everywhere("p"))
		Eventually(message(ctx, set, workv1alpha1.ConditionPlacementVerified)).Should(ContainSubstring(private))
		Expect(worksOf(ctx, set)).To(BeEmpty())
	})
})

var _ = Describe("A ManifestWork of a set whose annotation says that it is unchanged", func() {
	It("is written again when a user changes it", func(ctx SpecContext) {
		b := newBed(ctx, 1)
		b.place(ctx, "p", b.clusters)
		set := b.set(ctx, "web", everywhere("p"))
		Eventually(colours(ctx, set)).Should(Equal(have("blue", b.clusters...)))
		work := workIn(ctx, set, b.clusters[0])
		unchanged, err := hash.JSON(&work.Spec)
		Expect(err).NotTo(HaveOccurred())
		work.Spec.Workload = template("red").Workload
		work.Annotations = map[string]string{"fleetgate.io/spec-hash": unchanged}
		Expect(hubClient.Update(ctx, work)).To(Succeed())
		Eventually(colours(ctx, set)).Should(Equal(have("blue", b.clusters...)))

		By("writing the annotation of the gateway's cache")
		work = workIn(ctx, set, b.clusters[0])
		work.Annotations = map[string]string{"//spec-hash": unchanged}
		Expect(apierrors.IsInvalid(hubClient.Update(ctx, work))).To(BeTrue())
	})
})
