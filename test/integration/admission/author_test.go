// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/webhook"
	"fleetgate.io/fleetgate/pkg/webhook/policies"
)

const answer = placementv1beta1.AuthorMayAnnotation

// tenant is a user with its own namespace and, at first, no rights in it.
type tenant struct {
	client.Client
	name, namespace string
	rights          int
}

func newTenant(ctx context.Context) *tenant {
	GinkgoHelper()
	namespace := newNamespace(ctx)
	config, err := hub.ConfigFor("tenant-" + namespace)
	Expect(err).NotTo(HaveOccurred())
	return &tenant{Client: clientFor(config), name: "tenant-" + namespace, namespace: namespace}
}

// may grants the tenant a right in its namespace.
func (t *tenant) may(ctx context.Context, group, resource string, verbs ...string) {
	GinkgoHelper()
	t.rights++
	meta := metav1.ObjectMeta{Namespace: t.namespace, Name: fmt.Sprintf("right-%d", t.rights)}
	rule := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	Expect(masters.Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}})).To(Succeed())
	Expect(masters.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: t.name}},
	})).To(Succeed())
}

// everywhere grants the tenant a right in the whole cluster.
func (t *tenant) everywhere(ctx context.Context, group, resource string, verbs ...string) {
	GinkgoHelper()
	t.rights++
	bindClusterRole(ctx, fmt.Sprintf("%s-%d", t.name, t.rights), t.name, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs})
}

func (t *tenant) has(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		object.SetNamespace(t.namespace)
		Expect(masters.Create(ctx, object)).To(Succeed())
	}
}

func secretNamed(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{"k": []byte("v")}}
}

