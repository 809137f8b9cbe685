// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

// requests counts requests to an API server, except watches.
type requests struct{ reads, writes atomic.Int64 }

func (r *requests) count(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		switch {
		case request.Method != http.MethodGet:
			r.writes.Add(1)
		case request.URL.Query().Get("watch") == "":
			r.reads.Add(1)
		}
		return next.RoundTrip(request)
	})
}

func (r *requests) all() int64 { return r.reads.Load() + r.writes.Load() }

var _ = Describe("Applying a ManifestWork", func() {
	It("applies a namespace and its contents with the field manager of OCM's agent", func(ctx SpecContext) {
		createWork(ctx, "namespace", workv1.ManifestWorkSpec{},
			build.DeploymentText("mw-namespace", "web", "web"), // listed before its namespace; ranks reorder it
			build.ConfigMapText("mw-namespace", "settings", "colour", "blue"),
			`{apiVersion: v1, kind: Namespace, metadata: {name: mw-namespace}}`)
		Eventually(conditions(ctx, "namespace")).Should(beDone())
		settings := expect.ConfigMap(ctx, memberClient, "mw-namespace", "settings")
		noted := record(ctx, "namespace")
		Expect(settings.OwnerReferences).To(HaveExactElements(metav1.OwnerReference{
			APIVersion: "work.open-cluster-management.io/v1", Kind: "AppliedManifestWork", Name: noted.Name, UID: noted.UID}))
		Expect(settings.ManagedFields).To(HaveEach(HaveField("Manager", "work-agent")))
		Expect(settings.Annotations).To(BeEmpty(), "objects get no annotations")
		Expect(ledger(ctx, "namespace")()).To(HaveExactElements("settings", "mw-namespace", "web"), "sorted")
	})

	It("makes objects equal to their manifests and keeps labels, annotations and finalizers of others", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "replace", workv1.ManifestWorkSpec{}, build.ConfigMapText(ns, "a", "x", "1", "y", "2"))
		Eventually(conditions(ctx, "replace")).Should(beDone())
		Expect(memberClient.Patch(ctx, expect.ConfigMap(ctx, memberClient, ns, "a"), expect.MergePatch(
			`{"metadata":{"labels":{"theirs":"l"},"annotations":{"theirs":"a"},"finalizers":["example.com/f"]},"data":{"theirs":"z"}}`))).To(Succeed())
		updateWork(ctx, "replace", func(work *workv1.ManifestWork) {
			work.Spec.Workload.Manifests = manifests(build.ConfigMapText(ns, "a", "x", "3"))
		})
		Eventually(expect.Data(ctx, memberClient, ns, "a")).Should(Equal(map[string]string{"x": "3"}))
		object := expect.ConfigMap(ctx, memberClient, ns, "a")
		Expect(object.Labels).To(Equal(map[string]string{"app": "spec", "theirs": "l"}))
		Expect(object.Annotations).To(Equal(map[string]string{"theirs": "a"}))
		Expect(object.Finalizers).To(HaveExactElements("example.com/f"))
		Expect(memberClient.Patch(ctx, object, expect.MergePatch(`{"metadata":{"finalizers":null}}`))).To(Succeed())
	})

	It("reverts changes and deletions on the cluster and restores the owner reference", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "drift", workv1.ManifestWorkSpec{}, build.ConfigMapText(ns, "a", "x", "1"), build.ConfigMapText(ns, "b", "x", "1"), build.DeploymentText(ns, "web", "web"))
		Eventually(conditions(ctx, "drift")).Should(beDone())
		Expect(memberClient.Patch(ctx, expect.ConfigMap(ctx, memberClient, ns, "a"), expect.MergePatch(`{"data":{"x":"2"}}`))).To(Succeed())
		Eventually(expect.Data(ctx, memberClient, ns, "a")).Should(Equal(map[string]string{"x": "1"}))

		Expect(memberClient.Delete(ctx, expect.ConfigMap(ctx, memberClient, ns, "b"))).To(Succeed())
		Eventually(expect.Data(ctx, memberClient, ns, "b")).Should(Equal(map[string]string{"x": "1"}))

		Expect(memberClient.Patch(ctx, expect.ConfigMap(ctx, memberClient, ns, "a"), expect.MergePatch(`{"metadata":{"ownerReferences":null}}`))).To(Succeed())
		Eventually(func() []metav1.OwnerReference { return expect.ConfigMap(ctx, memberClient, ns, "a").OwnerReferences }).Should(HaveLen(1))

		web, err := expect.Found(ctx, memberClient, "apps/v1", "Deployment", ns, "web")
		Expect(err).NotTo(HaveOccurred())
		Expect(memberClient.Patch(ctx, web, expect.MergePatch(`{"spec":{"replicas":7}}`))).To(Succeed())
		Eventually(func(g Gomega) {
			web, err := expect.Found(ctx, memberClient, "apps/v1", "Deployment", ns, "web")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(web.Object).To(HaveKeyWithValue("spec", HaveKeyWithValue("replicas", BeEquivalentTo(2))))
		}).Should(Succeed())
		Eventually(conditions(ctx, "drift")).Should(beDone())
	})

	It("applies valid manifests and reports the problems of invalid ones", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "mixed", workv1.ManifestWorkSpec{},
			`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: `+ns+`, generateName: a-}}`,
			build.ConfigMapText(ns, "good", "x", "1"),
			`{apiVersion: example.com/v1, kind: Unheard, metadata: {namespace: `+ns+`, name: a}}`,
			build.ConfigMapText("does-not-exist", "nowhere"),
		)
		Eventually(conditions(ctx, "mixed")).Should(HaveExactElements(workFailed, "Available False ResourcesNotAvailable 1 of 4 resources are not available"))
		Expect(of(ctx, "mixed", 0)(Default)).To(HaveExactElements(
			And(HavePrefix("Applied False AppliedManifestFailed Failed to apply manifest: "), ContainSubstring("generateName")),
			"Available Unknown IncompleteResourceMeta Resource meta is incomplete"))
		Expect(of(ctx, "mixed", 1)(Default)).To(HaveExactElements(applied, available, noFeedback))
		Expect(of(ctx, "mixed", 2)(Default)).To(HaveExactElements(
			And(HavePrefix("Applied False AppliedManifestFailed Failed to apply manifest: "), ContainSubstring("no kind Unheard")),
			"Available Unknown IncompleteResourceMeta Resource meta is incomplete"))
		Expect(of(ctx, "mixed", 3)(Default)).To(HaveExactElements(
			And(HavePrefix("Applied False AppliedManifestFailed Failed to apply manifest: "), ContainSubstring("does-not-exist")), unavailable))
		for i, m := range getWork(ctx, "mixed").Status.ResourceStatus.Manifests {
			Expect(m.ResourceMeta.Ordinal).To(BeEquivalentTo(i))
		}
	})

	It("applies a custom resource whose kind the same ManifestWork defines", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "own-kind", workv1.ManifestWorkSpec{},
			`{apiVersion: mw.example.com/v1, kind: Gadget, metadata: {namespace: `+ns+`, name: a}, spec: {size: 1}}`,
			`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gadgets.mw.example.com}, spec: {group: mw.example.com, scope: Namespaced,
				names: {kind: Gadget, listKind: GadgetList, plural: gadgets, singular: gadget}, versions: [{name: v1, served: true, storage: true,
				schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`)
		Eventually(conditions(ctx, "own-kind")).Should(beDone())
	})

	It("ignores the namespace of a manifest of a cluster-scoped kind", func(ctx SpecContext) {
		role := func(verb string) string {
			return `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {namespace: default, name: mw-nowhere}, rules: [{apiGroups: [""], resources: [pods], verbs: [` + verb + `]}]}`
		}
		createWork(ctx, "nowhere", workv1.ManifestWorkSpec{}, role("get"))
		Eventually(conditions(ctx, "nowhere")).Should(beDone())
		Expect(getWork(ctx, "nowhere").Status.ResourceStatus.Manifests[0].ResourceMeta.Namespace).To(BeEmpty())
		Expect(record(ctx, "nowhere").Status.AppliedResources).To(HaveExactElements(And(HaveField("Name", "mw-nowhere"), HaveField("Namespace", ""))))

		By("reverting changes there")
		found := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "mw-nowhere"}}
		Expect(memberClient.Patch(ctx, found, expect.MergePatch(`{"rules":[]}`))).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(memberClient.Get(ctx, client.ObjectKeyFromObject(found), found)).To(Succeed())
			g.Expect(found.Rules).To(HaveLen(1))
		}).Should(Succeed())
		removeWork(ctx, "nowhere")
		Expect(expect.Gone(ctx, memberClient, found)()).To(BeTrue())
	})

	It("reports that the role of a binding is immutable and that the binding exists", func(ctx SpecContext) {
		// API servers before 1.37 say the former.
		immutable := Or(ContainSubstring("cannot change roleRef"), MatchRegexp("roleRef: .*field is immutable"))
		ns := expect.FreshNamespace(ctx, memberClient)
		binding := func(name, role string) string {
			return `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: ` + ns + `, name: ` + name + `}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: ` + role + `},
				subjects: [{kind: ServiceAccount, namespace: ` + ns + `, name: a}]}`
		}
		createWork(ctx, "bindings", workv1.ManifestWorkSpec{}, binding("one", "first"), binding("two", "first"))
		Eventually(conditions(ctx, "bindings")).Should(beDone())
		for changed, roles := range [][]string{{"second", "first"}, {"second", "third"}} {
			updateWork(ctx, "bindings", func(work *workv1.ManifestWork) {
				work.Spec.Workload.Manifests = manifests(binding("one", roles[0]), binding("two", roles[1]))
			})
			Eventually(conditions(ctx, "bindings")).Should(HaveExactElements(workFailed, workAvailable))
			Eventually(of(ctx, "bindings", changed)).Should(HaveExactElements(
				And(HavePrefix("Applied False AppliedManifestFailed Failed to apply manifest: "), immutable), available, noFeedback))
		}
	})

	It("reports a name that is too long for a record, applies nothing, and can be deleted", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		long := strings.Repeat("long", 48) // 192
		createWork(ctx, long, workv1.ManifestWorkSpec{}, build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(conditions(ctx, long)).Should(HaveExactElements(workFailed, "Available Unknown ResourcesStatusUnknown 1 of 1 resources have unknown status"))
		Expect(of(ctx, long, 0)(Default)).To(ContainElement(And(HavePrefix("Applied False AppliedManifestFailed "), ContainSubstring("has 192 characters"), ContainSubstring("at most 188"))))
		Expect(expect.Data(ctx, memberClient, ns, "a")()).To(BeNil())
		removeWork(ctx, long)
	})

	It("lists objects that left it until they are gone", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		held := `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: ` + ns + `, name: held, finalizers: [example.com/held]}}`
		createWork(ctx, "leaving", workv1.ManifestWorkSpec{}, held, build.ConfigMapText(ns, "stays"))
		Eventually(conditions(ctx, "leaving")).Should(beDone())
		updateWork(ctx, "leaving", func(work *workv1.ManifestWork) {
			work.Spec.Workload.Manifests = manifests(build.ConfigMapText(ns, "stays"))
		})
		Eventually(func() *metav1.Time { return expect.ConfigMap(ctx, memberClient, ns, "held").DeletionTimestamp }).ShouldNot(BeNil())
		Consistently(ledger(ctx, "leaving")).Should(HaveExactElements("held", "stays"))
		Expect(memberClient.Patch(ctx, expect.ConfigMap(ctx, memberClient, ns, "held"), expect.MergePatch(`{"metadata":{"finalizers":null}}`))).To(Succeed())
		Eventually(ledger(ctx, "leaving")).Should(HaveExactElements("stays"))
	})

	It("costs two writes on the hub and three on the cluster beside its objects, and no request without changes", func(ctx SpecContext) {
		var atHub, atCluster requests
		insteadOfTheAgent(agentOptions{wrapHub: atHub.count, wrap: atCluster.count})
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "first-counted", workv1.ManifestWorkSpec{}, build.ConfigMapText(ns, "first")) // starts the watches
		Eventually(conditions(ctx, "first-counted")).Should(beDone())
		settled := func() {
			GinkgoHelper()
			Eventually(func(g Gomega) {
				before := []int64{atHub.all(), atCluster.all()}
				g.Consistently(func() []int64 { return []int64{atHub.all(), atCluster.all()} }).WithTimeout(2 * time.Second).Should(Equal(before))
			}).Should(Succeed())
		}
		settled()
		hubBefore, clusterBefore := atHub.writes.Load(), atCluster.writes.Load()
		texts := []string{build.ConfigMapText(ns, "a"), build.ConfigMapText(ns, "b"), build.ConfigMapText(ns, "c")}
		createWork(ctx, "counted", workv1.ManifestWorkSpec{}, texts...)
		Eventually(conditions(ctx, "counted")).Should(beDone())
		settled()
		Expect(atHub.writes.Load()-hubBefore).To(BeEquivalentTo(2), "the finalizer and one status")
		Expect(atCluster.writes.Load()-clusterBefore).To(BeEquivalentTo(len(texts)+3), "the record, and its ledger before and after")

		hubBefore, clusterBefore = atHub.all(), atCluster.all()
		foreignConfigMap(ctx, expect.FreshNamespace(ctx, memberClient), nil) // seen by the watch, without an owner
		Consistently(func() []int64 { return []int64{atHub.all() - hubBefore, atCluster.all() - clusterBefore} }).WithTimeout(5 * time.Second).Should(Equal([]int64{0, 0}))
	})

	It("removes only the objects that left it", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "prune", workv1.ManifestWorkSpec{}, build.ConfigMapText(ns, "a", "x", "1"), build.ConfigMapText(ns, "b", "x", "1"))
		Eventually(conditions(ctx, "prune")).Should(beDone())
		updateWork(ctx, "prune", func(work *workv1.ManifestWork) {
			work.Spec.Workload.Manifests = manifests(build.ConfigMapText(ns, "a", "x", "1"))
		})
		Eventually(expect.Data(ctx, memberClient, ns, "b")).Should(BeNil())
		Expect(expect.Data(ctx, memberClient, ns, "a")()).NotTo(BeNil())
		Eventually(ledger(ctx, "prune")).Should(HaveExactElements("a"))
	})

	It("copies its labels to the AppliedManifestWork", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "labels", workv1.ManifestWorkSpec{}, build.ConfigMapText(ns, "a"))
		Eventually(conditions(ctx, "labels")).Should(beDone())
		Expect(hubClient.Patch(ctx, getWork(ctx, "labels"), expect.MergePatch(`{"metadata":{"labels":{"team":"blue"}}}`))).To(Succeed())
		Eventually(func() map[string]string { return record(ctx, "labels").Labels }).Should(Equal(map[string]string{"team": "blue"}))
	})

	It("re-creates all objects after the AppliedManifestWork is deleted", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "record", workv1.ManifestWorkSpec{}, build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(conditions(ctx, "record")).Should(beDone())
		before := record(ctx, "record")
		Expect(memberClient.Delete(ctx, before)).To(Succeed())
		Eventually(func(g Gomega) {
			now := record(ctx, "record")
			g.Expect(now).NotTo(BeNil())
			g.Expect(now.UID).NotTo(Equal(before.UID))
			object := &corev1.ConfigMap{}
			g.Expect(memberClient.Get(ctx, client.ObjectKey{Namespace: ns, Name: "a"}, object)).To(Succeed())
			g.Expect(object.OwnerReferences).To(HaveExactElements(HaveField("UID", now.UID)))
		}).Should(Succeed())
	})

	It("keeps fields that the controllers of Jobs and claims fill in", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "filled", workv1.ManifestWorkSpec{},
			`{apiVersion: batch/v1, kind: Job, metadata: {namespace: `+ns+`, name: once}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: "example.com/main:1"}]}}}}`,
			`{apiVersion: v1, kind: Service, metadata: {namespace: `+ns+`, name: web}, spec: {selector: {app: web}, ports: [{port: 80}]}}`)
		Eventually(conditions(ctx, "filled")).Should(beDone())
		agent.Stop()
		agent = startAgent(agentOptions{}) // has an empty cache
		job, err := expect.Found(ctx, memberClient, "batch/v1", "Job", ns, "once")
		Expect(err).NotTo(HaveOccurred())
		Expect(memberClient.Patch(ctx, job, expect.MergePatch(`{"metadata":{"ownerReferences":null}}`))).To(Succeed())
		Eventually(func(g Gomega) {
			job, err := expect.Found(ctx, memberClient, "batch/v1", "Job", ns, "once")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(job.GetOwnerReferences()).To(HaveLen(1))
		}).Should(Succeed())
		Eventually(conditions(ctx, "filled")).Should(beDone())
	})
})
