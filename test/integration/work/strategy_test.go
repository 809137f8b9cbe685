// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

var _ = Describe("whenToTakeOver IfNoDiff", func() {
	strategy := func(option placementv1beta1.ComparisonOption) *placementv1beta1.ApplyStrategy {
		return &placementv1beta1.ApplyStrategy{WhenToTakeOver: placementv1beta1.TakeOverIfNoDiff, ComparisonOption: option}
	}

	It("reports how an object differs and takes it over once it is equal", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		before := foreignConfigMap(ctx, ns, "x", "theirs", "y", "theirs")
		createWork(ctx, "if-no-diff", strategy(""), build.ConfigMapText(ns, "a", "x", "ours"))
		Eventually(reportedOf(ctx, "if-no-diff")).Should(HaveExactElements(refused("FailedToTakeOver")))
		diff := manifestOf(ctx, "if-no-diff", 0).DiffDetails
		Expect(diff.ObservedDiffs).To(ConsistOf(
			placementv1beta1.PatchDetail{Path: "/data/x", ValueInHub: "ours", ValueInMember: "theirs"},
			placementv1beta1.PatchDetail{Path: "/metadata/labels/app", ValueInHub: "spec"}))
		Expect(*diff.ObservedInMemberClusterGeneration).To(Equal(before.Generation))
		Expect(expect.ConfigMap(ctx, memberClient, ns, "a").ResourceVersion).To(Equal(before.ResourceVersion), "nothing was written")
		Expect(ledger(ctx, "if-no-diff")()).To(BeEmpty())

		Expect(memberClient.Patch(ctx, before, expect.MergePatch(`{"metadata":{"labels":{"app":"spec"}},"data":{"x":"ours"}}`))).To(Succeed())
		Eventually(reported(ctx, "if-no-diff")).Should(beDone())
		Expect(manifestOf(ctx, "if-no-diff", 0).DiffDetails).To(BeNil())
		Expect(expect.ConfigMap(ctx, memberClient, ns, "a").OwnerReferences).To(HaveLen(1))
		Expect(expect.Data(ctx, memberClient, ns, "a")()).To(HaveKeyWithValue("y", "theirs"))
	})

	It("compares all fields with FullComparison", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		foreignConfigMap(ctx, ns, "x", "ours", "y", "theirs")
		createWork(ctx, "if-no-full-diff", strategy(placementv1beta1.FullComparison), build.ConfigMapText(ns, "a", "x", "ours"))
		Eventually(reportedOf(ctx, "if-no-full-diff")).Should(HaveExactElements(refused("FailedToTakeOver")))
		Expect(manifestOf(ctx, "if-no-full-diff", 0).DiffDetails.ObservedDiffs).To(ContainElement(
			placementv1beta1.PatchDetail{Path: "/data/y", ValueInMember: "theirs"}))
	})
})

