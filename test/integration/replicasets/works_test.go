// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package replicasets_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
)

type counts = workv1alpha1.ManifestWorkReplicaSetSummary

var _ = Describe("A ManifestWorkReplicaSet", func() {
	It("creates a ManifestWork for each cluster and reports their status", func(ctx SpecContext) {
		b := newBed(ctx, 3)
		b.place(ctx, "p", b.clusters)
		set := b.set(ctx, "web", everywhere("p"))
		Eventually(colours(ctx, set)).Should(Equal(have("blue", b.clusters...)))
		work := workIn(ctx, set, b.clusters[0])
		Expect(work.Labels).To(Equal(map[string]string{
			"team": "a", "work.open-cluster-management.io/manifestworkreplicaset": b.namespace + ".web", "work.open-cluster-management.io/placementname": "p",
		}))
		Eventually(said(ctx, set)).Should(HaveExactElements(verified, progressing, notApplied))
		Eventually(summary(ctx, set)).Should(Equal(counts{Total: 3}))

		done(ctx, set, b.clusters...)
		Eventually(said(ctx, set)).Should(HaveExactElements(verified, rolledOut, applied))
		Eventually(summary(ctx, set)).Should(Equal(counts{Total: 3, Applied: 3, Available: 3}))
		Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
		Expect(set.Status.PlacementsSummary).To(HaveExactElements(workv1alpha1.PlacementSummary{
			Name: "p", AvailableDecisionGroups: "1 (3 / 3 clusters applied)", Summary: counts{Total: 3},
		}))

		By("a failure in one of them")
		report(ctx, set, b.clusters[1], map[string]metav1.ConditionStatus{
			workv1.ConditionAvailable: no, workv1.ConditionProgressing: yes, workv1.ConditionDegraded: yes,
		})
		Eventually(summary(ctx, set)).Should(Equal(counts{Total: 3, Applied: 3, Available: 2, Progressing: 1, Degraded: 1}))
		Eventually(said(ctx, set)).Should(HaveExactElements(verified, progressing, notApplied))

		By("its retry")
		report(ctx, set, b.clusters[1], map[string]metav1.ConditionStatus{workv1.ConditionDegraded: no})
		Eventually(said(ctx, set)).Should(HaveExactElements(verified, progressing, "ManifestworkApplied False Processing"))
	})

	It("follows its Placements, its template and its labels", func(ctx SpecContext) {
		b := newBed(ctx, 4)
		b.place(ctx, "p", b.clusters[:2])
		b.place(ctx, "q", b.clusters[2:])
		set := b.set(ctx, "web", everywhere("p"))
		Eventually(colours(ctx, set)).Should(Equal(have("blue", b.clusters[:2]...)))

		By("replacing a cluster in the decision")
		b.decide(ctx, "p-decision-1", b.clusters[1], b.clusters[2])
		Eventually(colours(ctx, set)).Should(Equal(have("blue", b.clusters[1:3]...)))
		Eventually(summary(ctx, set)).Should(Equal(counts{Total: 2}))

		By("another template")
		before := workIn(ctx, set, b.clusters[1])
		update(ctx, set, func(set *workv1alpha1.ManifestWorkReplicaSet) { set.Spec.ManifestWorkTemplate = template("red") })
		Eventually(colours(ctx, set)).Should(Equal(have("red", b.clusters[1:3]...)))
		Expect(workIn(ctx, set, b.clusters[1]).UID).To(Equal(before.UID), "it was updated, not re-created")

		By("changing labels, which starts no rollout")
		generation := workIn(ctx, set, b.clusters[1]).Generation
		update(ctx, set, func(set *workv1alpha1.ManifestWorkReplicaSet) { set.Labels["team"] = "b" })
		Eventually(func() string { return workIn(ctx, set, b.clusters[1]).Labels["team"] }).Should(Equal("b"))
		Expect(workIn(ctx, set, b.clusters[1]).Generation).To(Equal(generation))

		By("adding a Placement that shares a cluster with the first")
		update(ctx, set, func(set *workv1alpha1.ManifestWorkReplicaSet) {
			set.Spec.PlacementRefs = append(set.Spec.PlacementRefs, everywhere("q"))
		})
		Eventually(colours(ctx, set)).Should(Equal(have("red", b.clusters[1], b.clusters[2], b.clusters[2], b.clusters[3])))

		By("removing the first Placement")
		update(ctx, set, func(set *workv1alpha1.ManifestWorkReplicaSet) { set.Spec.PlacementRefs = set.Spec.PlacementRefs[1:] })
		Eventually(colours(ctx, set)).Should(Equal(have("red", b.clusters[2], b.clusters[2], b.clusters[3])))
		applyIn(ctx, set, b.clusters[2])
		Eventually(colours(ctx, set)).Should(Equal(have("red", b.clusters[2:]...)))

		By("deciding for fewer clusters")
		b.decide(ctx, "q-decision-1", b.clusters[3])
		b.sum(ctx, "q")
		Eventually(colours(ctx, set)).Should(Equal(have("red", b.clusters[3])))
	})

	It("restores changed and deleted ManifestWorks", func(ctx SpecContext) {
		b := newBed(ctx, 2)
		b.place(ctx, "p", b.clusters)
		set := b.set(ctx, "web", everywhere("p"))
		Eventually(colours(ctx, set)).Should(Equal(have("blue", b.clusters...)))
		work := workIn(ctx, set, b.clusters[0])
		work.Spec = template("pink")
		Expect(hubClient.Update(ctx, work)).To(Succeed())
		Expect(hubClient.Delete(ctx, workIn(ctx, set, b.clusters[1]))).To(Succeed())
		Eventually(colours(ctx, set)).Should(Equal(have("blue", b.clusters...)))
	})

	It("reports a missing Placement and removes nothing", func(ctx SpecContext) {
		b := newBed(ctx, 2)
		set := b.set(ctx, "web", everywhere("p"))
		Eventually(said(ctx, set)).Should(HaveExactElements("PlacementVerified False PlacementDecisionNotFound", progressing, notApplied))
		b.place(ctx, "p")
		Eventually(said(ctx, set)).Should(HaveExactElements("PlacementVerified False PlacementDecisionEmpty", rolledOut,
			"ManifestworkApplied False PlacementDecisionEmpty"))
		b.place(ctx, "q", b.clusters)
		update(ctx, set, func(set *workv1alpha1.ManifestWorkReplicaSet) { set.Spec.PlacementRefs[0].Name = "q" })
		Eventually(said(ctx, set)).Should(HaveExactElements(verified, progressing, notApplied))

		Expect(hubClient.Delete(ctx, &ocmclusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "q"}})).To(Succeed())
		Eventually(said(ctx, set)).Should(ContainElement("PlacementVerified False PlacementDecisionNotFound"))
		Expect(colours(ctx, set)()).To(Equal(have("blue", b.clusters...)))
	})

	It("reports ManifestWorks that cannot be written and writes the others", func(ctx SpecContext) {
		b := newBed(ctx, 1)
		missing := b.namespace + "-not-there"
		b.place(ctx, "p", []string{b.clusters[0], missing})
		set := b.set(ctx, "web", everywhere("p"))
		Eventually(said(ctx, set)).Should(ContainElement("PlacementVerified False NotAsExpected"))
		Expect(message(ctx, set, workv1alpha1.ConditionPlacementVerified)(Default)).To(ContainSubstring(missing))
		Eventually(colours(ctx, set)).Should(Equal(have("blue", b.clusters...)))
		createNamespace(ctx, missing)
		Eventually(colours(ctx, set)).Should(Equal(have("blue", b.clusters[0], missing)))
		Eventually(said(ctx, set)).Should(ContainElement(verified))
	})

	It("does not change ManifestWorks of others", func(ctx SpecContext) {
		b := newBed(ctx, 1)
		b.place(ctx, "p", b.clusters)
		other := newBed(ctx, 0)
		other.place(ctx, "p", b.clusters)
		set, second := b.set(ctx, "web", everywhere("p")), other.set(ctx, "web", everywhere("p"))
		Eventually(colours(ctx, set)).Should(Equal(have("blue", b.clusters...)))
		Eventually(colours(ctx, second)).Should(Equal(have("blue", b.clusters...)))

		By("a name conflict with its ManifestWork")
		work := workIn(ctx, set, b.clusters[0])
		delete(work.Labels, workv1alpha1.ReplicaSetLabel)
		Expect(hubClient.Update(ctx, work)).To(Succeed())
		Eventually(message(ctx, set, workv1alpha1.ConditionPlacementVerified)).Should(ContainSubstring("is not of this ManifestWorkReplicaSet"))
		Expect(hubClient.Delete(ctx, work)).To(Succeed())
		Eventually(said(ctx, set)).Should(ContainElement(verified))
	})

	It("adopts earlier ManifestWorks whatever their names are", func(ctx SpecContext) {
		b := newBed(ctx, 1)
		gateway.stop()
		DeferCleanup(func() { gateway.stop(); gateway = start() })
		labels := map[string]string{workv1alpha1.ReplicaSetLabel: b.namespace + ".web", workv1alpha1.PlacementNameLabel: "p"}
		work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: b.clusters[0], GenerateName: "web", Labels: labels}, Spec: template("green")}
		Expect(hubClient.Create(ctx, work)).To(Succeed())
		b.place(ctx, "p", b.clusters)
		set := b.set(ctx, "web", everywhere("p"))
		gateway = start()
		Eventually(colours(ctx, set)).Should(Equal(have("blue", b.clusters...)))
		Expect(workIn(ctx, set, b.clusters[0]).UID).To(Equal(work.UID))
	})

	It("rejects a name that is not a label value", func(ctx SpecContext) {
		b := newBed(ctx, 1)
		b.place(ctx, "p", b.clusters)
		set := b.set(ctx, "a-name-that-is-longer-than-a-label-can-be-with-its-namespace-before", everywhere("p"))
		Eventually(said(ctx, set)).Should(HaveExactElements("ManifestworkApplied False InvalidManifestWorkName"))
	})

	It("deletes its ManifestWorks and waits for them with Foreground", func(ctx SpecContext) {
		b := newBed(ctx, 2)
		b.place(ctx, "p", b.clusters)
		hold := func(set *workv1alpha1.ManifestWorkReplicaSet) *workv1.ManifestWork {
			Eventually(colours(ctx, set)).Should(Equal(have("blue", b.clusters...)))
			work := workIn(ctx, set, b.clusters[0])
			work.Finalizers = []string{workv1.ManifestWorkFinalizer}
			Expect(hubClient.Update(ctx, work)).To(Succeed())
			return work
		}
		release := func(work *workv1.ManifestWork) {
			Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(work), work)).To(Succeed())
			work.Finalizers = nil
			Expect(hubClient.Update(ctx, work)).To(Succeed())
		}
		background := b.set(ctx, "background", everywhere("p"))
		work := hold(background)
		Expect(hubClient.Delete(ctx, background)).To(Succeed())
		Eventually(gone(ctx, background)).Should(BeTrue())
		Expect(colours(ctx, background)()).To(Equal(have("blue", b.clusters[0])), "its agent is still removing it")
		release(work)
		Eventually(colours(ctx, background)).Should(BeEmpty())

		foreground := b.set(ctx, "foreground", everywhere("p"))
		update(ctx, foreground, func(set *workv1alpha1.ManifestWorkReplicaSet) {
			set.Spec.CascadeDeletionPolicy = workv1alpha1.CascadeForeground
		})
		work = hold(foreground)
		Expect(hubClient.Delete(ctx, foreground)).To(Succeed())
		Eventually(colours(ctx, foreground)).Should(Equal(have("blue", b.clusters[0])))
		Consistently(gone(ctx, foreground)).Should(BeFalse())
		release(work)
		Eventually(gone(ctx, foreground)).Should(BeTrue())
	})

	It("has the defaults of both schemas and writes nothing twice", func(ctx SpecContext) {
		b := newBed(ctx, 1)
		b.place(ctx, "p", b.clusters)
		spec := template("blue")
		spec.DeleteOption = &workv1.DeleteOption{}
		spec.ManifestConfigs = []workv1.ManifestConfigOption{{
			ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Namespace: "default", Name: "settings"},
			UpdateStrategy:     &workv1.UpdateStrategy{Type: workv1.UpdateStrategyServerSideApply, ServerSideApply: &workv1.ServerSideApplyConfig{}},
		}}
		spec.Workload.Manifests = append(spec.Workload.Manifests, workv1.Manifest{RawExtension: runtime.RawExtension{
			Raw: []byte(`{"kind":"Widget","apiVersion":"x.io/v1","metadata":{"name":"w","creationTimestamp":null},"spec":{"z":1.50,"a":[1,null,{}]}}`),
		}})
		set := &workv1alpha1.ManifestWorkReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "web"}, Spec: workv1alpha1.ManifestWorkReplicaSetSpec{
			ManifestWorkTemplate: spec, PlacementRefs: []workv1alpha1.LocalPlacementReference{everywhere("p")},
		}}
		Expect(hubClient.Create(ctx, set)).To(Succeed())
		Eventually(func() int { return len(worksOf(ctx, set)) }).Should(Equal(1))
		done(ctx, set, b.clusters...)
		Eventually(said(ctx, set)).Should(HaveExactElements(verified, rolledOut, applied))
		version := workIn(ctx, set, b.clusters[0]).ResourceVersion
		Consistently(func() string { return workIn(ctx, set, b.clusters[0]).ResourceVersion }).Should(Equal(version))
	})

	It("completes although a cluster's namespace is terminating", func(ctx SpecContext) {
		b := newBed(ctx, 2)
		b.place(ctx, "p", b.clusters)
		set := b.set(ctx, "web", everywhere("p"))
		Eventually(colours(ctx, set)).Should(Equal(have("blue", b.clusters...)))
		Expect(hubClient.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.clusters[1]}})).To(Succeed())
		b.decide(ctx, "p-decision-1", b.clusters[0])
		b.sum(ctx, "p")
		Eventually(colours(ctx, set)).Should(Equal(have("blue", b.clusters[0])))
		Eventually(said(ctx, set)).Should(ContainElement(verified))
	})
})
