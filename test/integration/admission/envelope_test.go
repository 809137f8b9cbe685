// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

func entries(objects ...map[string]any) map[string]placementv1beta1.EnvelopedObject {
	GinkgoHelper()
	data := map[string]placementv1beta1.EnvelopedObject{}
	for i, object := range objects {
		raw, err := json.Marshal(object)
		Expect(err).NotTo(HaveOccurred())
		data[string(rune('a'+i))] = placementv1beta1.EnvelopedObject{RawExtension: runtime.RawExtension{Raw: raw}}
	}
	return data
}

func envelope(objects ...map[string]any) *placementv1beta1.ResourceEnvelope {
	return &placementv1beta1.ResourceEnvelope{ObjectMeta: metav1.ObjectMeta{GenerateName: "envelope-", Namespace: "default"}, Data: entries(objects...)}
}

func clusterEnvelope(objects ...map[string]any) *placementv1beta1.ClusterResourceEnvelope {
	return &placementv1beta1.ClusterResourceEnvelope{ObjectMeta: metav1.ObjectMeta{GenerateName: "envelope-"}, Data: entries(objects...)}
}

// enveloped returns an object as a user writes it into an envelope.
func enveloped(apiVersion, kind, namespace, name string, fields map[string]any) map[string]any {
	metadata := map[string]any{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	object := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}
	for key, value := range fields {
		object[key] = value
	}
	return object
}