var _ = Describe("whenToApply IfNotDrifted", func() {
	ifNotDrifted := func(kind placementv1beta1.ApplyStrategyType) *placementv1beta1.ApplyStrategy {
		return &placementv1beta1.ApplyStrategy{Type: kind, WhenToApply: placementv1beta1.ApplyIfNotDrifted}
	}

	for _, kind := range []placementv1beta1.ApplyStrategyType{placementv1beta1.ClientSideApply, placementv1beta1.ServerSideApply} {
		It("reports drift instead of reverting it, with "+string(kind), func(ctx SpecContext) {
			ns := expect.FreshNamespace(ctx, memberClient)
			name := "drifted-" + ns
			createWork(ctx, name, ifNotDrifted(kind), build.ConfigMapText(ns, "a", "x", "1"))
			Eventually(reported(ctx, name)).Should(beDone())

			By("ignoring fields that the manifest lacks")
			Expect(memberClient.Patch(ctx, expect.ConfigMap(ctx, memberClient, ns, "a"), expect.MergePatch(`{"data":{"theirs":"z"}}`))).To(Succeed())
			Consistently(reported(ctx, name)).Should(beDone())

			Expect(memberClient.Patch(ctx, expect.ConfigMap(ctx, memberClient, ns, "a"), expect.MergePatch(`{"data":{"x":"2"}}`))).To(Succeed())
			Eventually(reportedOf(ctx, name)).Should(HaveExactElements(refused("FoundDrifts")))
			drift := manifestOf(ctx, name, 0).DriftDetails
			Expect(drift.ObservedDrifts).To(HaveExactElements(
				placementv1beta1.PatchDetail{Path: "/data/x", ValueInHub: "1", ValueInMember: "2"}))
			Expect(drift.ObservedInMemberClusterGeneration).To(Equal(expect.ConfigMap(ctx, memberClient, ns, "a").Generation))
			Expect(expect.Data(ctx, memberClient, ns, "a")()).To(HaveKeyWithValue("x", "2"))
			Expect(ledger(ctx, name)()).To(HaveExactElements("a"), "the ledger keeps it")

			By("keeping the time of the first drift")
			Expect(memberClient.Patch(ctx, expect.ConfigMap(ctx, memberClient, ns, "a"), expect.MergePatch(`{"data":{"x":"3"}}`))).To(Succeed())
			Eventually(func() string {
				return manifestOf(ctx, name, 0).DriftDetails.ObservedDrifts[0].ValueInMember
			}).Should(Equal("3"))
			Expect(manifestOf(ctx, name, 0).DriftDetails.FirstDriftedObservedTime).To(Equal(drift.FirstDriftedObservedTime))

			By("reporting no drift after the change is reverted by hand")
			Expect(memberClient.Patch(ctx, expect.ConfigMap(ctx, memberClient, ns, "a"), expect.MergePatch(`{"data":{"x":"1"}}`))).To(Succeed())
			Eventually(reported(ctx, name)).Should(beDone())
			Expect(manifestOf(ctx, name, 0).DriftDetails).To(BeNil())
		})
	}

	It("overwrites drift when the manifest changes", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "drift-over", ifNotDrifted(""), build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(reported(ctx, "drift-over")).Should(beDone())
		Expect(memberClient.Patch(ctx, expect.ConfigMap(ctx, memberClient, ns, "a"), expect.MergePatch(`{"data":{"x":"2"}}`))).To(Succeed())
		Eventually(reportedOf(ctx, "drift-over")).Should(HaveExactElements(refused("FoundDrifts")))
		changeWork(ctx, "drift-over", build.ConfigMapText(ns, "a", "x", "4"))
		Eventually(reported(ctx, "drift-over")).Should(beDone())
		Expect(expect.Data(ctx, memberClient, ns, "a")()).To(Equal(map[string]string{"x": "4"}))
	})

	It("compares all fields when the member no longer accepts the manifest", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "degraded", ifNotDrifted(""), build.DeploymentText(ns, "web", "one"))
		Eventually(reported(ctx, "degraded")).Should(beDone())
		web, err := expect.Found(ctx, memberClient, "apps/v1", "Deployment", ns, "web")
		Expect(err).NotTo(HaveOccurred())
		other, owners := web.DeepCopy(), web.GetOwnerReferences()
		hash := web.GetAnnotations()[placementv1beta1.ManifestHashAnnotation]
		agent.Stop()
		Expect(memberClient.Delete(ctx, web, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
		Eventually(expect.Gone(ctx, memberClient, web)).Should(BeTrue())
		other.Object["metadata"] = map[string]any{"namespace": ns, "name": "web", "annotations": map[string]any{placementv1beta1.ManifestHashAnnotation: hash}}
		other.SetOwnerReferences(owners)
		spec := other.Object["spec"].(map[string]any)
		spec["selector"] = map[string]any{"matchLabels": map[string]any{"app": "two"}}
		spec["template"].(map[string]any)["metadata"] = map[string]any{"labels": map[string]any{"app": "two"}}
		Expect(memberClient.Create(ctx, other)).To(Succeed())
		agent = startAgent(member.Config())
		Eventually(reportedOf(ctx, "degraded")).Should(HaveExactElements(refused("FoundDriftsInDegradedMode")))
		Expect(manifestOf(ctx, "degraded", 0).DriftDetails.ObservedDrifts).To(ContainElement(
			placementv1beta1.PatchDetail{Path: "/spec/selector/matchLabels/app", ValueInHub: "one", ValueInMember: "two"}))
	})
})