func configMapNamed(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// placing returns a ResourcePlacement in the tenant's namespace.
func (t *tenant) placing(spec placementv1beta1.PlacementSpec) *placementv1beta1.ResourcePlacement {
	placement := resourcePlacement(spec)
	placement.Namespace = t.namespace
	return placement
}

// says matches a placement whose annotation records the tenant as author with these rights per
// namespace.
func (t *tenant) says(scopes string) OmegaMatcher {
	return WithTransform(func(o client.Object) string { return o.GetAnnotations()[answer] }, Equal(fmt.Sprintf(`{"author":%q,"may":{%s}}`, t.name, scopes)))
}

var _ = Describe("A placement does not bypass RBAC", func() {
	var author *tenant
	BeforeEach(func(ctx SpecContext) {
		author = newTenant(ctx)
		author.may(ctx, placementv1beta1.GroupName, "resourceplacements", "create", "update", "patch", "get")
		author.has(ctx, secretNamed("token"), configMapNamed("settings"))
		Eventually(func() error {
			return author.Create(ctx, author.placing(selecting("v1", "ConfigMap", "settings")), client.DryRunAll)
		}).
			Should(beInvalid("spec.resourceSelectors[0]", "cannot get or place configmaps"))
	})

	It("is rejected when its author cannot read the selected Secret", func(ctx SpecContext) {
		Expect(author.Create(ctx, author.placing(selecting("v1", "Secret", "token")))).To(beInvalid("spec.resourceSelectors[0]", fmt.Sprintf(
			`user %q cannot get or place secrets "token" in namespace %q on the hub, and a placement does not bypass that. `+
				`Either right will do: one that reads it, or the verb place, with which it is placed unread`, author.name, author.namespace)))
		Expect(author.Create(ctx, author.placing(selecting("v1", "Secret", "")))).To(beInvalid("spec.resourceSelectors[0]", "cannot list or place secrets in namespace"))

		By("granting the verb place")
		author.may(ctx, "", "secrets", "place")
		placed := author.placing(selecting("v1", "Secret", "token"))
		Eventually(func() error { return author.Create(ctx, placed) }).Should(Succeed())
		Expect(placed).To(author.says(fmt.Sprintf(`%q:["secrets/token"]`, author.namespace)))
	})

	It("requires list for a label selector and get for a name", func(ctx SpecContext) {
		author.may(ctx, "", "secrets", "get")
		Eventually(func() error { return author.Create(ctx, author.placing(selecting("v1", "Secret", "token"))) }).Should(Succeed())
		labelled := selecting("v1", "Secret", "")
		labelled.ResourceSelectors[0].LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		Expect(author.Create(ctx, author.placing(labelled))).To(beInvalid("spec.resourceSelectors[0]", "cannot list or place secrets"))
		author.may(ctx, "", "secrets", "list")
		all := author.placing(labelled)
		Eventually(func() error { return author.Create(ctx, all) }).Should(Succeed())
		Expect(all).To(author.says(fmt.Sprintf(`%q:["secrets"]`, author.namespace)))
	})

	It("cannot be retargeted by a user who can update it but cannot read the selected resources", func(ctx SpecContext) {
		others := author.placing(selecting("v1", "Secret", "token"))
		Expect(masters.Create(ctx, others)).To(Succeed())
		before := others.Annotations[answer]
		Expect(before).NotTo(BeEmpty())

		type placement = placementv1beta1.ResourcePlacement
		Expect(change(ctx, author, others, func(p *placement) {
			p.Spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickAll, Tolerations: []placementv1beta1.Toleration{{Operator: corev1.TolerationOpExists}}}
		})).To(beInvalid("spec.resourceSelectors[0]", `cannot get or place secrets "token"`))
		Expect(change(ctx, author, others, func(p *placement) { p.Spec.Strategy.Type = placementv1beta1.ExternalStrategy })).To(HaveOccurred())
		Expect(change(ctx, author, others, func(p *placement) { p.Spec.ResourceSelectors[0].Name = "other" })).
			To(beInvalid("spec.resourceSelectors[0]", `cannot get or place secrets "other"`))
		Expect(change(ctx, author, others, func(p *placement) { p.Annotations[answer] = "ask" })).
			To(beInvalid("spec.resourceSelectors[0]", `cannot get or place secrets "token"`))

		By("changing labels, and removing or emptying the annotation")
		for _, alter := range []func(*placement){
			func(p *placement) { p.Labels = map[string]string{"team": "a"} },
			func(p *placement) { delete(p.Annotations, answer) },
			func(p *placement) { p.Annotations[answer] = "" },
		} {
			Expect(change(ctx, author, others, alter)).To(Succeed())
			Expect(masters.Get(ctx, client.ObjectKeyFromObject(others), others)).To(Succeed())
			Expect(others.Annotations).To(HaveKeyWithValue(answer, before))
		}
	})

	It("records the author's rights and overwrites what the author wrote into the annotation", func(ctx SpecContext) {
		author.may(ctx, "", "configmaps", "get")
		forged := author.placing(selecting("v1", "ConfigMap", "settings"))
		forged.Annotations = map[string]string{answer: `{"author":"admin","may":{"":["*"]}}`}
		Eventually(func() error { return author.Create(ctx, forged) }).Should(Succeed())
		Expect(forged).To(author.says(fmt.Sprintf(`%q:["configmaps/settings"]`, author.namespace)))
		Expect(change(ctx, author, forged, func(p *placementv1beta1.ResourcePlacement) {
			p.Annotations[answer] = `{"author":"admin","may":{"":["*"]}}`
		})).To(Succeed())
		Expect(masters.Get(ctx, client.ObjectKeyFromObject(forged), forged)).To(Succeed())
		Expect(forged).To(author.says(fmt.Sprintf(`%q:["configmaps/settings"]`, author.namespace)))
	})

	It("is rejected when it mirrors status to an object whose status its author cannot update", func(ctx SpecContext) {
		author.may(ctx, "", "services", "get")
		author.has(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
		plain := author.placing(selecting("v1", "Service", "web"))
		Eventually(func() error { return author.Create(ctx, plain) }).Should(Succeed())
		mirrored := author.placing(selecting("v1", "Service", "web"))
		mirrored.Spec.Strategy.ReportBackStrategy = &placementv1beta1.ReportBackStrategy{
			Type: placementv1beta1.ReportBackMirror, Destination: placementv1beta1.ReportBackToOriginalResource}
		refused := beInvalid("spec.strategy.reportBackStrategy", fmt.Sprintf(
			`user %q cannot update services/status "web" in namespace %q on the hub, and a placement does not bypass that`, author.name, author.namespace))
		Expect(author.Create(ctx, mirrored)).To(refused)
		Expect(change(ctx, author, plain, func(p *placementv1beta1.ResourcePlacement) {
			p.Spec.Strategy.ReportBackStrategy = mirrored.Spec.Strategy.ReportBackStrategy
		})).To(refused)
		author.may(ctx, "", "services/status", "update")
		Eventually(func() error { return author.Create(ctx, mirrored) }).Should(Succeed())
		administered := mirrored.DeepCopy()
		administered.ObjectMeta = metav1.ObjectMeta{Namespace: author.namespace, GenerateName: "placement-"}
		Expect(masters.Create(ctx, administered)).To(Succeed())
	})

	It("records all rights when its author is an administrator", func(ctx SpecContext) {
		placed, cluster := author.placing(selecting("v1", "Secret", "token")), clusterPlacement(selecting("v1", "Namespace", author.namespace))
		Expect(masters.Create(ctx, placed)).To(Succeed())
		Expect(masters.Create(ctx, cluster)).To(Succeed())
		Expect(placed.Annotations[answer]).To(HaveSuffix(fmt.Sprintf(`"may":{%q:["*"]}}`, author.namespace)))
		Expect(cluster.Annotations[answer]).To(HaveSuffix(`"may":{"":["*"]}}`))
	})

	Describe("that selects a namespace with its contents", func() {
		placing := func() *placementv1beta1.ClusterResourcePlacement {
			return clusterPlacement(selecting("v1", "Namespace", author.namespace))
		}
		BeforeEach(func(ctx SpecContext) {
			author.everywhere(ctx, placementv1beta1.GroupName, "clusterresourceplacements", "create", "update")
			Eventually(func() error { return author.Create(ctx, placing(), client.DryRunAll) }).Should(beInvalid(
				"spec.resourceSelectors[0]", fmt.Sprintf("cannot get or place namespaces %q", author.namespace),
				"spec.resourceSelectors[0]", "configmaps"))
		})

		It("checks each kind in the namespace and records the allowed ones", func(ctx SpecContext) {
			author.everywhere(ctx, "", "namespaces", "get")
			author.may(ctx, "", "configmaps", "get")
			author.may(ctx, rbacv1.GroupName, "*", "place")
			Eventually(func() error { return author.Create(ctx, placing(), client.DryRunAll) }).Should(beInvalid(
				"spec.resourceSelectors[0]", fmt.Sprintf("cannot get or place secrets in namespace %q, which it holds", author.namespace)))

			By("deleting the Secret")
			secret := secretNamed("token")
			secret.Namespace = author.namespace
			Expect(masters.Delete(ctx, secret)).To(Succeed())
			placed := placing()
			Expect(author.Create(ctx, placed)).To(Succeed())
			Expect(placed).To(author.says(fmt.Sprintf(`"":["namespaces/%[1]s"],%[1]q:["configmaps","rolebindings.rbac.authorization.k8s.io","roles.rbac.authorization.k8s.io"]`, author.namespace)))
		})

		It("checks a kind whose CRD was just installed", func(ctx SpecContext) {
			author.everywhere(ctx, "", "namespaces", "get")
			author.may(ctx, "", "configmaps", "get")
			author.may(ctx, "", "secrets", "get")
			author.may(ctx, rbacv1.GroupName, "*", "place")
			Eventually(func() error { return author.Create(ctx, placing(), client.DryRunAll) }).Should(Succeed())
			widget := installWidgets(ctx)
			author.has(ctx, widget)
			Eventually(func() error { return author.Create(ctx, placing(), client.DryRunAll) }).Should(beInvalid(
				"spec.resourceSelectors[0]", "cannot get or place widgets.author.example.org in namespace"))
		})

		It("accepts a right to all kinds in the namespace", func(ctx SpecContext) {
			author.everywhere(ctx, "", "namespaces", "place")
			author.may(ctx, "*", "*", "get")
			placed := placing()
			Eventually(func() error { return author.Create(ctx, placed) }).Should(Succeed())
			Expect(placed).To(author.says(fmt.Sprintf(`"":["namespaces/%[1]s"],%[1]q:["*"]`, author.namespace)))
		})

		It("requires cluster-wide rights when labels select the namespaces", func(ctx SpecContext) {
			author.everywhere(ctx, "", "namespaces", "list")
			author.may(ctx, "*", "*", "get")
			labelled := selecting("v1", "Namespace", "")
			labelled.ResourceSelectors[0].LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": author.namespace}}
			Eventually(func() error { return author.Create(ctx, clusterPlacement(labelled)) }).Should(beInvalid(
				"spec.resourceSelectors[0]", "cannot get or place everything (*) in all namespaces, any of which the selector can match"))
		})
	})

	It("stored before the author check can be labelled, and is checked when its spec changes", func(ctx SpecContext) {
		author.everywhere(ctx, placementv1beta1.GroupName, "clusterresourceplacements", "get", "update")
		relabel := func(p *unstructured.Unstructured) { p.SetLabels(map[string]string{"touched-by": author.name}) }
		Eventually(func() error { return change(ctx, author, leftovers.withoutPolicy, relabel) }).Should(Succeed())
		current := leftovers.withoutPolicy.DeepCopy()
		Expect(masters.Get(ctx, client.ObjectKeyFromObject(current), current)).To(Succeed())
		Expect(current.GetAnnotations()).NotTo(HaveKey(answer))
		Expect(change(ctx, author, leftovers.withoutPolicy, func(p *unstructured.Unstructured) {
			Expect(unstructured.SetNestedField(p.Object, int64(7), "spec", "revisionHistoryLimit")).To(Succeed())
		})).To(beInvalid("spec.resourceSelectors[0]", "cannot get or place namespaces"))
	})

	It("is rejected while no mutating webhook writes the annotation, whatever its author writes there", func(ctx SpecContext) {
		DeferCleanup(func(ctx SpecContext) {
			gateway.want(ctx)
			Expect(gateway.installer.InstallServing(ctx)).To(Succeed())
			Eventually(func(g Gomega) {
				placed := author.placing(selecting("v1", "ConfigMap", "settings"))
				g.Expect(masters.Create(ctx, placed, client.DryRunAll)).To(Succeed())
			}).Should(Succeed())
		})
		author.may(ctx, "", "configmaps", "get")
		Eventually(func() error {
			return author.Create(ctx, author.placing(selecting("v1", "ConfigMap", "settings")), client.DryRunAll)
		}).Should(Succeed())
		Expect(masters.Delete(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: policies.MutatingConfiguration}})).To(Succeed())
		Eventually(func() error {
			return author.Create(ctx, author.placing(selecting("v1", "ConfigMap", "settings")), client.DryRunAll)
		}).
			Should(And(Satisfy(apierrors.IsServiceUnavailable), MatchError(ContainSubstring("Try again"))))
		for _, forged := range []string{`{"author":"admin","may":{"":["*"]}}`, fmt.Sprintf(`{"author":%q,"may":{"":["*"]}}`, author.name)} {
			placed := author.placing(selecting("v1", "ConfigMap", "settings"))
			placed.Annotations = map[string]string{answer: forged}
			Expect(author.Create(ctx, placed)).To(HaveOccurred())
		}
	})

	It("keeps its annotation when a user with the verb bypass writes another", func(ctx SpecContext) {
		Expect(masters.Delete(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: policies.MutatingConfiguration}})).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			gateway.want(ctx)
			Expect(gateway.installer.InstallServing(ctx)).To(Succeed())
			Eventually(func() error {
				return masters.Create(ctx, author.placing(selecting("v1", "ConfigMap", "settings")), client.DryRunAll)
			}).Should(Succeed())
		})
		author.everywhere(ctx, webhook.BypassGroup, webhook.BypassWebhooks, webhook.BypassVerb)
		placed := author.placing(selecting("v1", "Secret", "token"))
		placed.Annotations = map[string]string{answer: fmt.Sprintf(`{"author":%q,"may":{}}`, author.name), webhook.AnnotationBypass: "the gateway is down"}
		Eventually(func() error { return author.Create(ctx, placed) }).Should(Succeed())
		Expect(change(ctx, author, placed, func(p *placementv1beta1.ResourcePlacement) { delete(p.Annotations, answer) })).
			To(MatchError(ContainSubstring("only the gateway writes it")))
		Expect(change(ctx, author, placed, func(p *placementv1beta1.ResourcePlacement) {
			p.Annotations[answer] = `{"author":"admin","may":{"":["*"]}}`
		})).To(MatchError(ContainSubstring("is about somebody else")))
	})
})