var _ = Describe("An envelope does not bypass RBAC", func() {
	const rbac = "rbac.authorization.k8s.io/v1"
	var (
		author client.Client
		name   string
		rights int
	)

	// may grants the author a right on the hub and waits until the API server enforces it.
	may := func(ctx context.Context, group, resource string, verbs ...string) {
		GinkgoHelper()
		rights++
		bindClusterRole(ctx, fmt.Sprintf("%s-%d", name, rights), name, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs})
	}

	BeforeEach(func(ctx SpecContext) {
		name = "author-" + newNamespace(ctx)
		config, err := hub.ConfigFor(name)
		Expect(err).NotTo(HaveOccurred())
		author = clientFor(config)
		may(ctx, placementv1beta1.GroupName, "*", "create", "update")
		Eventually(func() error {
			return author.Create(ctx, envelope(enveloped("v1", "ConfigMap", "default", "x", nil)), client.DryRunAll)
		}).Should(beInvalid("data[a]", "cannot create or update configmaps"))
	})

	It("can contain what its author can create and update in its namespace", func(ctx SpecContext) {
		written := envelope(enveloped("v1", "ConfigMap", "default", "x", nil), enveloped("v1", "Secret", "default", "y", nil))
		Expect(author.Create(ctx, written)).To(beInvalid(
			"data[a]", `cannot create or update configmaps "x" in namespace "default"`, "data[b]", `cannot create or update secrets "y" in namespace "default"`))
		may(ctx, "", "configmaps", "create")
		Eventually(func() error { return author.Create(ctx, written) }).Should(beInvalid(
			"data[a]", `cannot update configmaps "x"`, "data[b]", `cannot create or update secrets "y"`), "agents overwrite a ConfigMap that a member has")
		may(ctx, "", "configmaps", "update")
		Eventually(func() error { return author.Create(ctx, written) }).Should(beInvalid("data[b]", `cannot create or update secrets "y"`))
		may(ctx, "", "secrets", "create", "update")
		Eventually(func() error { return author.Create(ctx, written) }).Should(Succeed())
	})

	It("can contain roles and bindings when its author can escalate and bind", func(ctx SpecContext) {
		written := clusterEnvelope(
			enveloped(rbac, "ClusterRole", "", "all", map[string]any{"rules": []any{map[string]any{"apiGroups": []any{"*"}, "resources": []any{"*"}, "verbs": []any{"*"}}}}),
			enveloped(rbac, "ClusterRoleBinding", "", "mine", map[string]any{"roleRef": map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}}),
		)
		may(ctx, rbacv1.GroupName, "clusterroles", "create", "update")
		may(ctx, rbacv1.GroupName, "clusterrolebindings", "create", "update")
		Eventually(func() error { return author.Create(ctx, written) }).Should(beInvalid(
			"data[a]", `cannot escalate clusterroles.rbac.authorization.k8s.io "all"`,
			"data[b].roleRef", `cannot bind clusterroles.rbac.authorization.k8s.io "cluster-admin"`))
		may(ctx, rbacv1.GroupName, "clusterroles", "escalate", "bind")
		Eventually(func() error { return author.Create(ctx, written) }).Should(Succeed())
	})

	It("can contain kinds unknown to the hub when its author can write the whole group", func(ctx SpecContext) {
		written := clusterEnvelope(enveloped("example.org/v1", "Widget", "", "x", nil))
		Expect(author.Create(ctx, written)).To(beInvalid("data[a]", "cannot create or update *.example.org"))
		may(ctx, "example.org", "*", "create", "update")
		Eventually(func() error { return author.Create(ctx, written) }).Should(Succeed())
	})

	It("is checked for a known kind in a version that the hub does not serve", func(ctx SpecContext) {
		may(ctx, rbacv1.GroupName, "*", "create", "update")
		Eventually(func() error {
			return author.Create(ctx, clusterEnvelope(enveloped("rbac.authorization.k8s.io/v1beta1", "ClusterRole", "", "x", nil)))
		}).Should(beInvalid("data[a]", "cannot escalate"))
	})

	It("can be labelled, but not changed, by a user who cannot create its contents", func(ctx SpecContext) {
		written := envelope(enveloped("v1", "ConfigMap", "default", "x", nil))
		Expect(masters.Create(ctx, written)).To(Succeed())
		Expect(change(ctx, author, written, func(e *placementv1beta1.ResourceEnvelope) { e.Labels = map[string]string{"team": "a"} })).To(Succeed())
		Expect(change(ctx, author, written, func(e *placementv1beta1.ResourceEnvelope) {
			e.Data = entries(enveloped("v1", "ConfigMap", "default", "x", map[string]any{"data": map[string]any{"a": "b"}}))
		})).To(beInvalid("data[a]", "cannot create or update configmaps"))
	})

	It("cannot contain objects that are reserved for the fleet on members", func(ctx SpecContext) {
		may(ctx, "", "*", "create", "update")
		const accounts = "open-cluster-management-managed-serviceaccount"
		written := envelope(enveloped("v1", "Secret", "default", "t", map[string]any{
			"type": "kubernetes.io/service-account-token", "metadata": map[string]any{
				"name": "t", "namespace": "default", "annotations": map[string]any{"kubernetes.io/service-account.name": "cluster-gateway"},
			},
		}))
		Eventually(func() error { return author.Create(ctx, written) }).Should(beInvalid("data[a]", "such a token never expires"))
		Expect(author.Create(ctx, clusterEnvelope(enveloped("v1", "Namespace", "", accounts, nil)))).To(beInvalid("data[a]", "the fleet keeps its accounts"))
		request := enveloped("certificates.k8s.io/v1", "CertificateSigningRequest", "", "node", map[string]any{"spec": map[string]any{"signerName": "kubernetes.io/kube-apiserver-client-kubelet"}})
		Expect(author.Create(ctx, clusterEnvelope(request))).To(beInvalid("data[a]", "a request of the agent"))
		within := envelope(enveloped("v1", "ServiceAccount", accounts, "x", nil))
		within.Namespace = accounts
		Expect(client.IgnoreAlreadyExists(masters.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: accounts}}))).To(Succeed())
		Expect(author.Create(ctx, within)).To(beInvalid("data[a]", "the fleet keeps its accounts"))
	})

	DescribeTable("is accepted with a warning, as KubeFleet accepts it, when an object cannot be placed, and rejected with the same text when the hub is strict", Serial,
		func(ctx SpecContext, written client.Object, field, text string) {
			for _, right := range []string{"configmaps", "namespaces"} {
				may(ctx, "", right, "create", "update")
			}
			warned := &warnings{}
			config, err := hub.ConfigFor(name)
			Expect(err).NotTo(HaveOccurred())
			config.WarningHandlerWithContext = warned
			warning := clientFor(config)
			create := func() error { return warning.Create(ctx, written.DeepCopyObject().(client.Object)) }
			Eventually(create).Should(Succeed())
			Expect(warned.texts()).To(ContainElement(And(ContainSubstring(field), ContainSubstring(text))))

			gateway.stop()
			gateway.strictEnvelopes = true
			gateway.start()
			DeferCleanup(func() {
				gateway.stop()
				gateway.strictEnvelopes = false
				gateway.start()
			})
			Eventually(create).Should(beInvalid(field, text))
		},
		Entry("a cluster-scoped object in a ResourceEnvelope", envelope(enveloped("v1", "Namespace", "", "x", nil)), "data[a].metadata.namespace", "a ResourceEnvelope holds objects of its own namespace"),
		Entry("an object of another namespace", envelope(enveloped("v1", "ConfigMap", "other", "x", nil)), "data[a].metadata.namespace", "a ResourceEnvelope holds objects of its own namespace"),
		Entry("a namespaced object in a ClusterResourceEnvelope", clusterEnvelope(enveloped("v1", "ConfigMap", "default", "x", nil)), "data[a].metadata.namespace", "a ClusterResourceEnvelope holds cluster-scoped objects"),
		Entry("an object with generateName", envelope(map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"generateName": "x-", "namespace": "default"},
		}), "data[a].metadata.name", "generateName is not enough"),
	)

	It("is rejected when its author cannot create an object, also one that only causes a warning", func(ctx SpecContext) {
		Expect(author.Create(ctx, envelope(enveloped("v1", "ConfigMap", "other", "x", nil)))).To(beInvalid("data[a]", `cannot create or update configmaps "x" in namespace "other"`))
		Expect(author.Create(ctx, envelope(enveloped("v1", "Namespace", "", "x", nil)))).To(beInvalid("data[a]", `cannot create or update namespaces "x"`))
	})

	It("is rejected with all entries that are no object or have the wrong scope", func(ctx SpecContext) {
		Expect(masters.Create(ctx, envelope(
			enveloped("v1", "ConfigMap", "default", "x", nil), enveloped("v1", "Namespace", "default", "y", nil), map[string]any{"kind": "Nothing"},
			map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "default", "name": "z", "annotations": map[string]any{"on": true}}}))).To(beInvalid(
			"data[b]", "is cluster-scoped on the hub", "data[c]", "is no Kubernetes object", "data[d].metadata", "cannot unmarshal bool"))
		Expect(masters.Create(ctx, clusterEnvelope(enveloped("v1", "ConfigMap", "", "x", nil)))).To(beInvalid("data[a]", "is namespaced on the hub"))
	})
})

// warnings collects the Warning headers of responses.
type warnings struct {
	mu   sync.Mutex
	said []string
}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, text)
}

func (w *warnings) texts() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.said)
}