var _ = Describe("comparisonOption FullComparison", func() {
	It("reports fields of others and counts the manifest as applied", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "full", &placementv1beta1.ApplyStrategy{ComparisonOption: placementv1beta1.FullComparison}, build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(reported(ctx, "full")).Should(beDone())
		Expect(manifestOf(ctx, "full", 0).DriftDetails).To(BeNil())
		Expect(memberClient.Patch(ctx, expect.ConfigMap(ctx, memberClient, ns, "a"), expect.MergePatch(`{"data":{"x":"2","y":"theirs"}}`))).To(Succeed())
		Eventually(func() []placementv1beta1.PatchDetail {
			if drift := manifestOf(ctx, "full", 0).DriftDetails; drift != nil {
				return drift.ObservedDrifts
			}
			return nil
		}).Should(HaveExactElements(placementv1beta1.PatchDetail{Path: "/data/y", ValueInMember: "theirs"}))
		Expect(expect.Data(ctx, memberClient, ns, "a")()).To(Equal(map[string]string{"x": "1", "y": "theirs"}), "our field was corrected")
		Eventually(reported(ctx, "full")).Should(beDone())
	})

	for _, kind := range []placementv1beta1.ApplyStrategyType{placementv1beta1.ClientSideApply, placementv1beta1.ServerSideApply} {
		It("reports no defaults of the member, but a change of one, with "+string(kind), func(ctx SpecContext) {
			ns := expect.FreshNamespace(ctx, memberClient)
			name := "defaults-" + ns
			strategy := &placementv1beta1.ApplyStrategy{Type: kind, ComparisonOption: placementv1beta1.FullComparison, WhenToApply: placementv1beta1.ApplyIfNotDrifted}
			createWork(ctx, name, strategy, build.DeploymentText(ns, "web", "web"),
				`{apiVersion: v1, kind: Service, metadata: {namespace: `+ns+`, name: web}, spec: {ports: [{port: 80}]}}`,
				`{apiVersion: v1, kind: ReplicationController, metadata: {namespace: `+ns+`, name: web}, spec: {replicas: 0,
					template: {metadata: {labels: {app: rc}}, spec: {containers: [{name: main, image: "example.com/main:1"}]}}}}`)
			applied := HaveField("Applied", "True/Applied")
			Eventually(reportedOf(ctx, name)).Should(HaveExactElements(applied, applied, applied))
			for place := range 3 {
				Expect(manifestOf(ctx, name, place).DriftDetails).To(BeNil())
			}
			web, err := expect.Found(ctx, memberClient, "apps/v1", "Deployment", ns, "web")
			Expect(err).NotTo(HaveOccurred())
			Expect(memberClient.Patch(ctx, web, expect.MergePatch(`{"spec":{"revisionHistoryLimit":3}}`))).To(Succeed())
			Eventually(reportedOf(ctx, name)).Should(HaveExactElements(refused("FoundDrifts"), applied, applied))
			Expect(manifestOf(ctx, name, 0).DriftDetails.ObservedDrifts).To(HaveExactElements(
				placementv1beta1.PatchDetail{Path: "/spec/revisionHistoryLimit", ValueInMember: "3"}))
		})
	}
})

