// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

var _ = Describe("Condition rules", func() {
	rules := func(namespace string, rules ...workv1.ConditionRule) workv1.ManifestWorkSpec {
		return configured("", "configmaps", namespace, "*", func(o *workv1.ManifestConfigOption) { o.ConditionRules = rules })
	}

	It("set conditions of manifests and of the work that follow the object", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "rules", rules(ns,
			workv1.ConditionRule{Condition: "Progressing", Type: "CEL", CELExpressions: []string{"object.data.x != 'done'"}, MessageExpression: "'x is ' + object.data.x + (result ? '' : ', at last')"},
			workv1.ConditionRule{Condition: "Wrong", Type: "CEL", CELExpressions: []string{"object.none.at == 1"}},
		), build.ConfigMapText(ns, "a", "x", "begun"), build.ConfigMapText(ns, "b", "x", "done"))
		Eventually(conditions(ctx, "rules")).Should(HaveExactElements(workApplied, workAvailable,
			"Progressing True ConditionRulesAggregated Aggregated from 2 manifest conditions",
			"Wrong False ConditionRulesAggregated Aggregated from 2 manifest conditions"))
		Expect(of(ctx, "rules", 0)(Default)).To(HaveExactElements(applied, available, noFeedback,
			"Progressing True ConditionRuleEvaluated x is begun", "Wrong False ConditionRuleExpressionError no such key: none"))
		Expect(of(ctx, "rules", 1)(Default)).To(ContainElement("Progressing False ConditionRuleEvaluated x is done, at last"))

		updateWork(ctx, "rules", func(work *workv1.ManifestWork) {
			work.Spec.Workload.Manifests = manifests(build.ConfigMapText(ns, "a", "x", "done"))
			work.Spec.ManifestConfigs[0].ConditionRules = work.Spec.ManifestConfigs[0].ConditionRules[:1]
		})
		Eventually(conditions(ctx, "rules")).Should(HaveExactElements(workApplied, workAvailable, "Progressing False ConditionRulesAggregated x is done, at last"))
	})

	It("report a Complete Job and ignore unknown kinds", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		known := workv1.ConditionRule{Condition: "Complete", Type: "WellKnownConditions"}
		spec := configured("batch", "jobs", "*", "job-*", func(o *workv1.ManifestConfigOption) {
			o.ConditionRules = []workv1.ConditionRule{known, {Condition: "Unheard", Type: "WellKnownConditions"}}
		})
		other := configured("batch", "jobs", ns, "job-3", func(o *workv1.ManifestConfigOption) {
			o.ConditionRules = []workv1.ConditionRule{{Condition: "Complete", Type: "CEL", CELExpressions: []string{"badexpression"}}}
		})
		wrong := *other.ManifestConfigs[0].DeepCopy()
		wrong.ResourceIdentifier.Name = "wrong"
		spec.ManifestConfigs = append(spec.ManifestConfigs, other.ManifestConfigs[0], wrong)
		createWork(ctx, "well-known-rules", spec, jobOf(ns, "job-1", 0), jobOf(ns, "job-2", 1), jobOf(ns, "job-3", 1), jobOf(ns, "wrong", 1))
		Eventually(of(ctx, "well-known-rules", 0)).Should(HaveExactElements(applied, available, noFeedback, "Complete True ConditionRuleEvaluated Job is finished"))
		for _, suspended := range []int{1, 2} {
			Expect(of(ctx, "well-known-rules", suspended)(Default)).To(HaveExactElements(applied, available, noFeedback, "Complete False ConditionRuleEvaluated Job is not finished"))
		}
		Expect(of(ctx, "well-known-rules", 3)(Default)).To(ContainElement(HavePrefix("Complete False ConditionRuleExpressionError ")))
		Expect(conditions(ctx, "well-known-rules")(Default)).To(HaveExactElements(workApplied, workAvailable, "Complete False ConditionRulesAggregated Aggregated from 4 manifest conditions"))
	})

	It("stop writes of a Complete work until the rule is removed", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "complete", rules(ns, workv1.ConditionRule{Condition: "Complete", Type: "CEL", CELExpressions: []string{"object.data.x == 'done'"}}),
			build.ConfigMapText(ns, "a", "x", "begun"))
		Eventually(conditions(ctx, "complete")).Should(ContainElement("Complete False ConditionRulesAggregated Manifest is not Complete"))
		updateWork(ctx, "complete", func(work *workv1.ManifestWork) {
			work.Spec.Workload.Manifests = manifests(build.ConfigMapText(ns, "a", "x", "done"))
		})
		Eventually(conditions(ctx, "complete")).Should(ContainElement("Complete True ConditionRulesAggregated Manifest is Complete"))

		updateWork(ctx, "complete", func(work *workv1.ManifestWork) {
			work.Spec.Workload.Manifests = manifests(build.ConfigMapText(ns, "a", "x", "more"), build.ConfigMapText(ns, "b"))
		})
		Expect(memberClient.Patch(ctx, expect.ConfigMap(ctx, memberClient, ns, "a"), expect.MergePatch(`{"data":{"y":"by hand"}}`))).To(Succeed())
		Consistently(expect.Data(ctx, memberClient, ns, "a")).Should(Equal(map[string]string{"x": "done", "y": "by hand"}))
		Expect(expect.Data(ctx, memberClient, ns, "b")()).To(BeNil())

		updateWork(ctx, "complete", func(work *workv1.ManifestWork) { work.Spec.ManifestConfigs = nil })
		Eventually(expect.Data(ctx, memberClient, ns, "a")).Should(Equal(map[string]string{"x": "more"}))
		Eventually(conditions(ctx, "complete")).Should(beDone())
	})
})

