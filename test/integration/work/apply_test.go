// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/agent/apply"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

var _ = Describe("Applying a Work", func() {
	It("applies a namespace and its contents, owned by the AppliedWork", func(ctx SpecContext) {
		createWork(ctx, "first", nil,
			build.DeploymentText("first-spec", "web", "web"), // listed before its namespace; waves reorder it
			`{apiVersion: v1, kind: Service, metadata: {namespace: first-spec, name: web}, spec: {selector: {app: web}, ports: [{port: 80}]}}`,
			build.ConfigMapText("first-spec", "settings", "colour", "blue"),
			`{apiVersion: v1, kind: Namespace, metadata: {name: first-spec}}`,
		)
		Eventually(reported(ctx, "first")).Should(beDone())
		Expect(reportedOf(ctx, "first")(Default)).To(HaveEach(applied()))

		work := getWork(ctx, "first")
		Expect(work.Finalizers).To(ContainElement(placementv1beta1.WorkCleanupFinalizer))
		Expect(work.Status.ManifestConditions[0].Identifier).To(Equal(placementv1beta1.WorkResourceIdentifier{
			Ordinal: 0, Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespace: "first-spec", Name: "web"}))

		record := getRecord(ctx, "first")
		Expect(record.Spec).To(Equal(placementv1beta1.AppliedWorkSpec{WorkName: "first", WorkNamespace: hubNamespace}))
		settings := expect.ConfigMap(ctx, memberClient, "first-spec", "settings")
		Expect(settings.OwnerReferences).To(HaveLen(1))
		Expect(settings.OwnerReferences[0].UID).To(Equal(record.UID))
		Expect(*settings.OwnerReferences[0].BlockOwnerDeletion).To(BeTrue())
		Expect(settings.Labels).To(Equal(map[string]string{"app": "spec"}), "labels are applied unchanged")
		Expect(settings.Annotations).To(HaveLen(2))
		Expect(settings.Annotations).To(HaveKey(placementv1beta1.ManifestHashAnnotation))
		Expect(settings.Annotations[placementv1beta1.LastAppliedConfigAnnotation]).To(ContainSubstring("blue"))
		Expect(record.Status.AppliedResources).To(HaveLen(4))
		Expect(record.Status.AppliedResources[2].UID).To(Equal(settings.UID))
	})

	It("changes values, removes keys that left the manifest and keeps keys of others", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "change", nil, build.ConfigMapText(ns, "a", "x", "1", "y", "2"))
		Eventually(reported(ctx, "change")).Should(beDone())
		Expect(memberClient.Patch(ctx, expect.ConfigMap(ctx, memberClient, ns, "a"), expect.MergePatch(`{"data":{"theirs":"z"}}`))).To(Succeed())

		changeWork(ctx, "change", build.ConfigMapText(ns, "a", "x", "3"))
		Eventually(expect.Data(ctx, memberClient, ns, "a")).Should(Equal(map[string]string{"x": "3", "theirs": "z"}))
		Eventually(reported(ctx, "change")).Should(beDone())
	})

	It("does the same with server-side apply", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		strategy := &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ServerSideApply}
		createWork(ctx, "server-side", strategy, build.ConfigMapText(ns, "a", "x", "1", "y", "2"))
		Eventually(reported(ctx, "server-side")).Should(beDone())
		object := expect.ConfigMap(ctx, memberClient, ns, "a")
		Expect(object.Annotations).NotTo(HaveKey(placementv1beta1.LastAppliedConfigAnnotation))
		Expect(object.ManagedFields).To(ContainElement(HaveField("Manager", apply.FieldManager)))

		changeWork(ctx, "server-side", build.ConfigMapText(ns, "a", "x", "3"))
		Eventually(expect.Data(ctx, memberClient, ns, "a")).Should(Equal(map[string]string{"x": "3"}))
	})

	It("reports the manager that owns a field and takes the field with force", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		Expect(memberClient.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "a"}, Data: map[string]string{"x": "theirs"},
		}, client.FieldOwner("somebody"))).To(Succeed())
		strategy := &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ServerSideApply}
		createWork(ctx, "conflict", strategy, build.ConfigMapText(ns, "a", "x", "ours"))
		Eventually(reportedOf(ctx, "conflict")).Should(HaveExactElements(refused("ManifestApplyFailed")))
		Expect(message(ctx, "conflict", 0, "Applied")).To(And(ContainSubstring("somebody"), ContainSubstring(".data.x")))

		updateWork(ctx, "conflict", func(work *placementv1beta1.Work) {
			work.Spec.ApplyStrategy.ServerSideApplyConfig = &placementv1beta1.ServerSideApplyConfig{ForceConflicts: true}
		})
		Eventually(reported(ctx, "conflict")).Should(beDone())
		Expect(expect.Data(ctx, memberClient, ns, "a")()).To(HaveKeyWithValue("x", "ours"))
	})

	It("removes a field that left the manifest when the strategy changes from client-side apply", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "switch", nil, build.ConfigMapText(ns, "a", "x", "1", "y", "2"))
		Eventually(reported(ctx, "switch")).Should(beDone())
		updateWork(ctx, "switch", func(work *placementv1beta1.Work) {
			work.Spec.ApplyStrategy = &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ServerSideApply}
			work.Spec.Workload.Manifests = manifests(build.ConfigMapText(ns, "a", "x", "1"))
		})
		Eventually(expect.Data(ctx, memberClient, ns, "a")).Should(Equal(map[string]string{"x": "1"}))
		Expect(expect.ConfigMap(ctx, memberClient, ns, "a").Annotations).NotTo(HaveKey(placementv1beta1.LastAppliedConfigAnnotation))
	})

	It("keeps the member's default class of an Ingress when the strategy changes from client-side apply", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		class := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: ns, Annotations: map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"}}}
		class.Spec.Controller = "example.com/controller"
		Expect(memberClient.Create(ctx, class)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(memberClient.Delete(ctx, class)).To(Succeed()) })
		ingress := func(service string) string {
			return `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {namespace: ` + ns + `, name: a}, spec: {defaultBackend: {service: {name: ` + service + `, port: {number: 80}}}}}`
		}
		has := func(service string) func(Gomega) {
			return func(g Gomega) {
				live := &networkingv1.Ingress{}
				g.Expect(memberClient.Get(ctx, client.ObjectKey{Namespace: ns, Name: "a"}, live)).To(Succeed())
				g.Expect(live.Spec.DefaultBackend.Service.Name).To(Equal(service))
				g.Expect(live.Spec.IngressClassName).To(HaveValue(Equal(ns)))
			}
		}
		createWork(ctx, "class", nil, ingress("one"))
		Eventually(has("one")).Should(Succeed())
		updateWork(ctx, "class", func(work *placementv1beta1.Work) {
			work.Spec.ApplyStrategy = &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ServerSideApply}
			work.Spec.Workload.Manifests = manifests(ingress("two"))
		})
		Eventually(has("two")).Should(Succeed())
		changeWork(ctx, "class", ingress("three"))
		Eventually(has("three")).Should(Succeed())
	})

	It("uses server-side apply for a manifest that is too large for the annotation", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "large", nil, build.ConfigMapText(ns, "a", "x", "small", "y", "2"))
		Eventually(reported(ctx, "large")).Should(beDone())

		large := strings.Repeat("a", 300<<10)
		changeWork(ctx, "large", build.ConfigMapText(ns, "a", "x", large))
		Eventually(expect.Data(ctx, memberClient, ns, "a")).Should(Equal(map[string]string{"x": large}))
		Eventually(reported(ctx, "large")).Should(beDone())
		Expect(expect.ConfigMap(ctx, memberClient, ns, "a").Annotations).NotTo(HaveKey(placementv1beta1.LastAppliedConfigAnnotation))

		changeWork(ctx, "large", build.ConfigMapText(ns, "a", "x", "small"))
		Eventually(expect.Data(ctx, memberClient, ns, "a")).Should(Equal(map[string]string{"x": "small"}))
		Expect(expect.ConfigMap(ctx, memberClient, ns, "a").Annotations).To(HaveKey(placementv1beta1.LastAppliedConfigAnnotation))
	})

	It("names an immutable field", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "immutable", nil, build.DeploymentText(ns, "web", "one"), build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(reported(ctx, "immutable")).Should(beDone())

		changeWork(ctx, "immutable", build.DeploymentText(ns, "web", "two"), build.ConfigMapText(ns, "a", "x", "2"))
		Eventually(reported(ctx, "immutable")).Should(beRefused())
		Expect(reportedOf(ctx, "immutable")(Default)).To(HaveExactElements(refused("ManifestApplyFailed"), applied()))
		Expect(message(ctx, "immutable", 0, "Applied")).To(And(ContainSubstring("spec.selector"), ContainSubstring("immutable")))
		Eventually(ledger(ctx, "immutable")).Should(HaveExactElements("web", "a"), "the ledger keeps the refused object")

		changeWork(ctx, "immutable", build.DeploymentText(ns, "web", "one"), build.ConfigMapText(ns, "a", "x", "2"))
		Eventually(reported(ctx, "immutable")).Should(beDone())
	})

	It("does not repeat values of a rejected Secret", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "secret", nil,
			`{apiVersion: v1, kind: Secret, metadata: {namespace: `+ns+`, name: a}, type: kubernetes.io/dockerconfigjson, stringData: {.dockerconfigjson: "hidden-value"}}`)
		Eventually(reportedOf(ctx, "secret")).Should(HaveExactElements(refused("ManifestApplyFailed")))
		Expect(message(ctx, "secret", 0, "Applied")).To(And(ContainSubstring("data"), Not(ContainSubstring("hidden"))))
	})

	It("stores no value of a Secret in an annotation and still removes keys that left it", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		secret := func(data string) string {
			return `{apiVersion: v1, kind: Secret, metadata: {namespace: ` + ns + `, name: a}, data: {` + data + `}}`
		}
		createWork(ctx, "secret-base", nil, secret(`kept: aGlkZGVu, left: aGlkZGVu`))
		Eventually(reported(ctx, "secret-base")).Should(beDone())
		applied, err := expect.Found(ctx, memberClient, "v1", "Secret", ns, "a")
		Expect(err).NotTo(HaveOccurred())
		Expect(applied.GetAnnotations()).To(HaveKey(placementv1beta1.LastAppliedConfigAnnotation))
		for name, value := range applied.GetAnnotations() {
			Expect(value).NotTo(Or(ContainSubstring("aGlkZGVu"), ContainSubstring("hidden")), name)
		}

		// The previous version of the agent stored values there.
		applied.SetAnnotations(map[string]string{placementv1beta1.LastAppliedConfigAnnotation: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{"kept":"aGlkZGVu","left":"aGlkZGVu"}}`})
		Expect(memberClient.Update(ctx, applied)).To(Succeed())
		changeWork(ctx, "secret-base", secret(`kept: aGlkZGVu`))
		Eventually(func(g Gomega) {
			live, err := expect.Found(ctx, memberClient, "v1", "Secret", ns, "a")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(live.Object["data"]).To(Equal(map[string]any{"kept": "aGlkZGVu"}))
			g.Expect(live.GetAnnotations()[placementv1beta1.LastAppliedConfigAnnotation]).NotTo(ContainSubstring("aGlkZGVu"))
		}).Should(Succeed())
	})

	It("applies valid manifests beside invalid ones", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "mixed", nil,
			`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: `+ns+`, generateName: a-}}`,
			build.ConfigMapText(ns, "good", "x", "1"),
			build.ConfigMapText(ns, "good", "x", "2"),
			build.ConfigMapText("", "nowhere"),
			build.ConfigMapText("does-not-exist", "nowhere"),
			`{apiVersion: v1, kind: Namespace, metadata: {namespace: `+ns+`, name: a}}`,
			`{apiVersion: v1, kind: List, metadata: {name: list}, items: []}`,
		)
		Eventually(reported(ctx, "mixed")).Should(beRefused())
		Expect(reportedOf(ctx, "mixed")(Default)).To(HaveExactElements(
			refused("FoundGenerateName"),
			applied(),
			refused("Duplicated"),
			refused("ManifestApplyFailed"),
			refused("ManifestApplyFailed"),
			refused("ManifestApplyFailed"),
			refused("DecodingErred"),
		))
		Expect(message(ctx, "mixed", 4, "Applied")).To(ContainSubstring(`"does-not-exist" not found`))
		Expect(expect.Data(ctx, memberClient, ns, "good")()).To(Equal(map[string]string{"x": "1"}))
		Eventually(ledger(ctx, "mixed")).Should(HaveExactElements("good"))
	})

	It("names a field of another type than its kind has, also in a later manifest", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		const deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: NS, name: d}, spec: {replicas: 0, selector: {matchLabels: {a: b}},
			template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: "c:1", env: ENV}]}}}}`
		with := func(env string) string { return strings.NewReplacer("NS", ns, "ENV", env).Replace(deployment) }
		createWork(ctx, "misfit", nil, with(`[{name: A, value: "1"}]`))
		Eventually(reported(ctx, "misfit")).Should(beDone())
		changeWork(ctx, "misfit", with(`{A: "1"}`))
		Eventually(reported(ctx, "misfit")).Should(beRefused())
		Expect(message(ctx, "misfit", 0, "Applied")).To(And(ContainSubstring("spec.template.spec.containers.env"), Not(ContainSubstring("map["))))
	})

	It("names the key of two items, which server-side apply refuses, and what to do", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "twice", &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ServerSideApply}, `{apiVersion: apps/v1, kind: Deployment,
			metadata: {namespace: `+ns+`, name: d}, spec: {replicas: 0, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}},
			spec: {containers: [{name: c, image: "c:1", env: [{name: A, value: "1"}, {name: A, value: "2"}]}]}}}}`)
		Eventually(reported(ctx, "twice")).Should(beRefused())
		Expect(message(ctx, "twice", 0, placementv1beta1.ConditionApplied)).To(And(
			ContainSubstring(`.env: duplicate entries for key [name="A"]`), HaveSuffix("Keep one of them in the manifest, or choose type ClientSideApply")))
		updateWork(ctx, "twice", func(work *placementv1beta1.Work) { work.Spec.ApplyStrategy.Type = placementv1beta1.ClientSideApply })
		Eventually(reported(ctx, "twice")).Should(beDone())
	})

	It("names the version in which the member serves a kind", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "old-version", nil, `{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, metadata: {namespace: `+ns+`, name: a}, spec: {minAvailable: 1}}`)
		Eventually(reportedOf(ctx, "old-version")).Should(HaveExactElements(refused("DecodingErred")))
		Expect(message(ctx, "old-version", 0, "Applied")).To(ContainSubstring("but in policy/v1: write the manifest in that version"))
	})

	It("applies a custom resource once its kind is installed", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "unknown-kind", nil,
			`{apiVersion: spec.example.com/v1, kind: Widget, metadata: {namespace: `+ns+`, name: a}, spec: {size: 1, parts: [{name: x}]}}`)
		Eventually(reportedOf(ctx, "unknown-kind")).Should(HaveExactElements(refused("DecodingErred")))
		Expect(message(ctx, "unknown-kind", 0, "Applied")).To(ContainSubstring("no kind Widget in spec.example.com/v1"))

		DeferCleanup(func(ctx SpecContext) {
			collect(ctx, "unknown-kind", "spec.example.com/v1", "Widget", ns, "a")
		})
		createWork(ctx, "kind", nil, widgets)
		untracked := outcome{Applied: "True/AllManifestsApplied", Available: "True/WorkNotTrackable"}
		Eventually(reported(ctx, "unknown-kind")).Should(Equal(untracked))

		By("replacing its lists")
		changeWork(ctx, "unknown-kind",
			`{apiVersion: spec.example.com/v1, kind: Widget, metadata: {namespace: `+ns+`, name: a}, spec: {parts: [{name: other}]}}`)
		Eventually(func(g Gomega) {
			widget, err := expect.Found(ctx, memberClient, "spec.example.com/v1", "Widget", ns, "a")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(widget.Object["spec"]).To(Equal(map[string]any{"parts": []any{map[string]any{"name": "other"}}}))
			g.Expect(widget.GetOwnerReferences()).To(HaveLen(1))
		}).Should(Succeed())

		By("noticing that the kind is removed and installed again")
		changeWork(ctx, "kind", build.ConfigMapText(ns, "instead", "x", "1"))
		Eventually(expect.Data(ctx, memberClient, ns, "instead")).Should(HaveKey("x"))
		kept := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets.spec.example.com"}}
		Expect(memberClient.Delete(ctx, kept)).To(Succeed(), "the agent keeps the kind because of an object of another Work")
		Eventually(reported(ctx, "unknown-kind")).Should(beRefused())
		createWork(ctx, "kind-again", nil, widgets)
		Eventually(reported(ctx, "unknown-kind")).Should(Equal(untracked))
	})
})