var _ = Describe("Strategy type ReportDiff", func() {
	It("writes nothing, reports differences, and applies after a change of strategy", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		before := foreignConfigMap(ctx, ns, "x", "theirs")
		secret := func(value string) string {
			return `{apiVersion: v1, kind: Secret, metadata: {namespace: ` + ns + `, name: a}, stringData: {key: ` + value + `}}`
		}
		Expect(memberClient.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "a"},
			StringData: map[string]string{"key": "their-secret"}})).To(Succeed())
		createWork(ctx, "diff", &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ReportDiff},
			build.ConfigMapText(ns, "a", "x", "ours"), build.ConfigMapText(ns, "absent"), secret("our-secret"),
			`{apiVersion: v1, kind: Namespace, metadata: {name: `+ns+`}}`)
		Eventually(conditionOf(ctx, "diff", placementv1beta1.ConditionDiffReported)).Should(Equal("True/AllManifestsDiffReported"))
		Expect(conditionOf(ctx, "diff", placementv1beta1.ConditionApplied)()).To(BeEmpty())
		Expect(diffsOf(ctx, "diff")).To(HaveExactElements(
			ConsistOf(
				placementv1beta1.PatchDetail{Path: "/data/x", ValueInHub: "ours", ValueInMember: "theirs"},
				placementv1beta1.PatchDetail{Path: "/metadata/labels/app", ValueInHub: "spec"}),
			HaveExactElements(placementv1beta1.PatchDetail{Path: "/", ValueInHub: "(the whole object)"}),
			HaveExactElements(placementv1beta1.PatchDetail{Path: "/data/key",
				ValueInHub: "(redacted for security reasons)", ValueInMember: "(redacted for security reasons)"}),
			BeEmpty()))
		absent := manifestOf(ctx, "diff", 1)
		Expect(absent.DiffDetails.ObservedInMemberClusterGeneration).To(BeNil())
		Expect(expect.Said(absent.Conditions, placementv1beta1.ConditionDiffReported)).To(Equal("True/FoundDiff"))
		Expect(expect.Said(manifestOf(ctx, "diff", 3).Conditions, placementv1beta1.ConditionDiffReported)).To(Equal("True/NoDiffFound"))
		Expect(expect.ConfigMap(ctx, memberClient, ns, "a").ResourceVersion).To(Equal(before.ResourceVersion))
		Expect(expect.Data(ctx, memberClient, ns, "absent")()).To(BeNil())

		By("following changes on the member")
		Expect(memberClient.Patch(ctx, before, expect.MergePatch(`{"metadata":{"labels":{"app":"spec"}},"data":{"x":"ours"}}`))).To(Succeed())
		Eventually(func() string {
			return expect.Said(manifestOf(ctx, "diff", 0).Conditions, placementv1beta1.ConditionDiffReported)
		}).Should(Equal("True/NoDiffFound"))

		updateWork(ctx, "diff", func(work *placementv1beta1.Work) {
			work.Spec.ApplyStrategy = nil
			work.Spec.Workload.Manifests = manifests(build.ConfigMapText(ns, "a", "x", "ours"), build.ConfigMapText(ns, "absent"))
		})
		Eventually(reported(ctx, "diff")).Should(beDone())
		Expect(conditionOf(ctx, "diff", placementv1beta1.ConditionDiffReported)()).To(BeEmpty())
	})

	It("reports why it cannot compare", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "no-diff", &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ReportDiff},
			build.ConfigMapText(ns, "a"), `{apiVersion: nowhere.example.com/v1, kind: Nothing, metadata: {name: a}}`)
		Eventually(conditionOf(ctx, "no-diff", placementv1beta1.ConditionDiffReported)).Should(Equal("False/SomeManifestsHaveNotReportedDiff"))
		Expect(message(ctx, "no-diff", 1, placementv1beta1.ConditionDiffReported)).To(ContainSubstring("no kind Nothing"))
	})

	It("keeps objects that were applied before", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "then-diff", nil, build.ConfigMapText(ns, "a", "x", "1"), build.ConfigMapText(ns, "b", "x", "1"))
		Eventually(reported(ctx, "then-diff")).Should(beDone())
		updateWork(ctx, "then-diff", func(work *placementv1beta1.Work) {
			work.Spec.ApplyStrategy = &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ReportDiff}
			work.Spec.Workload.Manifests = manifests(build.ConfigMapText(ns, "a", "x", "2"))
		})
		Eventually(conditionOf(ctx, "then-diff", placementv1beta1.ConditionDiffReported)).Should(Equal("True/AllManifestsDiffReported"))
		Consistently(expect.Data(ctx, memberClient, ns, "b")).ShouldNot(BeNil())
		Expect(expect.Data(ctx, memberClient, ns, "a")()).To(Equal(map[string]string{"x": "1"}))
	})
})