var _ = Describe("Ignored fields", func() {
	leaving := func(namespace string, fields ...workv1.IgnoreField) workv1.ManifestWorkSpec {
		return strategy(namespace, workv1.UpdateStrategy{Type: "ServerSideApply", ServerSideApply: &workv1.ServerSideApplyConfig{Force: true, IgnoreFields: fields}})
	}

	It("are written once with OnSpokePresent", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "present", leaving(ns, workv1.IgnoreField{Condition: "OnSpokePresent", JSONPaths: []string{".data.x"}}), build.ConfigMapText(ns, "a", "x", "1", "y", "1"))
		Eventually(conditions(ctx, "present")).Should(beDone())
		Expect(expect.Data(ctx, memberClient, ns, "a")()).To(Equal(map[string]string{"x": "1", "y": "1"}))
		Expect(memberClient.Patch(ctx, expect.ConfigMap(ctx, memberClient, ns, "a"), expect.MergePatch(`{"data":{"x":"theirs"}}`))).To(Succeed())
		Consistently(expect.Data(ctx, memberClient, ns, "a")).Should(HaveKeyWithValue("x", "theirs"))
		updateWork(ctx, "present", func(work *workv1.ManifestWork) {
			work.Spec.Workload.Manifests = manifests(build.ConfigMapText(ns, "a", "x", "2", "y", "2"))
		})
		Eventually(expect.Data(ctx, memberClient, ns, "a")).Should(Equal(map[string]string{"x": "theirs", "y": "2"}))
		Expect(expect.ConfigMap(ctx, memberClient, ns, "a").Annotations).To(HaveKey("open-cluster-management.io/config-spec-hash"))
	})

	It("are written when the manifest changes with OnSpokeChange", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "change", leaving(ns, workv1.IgnoreField{Condition: "OnSpokeChange", JSONPointers: []string{"/data/x"}}), build.ConfigMapText(ns, "a", "x", "1", "y", "1"))
		Eventually(conditions(ctx, "change")).Should(beDone())
		Expect(memberClient.Patch(ctx, expect.ConfigMap(ctx, memberClient, ns, "a"), expect.MergePatch(`{"data":{"x":"theirs"}}`))).To(Succeed())
		Consistently(expect.Data(ctx, memberClient, ns, "a")).Should(HaveKeyWithValue("x", "theirs"))
		updateWork(ctx, "change", func(work *workv1.ManifestWork) {
			work.Spec.Workload.Manifests = manifests(build.ConfigMapText(ns, "a", "x", "2", "y", "1"))
		})
		Eventually(expect.Data(ctx, memberClient, ns, "a")).Should(Equal(map[string]string{"x": "2", "y": "1"}))
	})

	It("are selected by jq, and invalid expressions are reported", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "jq", leaving(ns, workv1.IgnoreField{Condition: "OnSpokePresent", JQPathExpressions: []string{".data | .x"}}), build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(conditions(ctx, "jq")).Should(beDone())
		updateWork(ctx, "jq", func(work *workv1.ManifestWork) {
			work.Spec.ManifestConfigs[0].UpdateStrategy.ServerSideApply.IgnoreFields[0].JQPathExpressions = []string{".data["}
		})
		Eventually(conditions(ctx, "jq")).Should(ContainElement(workFailed))
		Expect(of(ctx, "jq", 0)(Default)).To(HaveExactElements(
			HavePrefix("Applied False AppliedManifestSSAIgnoreFieldError Failed to process ignoreFields: JQ expression error in '.data['"), available, noFeedback))
	})

	It("do not prevent changes of the owner reference", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "present-orphan", leaving(ns, workv1.IgnoreField{Condition: "OnSpokePresent", JSONPaths: []string{".data.x"}}), build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(conditions(ctx, "present-orphan")).Should(beDone())
		Expect(owners(ctx, ns, "a")()).To(HaveLen(1))
		updateWork(ctx, "present-orphan", func(work *workv1.ManifestWork) {
			work.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: "Orphan"}
		})
		Eventually(owners(ctx, ns, "a")).Should(BeEmpty())
		updateWork(ctx, "present-orphan", func(work *workv1.ManifestWork) { work.Spec.DeleteOption = nil })
		Eventually(owners(ctx, ns, "a")).Should(HaveLen(1))
	})
})

