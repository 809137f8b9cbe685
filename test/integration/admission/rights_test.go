// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/serviceaccount/hub/argocd"
	"fleetgate.io/fleetgate/pkg/webhook/policies"
)

var _ = Describe("The gateway's own account", func() {
	DescribeTable("cannot reach workloads of the hub, or objects of kinds that its role does not name",
		func(ctx SpecContext, attributes authorizationv1.ResourceAttributes) {
			clientset, err := kubernetes.NewForConfig(gateway.config)
			Expect(err).NotTo(HaveOccurred())
			review, err := clientset.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes},
			}, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(review.Status.Allowed).To(BeFalse(), review.Status.Reason)
		},
		Entry("the kubelet through nodes/proxy", authorizationv1.ResourceAttributes{Verb: "get", Resource: "nodes", Subresource: "proxy", Name: "n"}),
		Entry("the application behind a Service", authorizationv1.ResourceAttributes{Verb: "get", Resource: "services", Subresource: "proxy", Namespace: "default", Name: "s"}),
		Entry("a Pod's port", authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Subresource: "proxy", Namespace: "default", Name: "p"}),
		Entry("a command in a Pod", authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Subresource: "exec", Namespace: "default", Name: "p"}),
		Entry("a command in a Pod, with create", authorizationv1.ResourceAttributes{Verb: "create", Resource: "pods", Subresource: "exec", Namespace: "default", Name: "p"}),
		Entry("a running process in a Pod", authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Subresource: "attach", Namespace: "default", Name: "p"}),
		Entry("a tunnel into a Pod", authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Subresource: "portforward", Namespace: "default", Name: "p"}),
		Entry("a Pod's log", authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Subresource: "log", Namespace: "default", Name: "p"}),
		Entry("one object of another kind", authorizationv1.ResourceAttributes{Verb: "get", Group: "apps", Resource: "deployments", Namespace: "default", Name: "d"}),
		Entry("a subresource of a kind that is installed later", authorizationv1.ResourceAttributes{Verb: "get", Group: "example.org", Resource: "widgets", Subresource: "console", Namespace: "default", Name: "w"}),
		Entry("everything", authorizationv1.ResourceAttributes{Verb: "get", Group: "*", Resource: "*"}),
	)

	It("cannot create policies and webhooks, or change those of others", func(ctx SpecContext) {
		fail, none := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone
		rules := []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create}, Rule: admissionregistrationv1.Rule{
			APIGroups: []string{"example.org"}, APIVersions: []string{"v1"}, Resources: []string{"nothings"}}}}
		meta := metav1.ObjectMeta{Name: "of-somebody-else"}
		webhook := admissionregistrationv1.ValidatingWebhook{Name: "a.example.org", Rules: rules, FailurePolicy: &fail, SideEffects: &none,
			AdmissionReviewVersions: []string{"v1"}, ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1/")}}
		policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy:    &fail,
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: rules[0]}}},
			Validations:      []admissionregistrationv1.Validation{{Expression: "true"}},
		}}
		for _, object := range []client.Object{
			&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionregistrationv1.ValidatingWebhook{webhook}},
			&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionregistrationv1.MutatingWebhook{{Name: webhook.Name, Rules: rules,
				FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"}, ClientConfig: webhook.ClientConfig}}},
			policy,
			&admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: meta.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}}},
		} {
			as := gateway.client
			Expect(as.Create(ctx, object.DeepCopyObject().(client.Object), client.DryRunAll)).To(Satisfy(apierrors.IsForbidden), "%T", object)
			Expect(masters.Create(ctx, object)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(masters.Delete(ctx, object)).To(Succeed()) })
			label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))
			Expect(as.Patch(ctx, object.DeepCopyObject().(client.Object), label)).To(Satisfy(apierrors.IsForbidden), "%T", object)
			Expect(as.Update(ctx, object.DeepCopyObject().(client.Object))).To(Satisfy(apierrors.IsForbidden), "%T", object)
			Expect(as.Delete(ctx, object.DeepCopyObject().(client.Object))).To(Satisfy(apierrors.IsForbidden), "%T", object)
		}
	})

	It("is bound by the chart's policy after it deleted its own", Serial, func(ctx SpecContext) {
		objects := policies.Gateway(policies.Parameters{GatewayUser: gatewayUser, GatewayNamespace: clusterv1beta1.SystemNamespace,
			ArgoCD: types.NamespacedName{Namespace: "argocd", Name: argocd.Account}})
		for _, object := range objects {
			theirs := object.DeepCopyObject().(client.Object)
			theirs.SetName("fleetgate.fleet-system.gateway") // as the chart names it
			if binding, ok := theirs.(*admissionregistrationv1.ValidatingAdmissionPolicyBinding); ok {
				binding.Spec.PolicyName = theirs.GetName()
			}
			Expect(masters.Create(ctx, theirs)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(masters.Delete(ctx, theirs)).To(Succeed()) })
			Expect(gateway.client.Delete(ctx, theirs.DeepCopyObject().(client.Object))).To(Satisfy(apierrors.IsForbidden))
			Expect(gateway.client.Delete(ctx, object)).To(Succeed(), "deleting its own policy")
		}
		DeferCleanup(func(ctx SpecContext) { Expect(gateway.installer.InstallServing(ctx)).To(Succeed()) })
		namespace := newNamespace(ctx)
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "admin"}}
		Expect(masters.Create(ctx, account)).To(Succeed())
		Eventually(func() error {
			return gateway.client.SubResource("token").Create(ctx, account, &authenticationv1.TokenRequest{})
		}).Should(MatchError(And(ContainSubstring("'fleetgate.fleet-system.gateway'"), ContainSubstring("requests tokens of members' accounts"))))
		Consistently(func() error {
			return gateway.client.SubResource("token").Create(ctx, account, &authenticationv1.TokenRequest{})
		}, "1s", "100ms").Should(MatchError(ContainSubstring("requests tokens of members' accounts")))
	})

	It("reads any object by a list with its name", func(ctx SpecContext) {
		clientset, err := kubernetes.NewForConfig(gateway.config)
		Expect(err).NotTo(HaveOccurred())
		namespace := newNamespace(ctx)
		Expect(masters.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"}})).To(Succeed())
		_, err = clientset.CoreV1().ConfigMaps(namespace).Get(ctx, "one", metav1.GetOptions{})
		Expect(err).To(Satisfy(apierrors.IsForbidden))
		list, err := clientset.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=one"})
		Expect(err).NotTo(HaveOccurred())
		Expect(list.Items).To(ConsistOf(HaveField("Name", "one")))
	})
})