var _ = Describe("Availability", func() {
	It("follows the availability of a Deployment in both directions", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		waiting := `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: ` + ns + `, name: web}, spec: {replicas: 1,
			selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}},
			spec: {nodeSelector: {no: "node"}, containers: [{name: main, image: "example.com/main:1"}]}}}}`
		createWork(ctx, "available", nil, waiting, build.ConfigMapText(ns, "a"))
		notYet := outcome{Applied: "True/AllManifestsApplied", Available: "False/SomeManifestsAreNotAvailable"}
		Eventually(reported(ctx, "available")).Should(Equal(notYet))
		Expect(reportedOf(ctx, "available")(Default)[0].Available).To(Equal("False/ManifestNotAvailableYet"))
		By("reporting the cause after a while")
		Eventually(func() string { return message(ctx, "available", 0, placementv1beta1.ConditionAvailable) }).WithTimeout(time.Minute).Should(
			MatchRegexp(`^Not all replicas are available yet\. Pod web-[a-z0-9]+-[a-z0-9]+: Unschedulable: .*didn't match Pod's node affinity`))

		changeWork(ctx, "available", strings.Replace(waiting, `nodeSelector: {no: "node"}, `, "", 1), build.ConfigMapText(ns, "a"))
		Eventually(reported(ctx, "available")).Should(beDone())
		deployed := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}}
		Expect(memberClient.Get(ctx, client.ObjectKeyFromObject(deployed), deployed)).To(Succeed())
		Expect(deployed.Status.AvailableReplicas).To(BeEquivalentTo(1))
		observed := getWork(ctx, "available").Status.ManifestConditions[0].Conditions
		Expect(observed).To(HaveEach(HaveField("ObservedGeneration", deployed.Generation)))

		changeWork(ctx, "available", waiting, build.ConfigMapText(ns, "a"))
		Eventually(reported(ctx, "available")).Should(Equal(notYet))
	})
})

var _ = Describe("A Deployment whose Pods exceed a quota", func() {
	It("reports the quota as the cause", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		none := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "none"}}
		none.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
		Expect(memberClient.Create(ctx, none)).To(Succeed())
		createWork(ctx, "no-pods", nil, `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: `+ns+`, name: web}, spec: {replicas: 1,
			selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: "example.com/main:1"}]}}}}`)
		Eventually(reported(ctx, "no-pods")).Should(Equal(outcome{Applied: "True/AllManifestsApplied", Available: "False/SomeManifestsAreNotAvailable"}))
		told := func() string { return message(ctx, "no-pods", 0, placementv1beta1.ConditionAvailable) }
		Eventually(told).WithTimeout(time.Minute).Should(MatchRegexp(`^Not all replicas run the latest template yet\. FailedCreate: .*exceeded quota: none`))
	})
})

// widgets returns a CustomResourceDefinition.
const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.spec.example.com}
spec:
  group: spec.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
`