// installWidgets installs a CRD and returns an object of its kind.
func installWidgets(ctx context.Context) *unstructured.Unstructured {
	GinkgoHelper()
	const group = "author.example.org"
	definition := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Widget", Plural: "widgets"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)},
			}}},
		},
	}
	Expect(masters.Create(ctx, definition)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(masters.Delete(ctx, definition)).To(Succeed()) })
	widget := &unstructured.Unstructured{}
	widget.SetAPIVersion(group + "/v1")
	widget.SetKind("Widget")
	widget.SetName("one")
	Eventually(func() error {
		probe := widget.DeepCopy()
		probe.SetNamespace("default")
		return masters.Create(ctx, probe, client.DryRunAll)
	}).Should(Succeed())
	return widget
}

var _ = Describe("An override does not bypass RBAC", func() {
	var author *tenant
	const rbac = rbacv1.GroupName
	overriding := func(path, value string, selectors ...placementv1beta1.ResourceSelector) *placementv1beta1.ResourceOverride {
		override := &placementv1beta1.ResourceOverride{ObjectMeta: metav1.ObjectMeta{GenerateName: "override-", Namespace: author.namespace}}
		override.Spec.ResourceSelectors = selectors
		patch := patchOf(path)
		patch.Value.Raw = []byte(value)
		override.Spec.Policy = patching(patch)
		return override
	}
	deployment := placementv1beta1.ResourceSelector{Group: "apps", Version: "v1", Kind: "Deployment", Name: "web"}
	role := placementv1beta1.ResourceSelector{Group: rbac, Version: "v1", Kind: "Role", Name: "reader"}
	binding := placementv1beta1.ResourceSelector{Group: rbac, Version: "v1", Kind: "RoleBinding", Name: "readers"}

	BeforeEach(func(ctx SpecContext) {
		author = newTenant(ctx)
		author.may(ctx, placementv1beta1.GroupName, "resourceoverrides", "create", "update", "get")
		author.everywhere(ctx, placementv1beta1.GroupName, "clusterresourceoverrides", "create", "update", "get")
		Eventually(func() error {
			return author.Create(ctx, overriding("/data/a", `"b"`, placementv1beta1.ResourceSelector{Version: "v1", Kind: "ConfigMap", Name: "x"}), client.DryRunAll)
		}).
			Should(beInvalid("spec.resourceSelectors[0]", "cannot update configmaps"))
	})

	It("is rejected when its author cannot update the selected Deployment", func(ctx SpecContext) {
		written := overriding("/spec/template/spec/hostPID", `true`, deployment)
		Expect(author.Create(ctx, written)).To(beInvalid("spec.resourceSelectors[0]", fmt.Sprintf(
			`user %q cannot update deployments.apps "web" in namespace %q on the hub, and an override does not bypass that`, author.name, author.namespace)))
		author.may(ctx, "apps", "deployments", "update")
		Eventually(func() error { return author.Create(ctx, written) }).Should(Succeed())
		Expect(change(ctx, author, written, func(o *placementv1beta1.ResourceOverride) {
			o.Spec.ResourceSelectors = append(o.Spec.ResourceSelectors, role)
		})).
			To(beInvalid("spec.resourceSelectors[1]", `cannot update or escalate roles.rbac.authorization.k8s.io "reader"`))
	})

	It("cannot set roleRef to cluster-admin when its author cannot bind that role", func(ctx SpecContext) {
		written := overriding("/roleRef/name", `"cluster-admin"`, binding)
		author.may(ctx, rbac, "rolebindings", "update")
		Eventually(func() error { return author.Create(ctx, written) }).Should(beInvalid(
			"spec.resourceSelectors[0]", "cannot bind clusterroles.rbac.authorization.k8s.io", "spec.resourceSelectors[0]", "cannot bind roles.rbac.authorization.k8s.io"))
		author.may(ctx, rbac, "clusterroles", "bind")
		author.may(ctx, rbac, "roles", "bind")
		Eventually(func() error { return author.Create(ctx, written) }).Should(Succeed())

		By("writing a ClusterResourceOverride")
		cluster := clusterOverride("reader")
		cluster.Spec.ClusterResourceSelectors = append(cluster.Spec.ClusterResourceSelectors, placementv1beta1.ResourceSelectorTerm{Group: rbac, Version: "v1", Kind: "ClusterRoleBinding", Name: "readers"})
		Expect(author.Create(ctx, cluster)).To(beInvalid(
			"spec.clusterResourceSelectors[0]", `cannot update or escalate clusterroles.rbac.authorization.k8s.io "reader"`,
			"spec.clusterResourceSelectors[1]", `cannot update clusterrolebindings.rbac.authorization.k8s.io "readers"`,
			"spec.clusterResourceSelectors[1]", `cannot bind clusterroles.rbac.authorization.k8s.io`))
	})

	It("of a namespace with its contents requires the right to update those contents", func(ctx SpecContext) {
		written := clusterOverride("x")
		written.Spec.Policy = patching(patchOf("/metadata/labels/a"))
		written.Spec.ClusterResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: author.namespace}}
		author.everywhere(ctx, "", "namespaces", "update")
		Eventually(func() error { return author.Create(ctx, written) }).Should(beInvalid(
			"spec.clusterResourceSelectors[0]", fmt.Sprintf("cannot update everything (*) in namespace %q", author.namespace),
			"spec.clusterResourceSelectors[0]", "cannot escalate roles",
			"spec.clusterResourceSelectors[0]", "cannot bind clusterroles",
			"spec.clusterResourceSelectors[0]", "cannot bind roles"))
		author.may(ctx, "*", "*", "*")
		Eventually(func() error { return author.Create(ctx, written) }).Should(Succeed())
	})

	It("of chart values, or of an object that can become a chart, requires the verb render", func(ctx SpecContext) {
		settings := placementv1beta1.ResourceSelector{Version: "v1", Kind: "ConfigMap", Name: "settings"}
		author.may(ctx, "", "configmaps", "update")
		Eventually(func() error { return author.Create(ctx, overriding("/data/colour", `"blue"`, settings)) }).Should(Succeed())
		addon := placementv1beta1.ResourceSelector{Version: "v1", Kind: "ConfigMap", Name: "addon"}
		for _, path := range []string{"/data/values.yaml", "/data"} {
			Expect(author.Create(ctx, overriding(path, `"hostPID: true"`, addon))).To(beInvalid("spec.resourceSelectors[0]", fmt.Sprintf(
				`user %q cannot render configmaps "addon" in namespace %q on the hub, and an override does not bypass that`, author.name, author.namespace)))
		}
		author.may(ctx, "", "configmaps", "render")
		Eventually(func() error { return author.Create(ctx, overriding("/data/values.yaml", `"a: 1"`, addon)) }).Should(Succeed())
	})

	It("of a kind that the hub does not serve requires update on the whole group in all namespaces", func(ctx SpecContext) {
		written := overriding("/spec/a", `1`, placementv1beta1.ResourceSelector{Group: "unknown.example.org", Version: "v1", Kind: "Gadget", Name: "one"})
		Expect(author.Create(ctx, written)).To(beInvalid("spec.resourceSelectors[0]", "cannot update *.unknown.example.org on the hub"))
		author.everywhere(ctx, "unknown.example.org", "*", "update")
		Eventually(func() error { return author.Create(ctx, written) }).Should(Succeed())
	})

	It("can be labelled by users without these rights", func(ctx SpecContext) {
		written := overriding("/spec/template/spec/hostPID", `true`, deployment)
		Expect(masters.Create(ctx, written)).To(Succeed())
		Expect(change(ctx, author, written, func(o *placementv1beta1.ResourceOverride) { o.Labels = map[string]string{"team": "a"} })).To(Succeed())
		Expect(change(ctx, author, written, func(o *placementv1beta1.ResourceOverride) {
			o.Spec.Policy.OverrideRules[0].JSONPatchOverrides[0].Value.Raw = []byte("false")
		})).To(beInvalid("spec.resourceSelectors[0]", `cannot update deployments.apps "web"`))
	})
})