var _ = Describe("An immutable field", func() {
	recreate := func(text string) string {
		object := manifests(text)[0]
		return withAnnotation(string(object.Raw), placementv1beta1.ImmutableChangeAnnotation, placementv1beta1.ImmutableChangeRecreate)
	}

	It("leads to re-creation if the manifest requests it", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "recreated", nil, recreate(build.DeploymentText(ns, "web", "one")), build.ConfigMapText(ns, "a"))
		Eventually(reported(ctx, "recreated")).Should(beDone())
		before, err := expect.Found(ctx, memberClient, "apps/v1", "Deployment", ns, "web")
		Expect(err).NotTo(HaveOccurred())

		changeWork(ctx, "recreated", recreate(build.DeploymentText(ns, "web", "two")), build.ConfigMapText(ns, "a"))
		Eventually(reported(ctx, "recreated")).Should(beDone())
		after, err := expect.Found(ctx, memberClient, "apps/v1", "Deployment", ns, "web")
		Expect(err).NotTo(HaveOccurred())
		Expect(after.GetUID()).NotTo(Equal(before.GetUID()))
		Expect(after.Object["spec"]).To(HaveKeyWithValue("selector", map[string]any{"matchLabels": map[string]any{"app": "two"}}))
		Eventually(ledger(ctx, "recreated")).Should(HaveExactElements("web", "a"))
	})

	It("is named with the remedy for every kind", func(ctx SpecContext) {
		const (
			pod      = `{containers: [{name: main, image: "example.com/main:1"}]}`
			roleRef  = `roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: `
			template = `template: {metadata: {labels: {app: a}}, spec: ` + pod + `}`
		)
		// $v in a text is replaced by the old and the new value.
		kinds := map[string]struct{ text, from, to, field string }{
			"StatefulSet":              {`{apiVersion: apps/v1, kind: StatefulSet, metadata: {namespace: $ns, name: a}, spec: {replicas: 0, serviceName: $v, selector: {matchLabels: {app: a}}, ` + template + `}}`, "a", "b", "spec"},
			"DaemonSet":                {`{apiVersion: apps/v1, kind: DaemonSet, metadata: {namespace: $ns, name: a}, spec: {selector: {matchLabels: {app: a$v}}, template: {metadata: {labels: {app: a$v}}, spec: ` + pod + `}}}`, "", "b", "spec.selector"},
			"ReplicaSet":               {`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {namespace: $ns, name: a}, spec: {replicas: 0, selector: {matchLabels: {app: a$v}}, template: {metadata: {labels: {app: a$v}}, spec: ` + pod + `}}}`, "", "b", "spec.selector"},
			"Job":                      {`{apiVersion: batch/v1, kind: Job, metadata: {namespace: $ns, name: a}, spec: {suspend: true, completionMode: $v, completions: 1, template: {spec: {restartPolicy: Never, containers: [{name: main, image: "example.com/main:1"}]}}}}`, "NonIndexed", "Indexed", "spec.completionMode"},
			"Pod":                      {`{apiVersion: v1, kind: Pod, metadata: {namespace: $ns, name: a}, spec: {nodeSelector: {no: "node"}, containers: [{name: main, image: "example.com/main:1", workingDir: $v}]}}`, "/a", "/b", "spec"},
			"ConfigMap":                {`{apiVersion: v1, kind: ConfigMap, immutable: true, metadata: {namespace: $ns, name: a}, data: {x: $v}}`, "a", "b", "data"},
			"Secret":                   {`{apiVersion: v1, kind: Secret, type: $v, metadata: {namespace: $ns, name: a}}`, "example.com/a", "example.com/b", "type"},
			"RoleBinding":              {`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: $ns, name: a}, ` + roleRef + `$v}}`, "view", "edit", "roleRef"},
			"ClusterRoleBinding":       {`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: $ns}, ` + roleRef + `$v}}`, "view", "edit", "roleRef"},
			"StorageClass":             {`{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: $ns}, provisioner: example.com/$v}`, "a", "b", "provisioner"},
			"PriorityClass":            {`{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: $ns}, value: $v}`, "1", "2", "value"},
			"RuntimeClass":             {`{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: $ns}, handler: $v}`, "a", "b", "handler"},
			"IngressClass":             {`{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: $ns}, spec: {controller: example.com/$v}}`, "a", "b", "spec.controller"},
			"ResourceQuota":            {`{apiVersion: v1, kind: ResourceQuota, metadata: {namespace: $ns, name: a}, spec: {hard: {pods: "9"}, scopes: [$v]}}`, "Terminating", "NotTerminating", "spec.scopes"},
			"EndpointSlice":            {`{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {namespace: $ns, name: a}, addressType: $v, endpoints: []}`, "IPv4", "IPv6", "addressType"},
			"PersistentVolume":         {`{apiVersion: v1, kind: PersistentVolume, metadata: {name: $ns}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /$v}}}`, "a", "b", "spec"},
			"PersistentVolumeClaim":    {`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {namespace: $ns, name: a}, spec: {storageClassName: $v, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`, "a", "b", "spec"},
			"CustomResourceDefinition": {strings.Replace(gadgets("fixed-$ns"), "scope: Namespaced", "scope: $v", 1), "Namespaced", "Cluster", "spec.scope"},
			"StatefulSet with claims":  {`{apiVersion: apps/v1, kind: StatefulSet, metadata: {namespace: $ns, name: a}, spec: {replicas: 0, serviceName: a, selector: {matchLabels: {app: a}}, ` + template + `, volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: $v}}}}]}}`, "1Gi", "2Gi", "spec"},
			"headless Service":         {`{apiVersion: v1, kind: Service, metadata: {namespace: $ns, name: a}, spec: {clusterIP: $v, ports: [{port: 80}]}}`, "None", `""`, "spec.clusterIP"},
			"Service with an address":  {`{apiVersion: v1, kind: Service, metadata: {namespace: $ns, name: a}, spec: {clusterIP: $v, ports: [{port: 80}]}}`, `""`, "None", "spec.clusterIP"},
			"immutable Secret":         {`{apiVersion: v1, kind: Secret, immutable: true, metadata: {namespace: $ns, name: a}, stringData: {x: $v}}`, "a", "b", "data"},
			"CSIDriver":                {`{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: $ns.example.org}, spec: {attachRequired: $v}}`, "true", "false", "spec.attachedRequired"},
			"VolumeAttributesClass":    {`{apiVersion: storage.k8s.io/v1, kind: VolumeAttributesClass, metadata: {name: $ns}, driverName: a.example.org, parameters: {iops: $v}}`, `"1"`, `"2"`, "parameters"},
			"ResourceClaim":            {`{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {namespace: $ns, name: a}, spec: {devices: {requests: [{name: a, exactly: {deviceClassName: $v}}]}}}`, "a", "b", "spec"},
			"ResourceClaimTemplate":    {`{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {namespace: $ns, name: a}, spec: {spec: {devices: {requests: [{name: a, exactly: {deviceClassName: $v}}]}}}}`, "a", "b", "spec"},
			"ControllerRevision":       {`{apiVersion: apps/v1, kind: ControllerRevision, metadata: {namespace: $ns, name: a}, revision: 1, data: {a: $v}}`, "a", "b", "data"},
			"ReplicationController":    {`{apiVersion: v1, kind: ReplicationController, metadata: {namespace: $ns, name: a}, spec: {replicas: 0, template: {metadata: {labels: {app: $v}}, spec: {containers: [{name: main, image: "example.com/main:1"}]}}}}`, "a", "b", "spec.selector"},
		}
		for _, strategy := range []placementv1beta1.ApplyStrategyType{placementv1beta1.ClientSideApply, placementv1beta1.ServerSideApply} {
			names := map[string]string{}
			for kind, k := range kinds {
				ns := expect.FreshNamespace(ctx, memberClient)
				names[kind] = "fixed-" + ns
				createWork(ctx, names[kind], &placementv1beta1.ApplyStrategy{Type: strategy}, strings.NewReplacer("$ns", ns, "$v", k.from).Replace(k.text))
			}
			for kind, k := range kinds {
				Eventually(reportedOf(ctx, names[kind])).Should(HaveExactElements(HaveField("Applied", "True/Applied")), kind)
				changeWork(ctx, names[kind], strings.NewReplacer("$ns", strings.TrimPrefix(names[kind], "fixed-"), "$v", k.to).Replace(k.text))
			}
			for kind, k := range kinds {
				Eventually(reportedOf(ctx, names[kind])).Should(HaveExactElements(refused("ManifestApplyFailed")), kind)
				Expect(message(ctx, names[kind], 0, "Applied")).To(And(ContainSubstring(k.field), Or(
					ContainSubstring(placementv1beta1.ImmutableChangeAnnotation), ContainSubstring("never deleted for that"))), "%s with %s", kind, strategy)
			}
		}
	})

	It("is not what a policy denies that mentions updates, so that the object is not re-created", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		text := func(value string) string { return recreate(build.ConfigMapText(ns, "a", "x", value)) }
		createWork(ctx, "denied", nil, text("1"))
		Eventually(reported(ctx, "denied")).Should(beDone())
		before, err := expect.Found(ctx, memberClient, "v1", "ConfigMap", ns, "a")
		Expect(err).NotTo(HaveOccurred())
		denyUpdates(ctx, ns)
		changeWork(ctx, "denied", text("2"))
		Eventually(reported(ctx, "denied")).Should(beRefused())
		Expect(message(ctx, "denied", 0, "Applied")).To(ContainSubstring("updates to production need a ticket"))
		after, err := expect.Found(ctx, memberClient, "v1", "ConfigMap", ns, "a")
		Expect(err).NotTo(HaveOccurred())
		Expect(after.GetUID()).To(Equal(before.GetUID()))
	})

	It("is named with the remedy for a Job too", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		job := func(image string) string {
			return `{apiVersion: batch/v1, kind: Job, metadata: {namespace: ` + ns + `, name: once}, spec: {suspend: true,
				template: {spec: {restartPolicy: Never, containers: [{name: main, image: "` + image + `"}]}}}}`
		}
		createWork(ctx, "job", nil, job("example.com/main:1"))
		untracked := outcome{Applied: "True/AllManifestsApplied", Available: "True/WorkNotTrackable"}
		Eventually(reported(ctx, "job")).Should(Equal(untracked))
		changeWork(ctx, "job", job("example.com/main:2"))
		Eventually(reported(ctx, "job")).Should(beRefused())
		Expect(message(ctx, "job", 0, "Applied")).To(And(ContainSubstring("spec.template"), ContainSubstring("immutable"),
			ContainSubstring(placementv1beta1.ImmutableChangeAnnotation)))

		changeWork(ctx, "job", recreate(job("example.com/main:2")))
		Eventually(reported(ctx, "job")).Should(Equal(untracked))
	})

	It("leads to no re-creation of an object that another Work shares", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		sharing := &placementv1beta1.ApplyStrategy{AllowCoOwnership: true}
		createWork(ctx, "recreate-1", sharing, shared(recreate(build.DeploymentText(ns, "web", "one"))))
		Eventually(reported(ctx, "recreate-1")).Should(beDone())
		createWork(ctx, "recreate-2", sharing, shared(recreate(build.DeploymentText(ns, "web", "one"))))
		Eventually(reported(ctx, "recreate-2")).Should(beDone())
		before, err := expect.Found(ctx, memberClient, "apps/v1", "Deployment", ns, "web")
		Expect(err).NotTo(HaveOccurred())
		changeWork(ctx, "recreate-1", shared(recreate(build.DeploymentText(ns, "web", "two"))))
		Eventually(reported(ctx, "recreate-1")).Should(beRefused())
		Expect(message(ctx, "recreate-1", 0, "Applied")).To(ContainSubstring("others own it"))
		after, err := expect.Found(ctx, memberClient, "apps/v1", "Deployment", ns, "web")
		Expect(err).NotTo(HaveOccurred())
		Expect(after.GetUID()).To(Equal(before.GetUID()))
	})
})