var _ = Describe("An executor", func() {
	account := func(namespace, name string) workv1.ManifestWorkSpec {
		return workv1.ManifestWorkSpec{Executor: &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{
			Type: "ServiceAccount", ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: namespace, Name: name}}}}
	}
	allow := func(ctx SpecContext, namespace, verbs, resources string) {
		GinkgoHelper()
		for _, text := range []string{
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: NS, name: deployer}, rules: [{apiGroups: ["", rbac.authorization.k8s.io], resources: [` + resources + `], verbs: [` + verbs + `]}]}`,
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: NS, name: deployer}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: deployer},
				subjects: [{kind: ServiceAccount, namespace: NS, name: deployer}]}`,
		} {
			kubectl(ctx, kubeconfigOfMember(), strings.ReplaceAll(text, "NS", namespace), "apply", "-f", "-")
		}
	}
	const refused = "Applied False AppliedManifestFailed Failed to apply manifest: not allowed to apply the resource "

	It("needs every right for a manifest", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "executor", account(ns, "deployer"), build.ConfigMapText(ns, "a", "x", "1"),
			`{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: `+ns+`, name: b}}`)
		Eventually(conditions(ctx, "executor")).Should(HaveExactElements(workFailed, "Available False ResourcesNotAvailable 2 of 2 resources are not available"))
		Expect(of(ctx, "executor", 0)(Default)).To(HaveExactElements(refused+" configmaps, "+ns+" a, will try again in 1m0s", unavailable))

		By("applying the object for which it has all verbs")
		allow(ctx, ns, "create, update, patch, get, delete", "configmaps")
		updateWork(ctx, "executor", func(work *workv1.ManifestWork) {
			work.Spec.Workload.Manifests[0] = manifests(build.ConfigMapText(ns, "a", "x", "2"))[0]
		})
		Eventually(conditions(ctx, "executor")).Should(HaveExactElements(workFailed, "Available False ResourcesNotAvailable 1 of 2 resources are not available"))
		Expect(of(ctx, "executor", 0)(Default)).To(HaveExactElements(applied, available, noFeedback))
		Expect(of(ctx, "executor", 1)(Default)).To(HaveExactElements(refused+" serviceaccounts, "+ns+" b, will try again in 1m0s", unavailable))
	})

	It("needs no right to delete an orphaned object, and applies an existing object once allowed", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		foreignConfigMap(ctx, ns, map[string]string{"x": "theirs"})
		allow(ctx, ns, "create, update, patch, get", "configmaps")
		spec := account(ns, "deployer")
		createWork(ctx, "executor-delete", spec, build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(conditions(ctx, "executor-delete")).Should(ContainElement(workFailed))
		updateWork(ctx, "executor-delete", func(work *workv1.ManifestWork) {
			work.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: "Orphan"}
		})
		Eventually(conditions(ctx, "executor-delete")).Should(beDone())
		Expect(expect.Data(ctx, memberClient, ns, "a")()).To(Equal(map[string]string{"x": "1"}))
	})

	It("follows changes of its rights without a change of the work", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		allow(ctx, ns, "create, update, patch, get, delete", "configmaps")
		createWork(ctx, "executor-watched", account(ns, "deployer"), build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(conditions(ctx, "executor-watched")).Should(beDone())
		kubectl(ctx, kubeconfigOfMember(), "", "delete", "rolebinding", "-n", ns, "deployer")
		Eventually(of(ctx, "executor-watched", 0)).Should(HaveExactElements(refused+" configmaps, "+ns+" a, will try again in 1m0s", available, noFeedback))
		Expect(expect.Data(ctx, memberClient, ns, "a")()).To(Equal(map[string]string{"x": "1"}), "the applied object stays")
		allow(ctx, ns, "create, update, patch, get, delete", "configmaps")
		Eventually(conditions(ctx, "executor-watched")).Should(beDone())
	})

	It("writes the objects itself with impersonation, authorized by the cluster", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		insteadOfTheAgent(agentOptions{impersonate: true})
		allow(ctx, ns, "create, update, patch, get, delete", "configmaps")
		role := `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: ` + ns + `, name: given}, rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]}`
		createWork(ctx, "impersonated", account(ns, "deployer"), build.ConfigMapText(ns, "a", "x", "1"),
			`{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: `+ns+`, name: b}}`, role)
		Eventually(conditions(ctx, "impersonated")).Should(ContainElement(workFailed))
		Expect(of(ctx, "impersonated", 0)(Default)).To(HaveExactElements(applied, available, noFeedback))
		Expect(of(ctx, "impersonated", 1)(Default)).To(ContainElement(ContainSubstring(`ServiceAccount "deployer" of namespace "` + ns + `" cannot get serviceaccounts`)))

		By("checking only the right to delete in advance")
		allow(ctx, ns, "create, update, patch, get", "configmaps, serviceaccounts, roles")
		Eventually(of(ctx, "impersonated", 1)).Should(ContainElement(HavePrefix(refused + " serviceaccounts, " + ns + " b")))

		By("granting the right to delete without the right to create")
		allow(ctx, ns, "get, delete", "configmaps, serviceaccounts, roles")
		Eventually(of(ctx, "impersonated", 1)).Should(ContainElement(HavePrefix(
			`Applied False AppliedManifestFailed Failed to apply manifest: ServiceAccount "deployer" of namespace "` + ns + `" cannot create serviceaccounts`)))

		By("granting the right to create without the right to escalate")
		allow(ctx, ns, "create, update, patch, get, delete", "configmaps, serviceaccounts, roles")
		Eventually(of(ctx, "impersonated", 1)).Should(HaveExactElements(applied, available, noFeedback))
		Eventually(of(ctx, "impersonated", 2)).Should(ContainElement(And(HavePrefix("Applied False AppliedManifestFailed "), ContainSubstring("attempting to grant RBAC permissions not currently held"))))
	})

	It("gets rights that the same work grants it if it can grant them", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		allow(ctx, ns, "create, update, patch, get, delete, escalate, bind", "roles, rolebindings")
		createWork(ctx, "gives", account(ns, "deployer"), build.ConfigMapText(ns, "a", "x", "1"),
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: `+ns+`, name: given}, rules: [{apiGroups: [""], resources: [configmaps], verbs: [create, update, patch, get, list, delete]}]}`,
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: `+ns+`, name: given}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: given},
				subjects: [{kind: ServiceAccount, namespace: `+ns+`, name: deployer}]}`)
		Eventually(conditions(ctx, "gives")).Should(beDone())
		Expect(expect.Data(ctx, memberClient, ns, "a")()).To(Equal(map[string]string{"x": "1"}))
	})

	It("cannot grant more rights than it has", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		allow(ctx, ns, "create, update, patch, get, delete", "configmaps, roles, rolebindings")
		role := func(resource string) string {
			return `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: ` + ns + `, name: given}, rules: [{apiGroups: [""], resources: [` + resource + `], verbs: [get]}]}`
		}
		createWork(ctx, "escalation", account(ns, "deployer"), role("secrets"),
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: `+ns+`, name: later}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: not-there-yet},
				subjects: [{kind: ServiceAccount, namespace: `+ns+`, name: deployer}]}`)
		Eventually(conditions(ctx, "escalation")).Should(ContainElement(workFailed))
		Expect(of(ctx, "escalation", 0)(Default)).To(HaveExactElements(
			refused+"rbac.authorization.k8s.io roles, "+ns+" given, error: permission escalation, will try again in 1m0s", unavailable))
		Expect(of(ctx, "escalation", 1)(Default)).To(HaveExactElements(HavePrefix(refused+"rbac.authorization.k8s.io rolebindings, "+ns+" later, error: "), unavailable))
		updateWork(ctx, "escalation", func(work *workv1.ManifestWork) { work.Spec.Workload.Manifests = manifests(role("configmaps")) })
		Eventually(conditions(ctx, "escalation")).Should(beDone())
	})
})

// kubeconfigOfMember returns the kubeconfig of an administrator of the cluster.
func kubeconfigOfMember() string {
	GinkgoHelper()
	path, err := member.Kubeconfig("admin-of-member", "system:masters")
	Expect(err).NotTo(HaveOccurred())
	return path
}
