// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/apis/crds"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

// foreignConfigMap creates a ConfigMap as another client.
func foreignConfigMap(ctx context.Context, namespace string, data map[string]string) *corev1.ConfigMap {
	GinkgoHelper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}, Data: data}
	Expect(memberClient.Create(ctx, object, client.FieldOwner("somebody"))).To(Succeed())
	return object
}

func owners(ctx context.Context, namespace, name string) func() []string {
	return func() []string {
		names := []string{}
		for _, ref := range expect.ConfigMap(ctx, memberClient, namespace, name).OwnerReferences {
			names = append(names, ref.Name)
		}
		return names
	}
}

func recordName(work string) string { return hubHash + "-" + work }

var _ = Describe("The strategy of a manifest", func() {
	It("CreateOnly creates the object, owns it and never changes it", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "create-only", strategy(ns, workv1.UpdateStrategy{Type: "CreateOnly"}), build.ConfigMapText(ns, "a", "x", "1"), build.ConfigMapText(ns, "b", "x", "1"))
		Eventually(conditions(ctx, "create-only")).Should(beDone())
		Expect(memberClient.Patch(ctx, expect.ConfigMap(ctx, memberClient, ns, "a"), expect.MergePatch(`{"data":{"x":"theirs"}}`))).To(Succeed())
		updateWork(ctx, "create-only", func(work *workv1.ManifestWork) {
			work.Spec.Workload.Manifests = manifests(build.ConfigMapText(ns, "a", "x", "2"), build.ConfigMapText(ns, "b", "x", "2"))
		})
		Eventually(conditions(ctx, "create-only")).Should(beDone())
		Expect(expect.Data(ctx, memberClient, ns, "a")()).To(Equal(map[string]string{"x": "theirs"}))
		Expect(expect.Data(ctx, memberClient, ns, "b")()).To(Equal(map[string]string{"x": "1"}))
		Expect(memberClient.Delete(ctx, expect.ConfigMap(ctx, memberClient, ns, "b"))).To(Succeed())
		Eventually(expect.Data(ctx, memberClient, ns, "b")).Should(Equal(map[string]string{"x": "2"}), "it is re-created")
		Expect(owners(ctx, ns, "a")()).To(HaveExactElements(recordName("create-only")))
	})

	It("ReadOnly writes nothing and reports whether the object exists", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		foreignConfigMap(ctx, ns, map[string]string{"x": "theirs"})
		spec := strategy(ns, workv1.UpdateStrategy{Type: "ReadOnly"})
		spec.ManifestConfigs[0].FeedbackRules = []workv1.FeedbackRule{{Type: workv1.FeedbackJSONPaths, JSONPaths: []workv1.JSONPath{{Name: "x", Path: ".data.x"}}}}
		createWork(ctx, "read-only", spec, build.ConfigMapText(ns, "a", "x", "1"), build.ConfigMapText(ns, "absent", "x", "1"))
		Eventually(conditions(ctx, "read-only")).Should(HaveExactElements(workApplied, "Available False ResourcesNotAvailable 1 of 2 resources are not available"))
		Expect(of(ctx, "read-only", 0)(Default)).To(HaveExactElements(applied, available, synced))
		Expect(of(ctx, "read-only", 1)(Default)).To(HaveExactElements(applied, unavailable))
		Expect(values(ctx, "read-only", 0)(Default)).To(HaveExactElements(`x={"type":"String","string":"theirs"}`))
		Expect(expect.Data(ctx, memberClient, ns, "a")()).To(Equal(map[string]string{"x": "theirs"}))
		Expect(owners(ctx, ns, "a")()).To(BeEmpty())
		Expect(ledger(ctx, "read-only")()).To(BeEmpty())

		By("detecting its creation")
		Expect(memberClient.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "absent"}})).To(Succeed())
		Eventually(conditions(ctx, "read-only")).Should(beDone())

		By("keeping it when the work is deleted")
		removeWork(ctx, "read-only")
		Expect(expect.Data(ctx, memberClient, ns, "a")()).NotTo(BeNil())
	})

	It("ServerSideApply reports the manager that owns a field and takes the field with force", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		foreignConfigMap(ctx, ns, map[string]string{"x": "theirs"})
		createWork(ctx, "ssa", strategy(ns, workv1.UpdateStrategy{Type: "ServerSideApply"}), build.ConfigMapText(ns, "a", "x", "ours", "y", "1"))
		Eventually(conditions(ctx, "ssa")).Should(HaveExactElements(workFailed, workAvailable))
		Expect(of(ctx, "ssa", 0)(Default)).To(HaveExactElements(
			And(HavePrefix("Applied False AppliedManifestFailed Failed to apply manifest: "), ContainSubstring("somebody"), ContainSubstring(".data.x")), available, noFeedback))

		updateWork(ctx, "ssa", func(work *workv1.ManifestWork) {
			work.Spec.ManifestConfigs[0].UpdateStrategy.ServerSideApply = &workv1.ServerSideApplyConfig{Force: true, FieldManager: "work-agent-x"}
		})
		Eventually(conditions(ctx, "ssa")).Should(beDone())
		Expect(expect.Data(ctx, memberClient, ns, "a")()).To(Equal(map[string]string{"x": "ours", "y": "1"}))
		Expect(expect.ConfigMap(ctx, memberClient, ns, "a").ManagedFields).To(ContainElement(HaveField("Manager", "work-agent-x")))
		updateWork(ctx, "ssa", func(work *workv1.ManifestWork) {
			work.Spec.Workload.Manifests = manifests(build.ConfigMapText(ns, "a", "x", "ours"))
		})
		Eventually(expect.Data(ctx, memberClient, ns, "a")).Should(Equal(map[string]string{"x": "ours"}), "keys that left the manifest are removed")
	})

	It("ServerSideApply succeeds when a field of another manager leaves the manifest", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "ssa-yields", strategy(ns, workv1.UpdateStrategy{Type: "ServerSideApply"}), build.ConfigMapText(ns, "a", "x", "1", "y", "1"))
		Eventually(conditions(ctx, "ssa-yields")).Should(beDone())
		kubectl(ctx, kubeconfigOfMember(), build.ConfigMapText(ns, "a", "x", "theirs"), "apply", "--server-side", "--force-conflicts", "--field-manager=somebody", "-f", "-")
		updateWork(ctx, "ssa-yields", func(work *workv1.ManifestWork) {
			work.Spec.Workload.Manifests = manifests(build.ConfigMapText(ns, "a", "x", "2", "y", "1"))
		})
		Eventually(conditions(ctx, "ssa-yields")).Should(HaveExactElements(workFailed, workAvailable))
		updateWork(ctx, "ssa-yields", func(work *workv1.ManifestWork) {
			work.Spec.Workload.Manifests = manifests(build.ConfigMapText(ns, "a", "y", "2"))
		})
		Eventually(conditions(ctx, "ssa-yields")).Should(beDone())
		Expect(expect.Data(ctx, memberClient, ns, "a")()).To(Equal(map[string]string{"x": "theirs", "y": "2"}))
	})

	It("ServerSideApply changes nothing in an unchanged object with unset times in the manifest", func(ctx SpecContext) {
		ours, err := crds.ForHub(workv1.GroupName)
		Expect(err).NotTo(HaveOccurred())
		for _, crd := range ours {
			Expect(client.IgnoreAlreadyExists(memberClient.Create(ctx, crd))).To(Succeed())
		}
		ns := expect.FreshNamespace(ctx, memberClient)
		nested := `{apiVersion: work.open-cluster-management.io/v1, kind: ManifestWork, metadata: {creationTimestamp: null, namespace: ` + ns + `, name: nested}, status: {resourceStatus: {}},
			spec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {creationTimestamp: null, namespace: ` + ns + `, name: a}, data: {x: "1"}}]}}}`
		spec := configured(workv1.GroupName, "manifestworks", ns, "nested", func(o *workv1.ManifestConfigOption) {
			o.UpdateStrategy = &workv1.UpdateStrategy{Type: "ServerSideApply", ServerSideApply: &workv1.ServerSideApplyConfig{Force: true}}
		})
		createWork(ctx, "nesting", spec, nested)
		Eventually(conditions(ctx, "nesting")).Should(beDone())
		for range 2 {
			agent.Stop()
			agent = startAgent(agentOptions{}) // has an empty cache
			updateWork(ctx, "nesting", func(work *workv1.ManifestWork) {
				work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, manifests(build.ConfigMapText(ns, fmt.Sprint("b", work.Generation)))...)
			})
			Eventually(conditions(ctx, "nesting")).Should(beDone())
		}
		found, err := expect.Found(ctx, memberClient, "work.open-cluster-management.io/v1", "ManifestWork", ns, "nested")
		Expect(err).NotTo(HaveOccurred())
		Expect(found.GetGeneration()).To(BeEquivalentTo(1))
	})

	It("ServerSideApply lets two works with different fields share an object with both owners", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		ssa := func(manager string) workv1.ManifestWorkSpec {
			return strategy(ns, workv1.UpdateStrategy{Type: "ServerSideApply", ServerSideApply: &workv1.ServerSideApplyConfig{FieldManager: manager}})
		}
		createWork(ctx, "ssa-one", ssa("work-agent-one"), build.ConfigMapText(ns, "a", "one", "1"))
		Eventually(conditions(ctx, "ssa-one")).Should(beDone())
		createWork(ctx, "ssa-two", ssa("work-agent-two"), build.ConfigMapText(ns, "a", "two", "2"))
		createWork(ctx, "ssa-three", ssa("work-agent-two"), build.ConfigMapText(ns, "a", "two", "2"))
		Eventually(conditions(ctx, "ssa-two")).Should(beDone())
		Eventually(conditions(ctx, "ssa-three")).Should(beDone())
		Eventually(expect.Data(ctx, memberClient, ns, "a")).Should(Equal(map[string]string{"one": "1", "two": "2"}))
		Eventually(owners(ctx, ns, "a")).Should(ConsistOf(recordName("ssa-one"), recordName("ssa-two"), recordName("ssa-three")))
		Eventually(func(g Gomega) { // each has to see the other's fields first
			settled := expect.ConfigMap(ctx, memberClient, ns, "a").ResourceVersion
			g.Consistently(func() string { return expect.ConfigMap(ctx, memberClient, ns, "a").ResourceVersion }).WithTimeout(3 * time.Second).Should(Equal(settled))
		}).Should(Succeed(), "the object is not contested")
		updateWork(ctx, "ssa-three", func(work *workv1.ManifestWork) {
			work.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: "Orphan"}
		})
		Eventually(owners(ctx, ns, "a")).Should(ConsistOf(recordName("ssa-one"), recordName("ssa-two")))
		removeWork(ctx, "ssa-one")
		Expect(owners(ctx, ns, "a")()).To(ConsistOf(recordName("ssa-two")))
	})

	It("is that of the first matching config, with asterisks as wildcards", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		foreignConfigMap(ctx, ns, map[string]string{"x": "theirs"})
		spec := strategy("*", workv1.UpdateStrategy{Type: "ReadOnly"})
		spec.ManifestConfigs[0].ResourceIdentifier.Name = "a*"
		spec.ManifestConfigs = append(spec.ManifestConfigs, strategy(ns, workv1.UpdateStrategy{Type: "Update"}).ManifestConfigs...)
		createWork(ctx, "wildcard", spec, build.ConfigMapText(ns, "a", "x", "1"), build.ConfigMapText(ns, "b", "x", "1"))
		Eventually(conditions(ctx, "wildcard")).Should(beDone())
		Expect(expect.Data(ctx, memberClient, ns, "a")()).To(Equal(map[string]string{"x": "theirs"}))
		Expect(expect.Data(ctx, memberClient, ns, "b")()).To(Equal(map[string]string{"x": "1"}))
	})

	It("is that of the first config that sets it, like the rules", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		foreignConfigMap(ctx, ns, map[string]string{"x": "theirs"})
		spec := strategy(ns, workv1.UpdateStrategy{Type: "ReadOnly"})
		paths := func(path string) []workv1.FeedbackRule {
			return []workv1.FeedbackRule{{Type: workv1.FeedbackJSONPaths, JSONPaths: []workv1.JSONPath{{Name: "value", Path: path}}}}
		}
		spec.ManifestConfigs[0].FeedbackRules = paths(".data.none")
		first := strategy("*", workv1.UpdateStrategy{}).ManifestConfigs[0]
		first.UpdateStrategy, first.FeedbackRules = nil, paths(".data.x")
		last := strategy(ns, workv1.UpdateStrategy{Type: "Update"}).ManifestConfigs[0]
		last.ConditionRules = []workv1.ConditionRule{{Condition: "Theirs", Type: "CEL", CELExpressions: []string{"object.data.x == 'theirs'"}}}
		spec.ManifestConfigs = []workv1.ManifestConfigOption{first, spec.ManifestConfigs[0], last}
		createWork(ctx, "config-of-each", spec, build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(of(ctx, "config-of-each", 0)).Should(HaveExactElements(applied, available, synced, "Theirs True ConditionRuleEvaluated Manifest is Theirs"))
		Expect(values(ctx, "config-of-each", 0)(Default)).To(HaveExactElements(`value={"type":"String","string":"theirs"}`))
	})
})