// denyUpdates has a policy of the member deny updates of ConfigMaps in a namespace.
func denyUpdates(ctx context.Context, namespace string) {
	GinkgoHelper()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	policy.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
		ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		}}},
	}
	policy.Spec.Validations = []admissionregistrationv1.Validation{{Expression: "object.data == oldObject.data", Message: "updates to production need a ticket"}}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	binding.Spec.PolicyName, binding.Spec.ValidationActions = namespace, []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}
	for _, object := range []client.Object{policy, binding} {
		Expect(memberClient.Create(ctx, object)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(memberClient.Delete(ctx, object)).To(Succeed()) })
	}
	// The API server enforces a policy shortly after its creation.
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "other"}, Data: map[string]string{"x": "0"}}
	Expect(memberClient.Create(ctx, other)).To(Succeed())
	Eventually(func() error {
		return memberClient.Patch(ctx, other, expect.MergePatch(`{"data":{"x":"1"}}`), client.DryRunAll)
	}).Should(MatchError(ContainSubstring("need a ticket")))
}

var _ = Describe("reportBackStrategy Mirror", func() {
	It("reports the status of objects", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "mirror", nil, build.DeploymentText(ns, "web", "web"), build.ConfigMapText(ns, "a"))
		updateWork(ctx, "mirror", func(work *placementv1beta1.Work) {
			work.Spec.ReportBackStrategy = &placementv1beta1.ReportBackStrategy{
				Type: placementv1beta1.ReportBackMirror, Destination: placementv1beta1.ReportBackToWork}
		})
		Eventually(func() string {
			if back := manifestOf(ctx, "mirror", 0).BackReportedStatus; back != nil {
				return string(back.ObservedStatus.Raw)
			}
			return ""
		}).Should(And(ContainSubstring(`"availableReplicas":2`), ContainSubstring(`"name":"web"`), Not(ContainSubstring(`"spec"`))))
		Expect(manifestOf(ctx, "mirror", 1).BackReportedStatus).To(BeNil(), "a ConfigMap has no status")

		updateWork(ctx, "mirror", func(work *placementv1beta1.Work) { work.Spec.ReportBackStrategy = nil })
		Eventually(func() *placementv1beta1.BackReportedStatus { return manifestOf(ctx, "mirror", 0).BackReportedStatus }).Should(BeNil())
	})
})
