// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

var _ = Describe("The gateway's own account", func() {
	DescribeTable("reaches nothing that runs on the hub, nor objects of kinds that its role does not name",
		func(ctx SpecContext, attributes authorizationv1.ResourceAttributes) {
			clientset, err := kubernetes.NewForConfig(gateway.config)
			Expect(err).NotTo(HaveOccurred())
			review, err := clientset.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes},
			}, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(review.Status.Allowed).To(BeFalse(), review.Status.Reason)
		},
		Entry("a kubelet, and what it runs", authorizationv1.ResourceAttributes{Verb: "get", Resource: "nodes", Subresource: "proxy", Name: "n"}),
		Entry("the application behind a Service", authorizationv1.ResourceAttributes{Verb: "get", Resource: "services", Subresource: "proxy", Namespace: "default", Name: "s"}),
		Entry("a Pod's port", authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Subresource: "proxy", Namespace: "default", Name: "p"}),
		Entry("a command in a Pod", authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Subresource: "exec", Namespace: "default", Name: "p"}),
		Entry("the same, as it is asked for now", authorizationv1.ResourceAttributes{Verb: "create", Resource: "pods", Subresource: "exec", Namespace: "default", Name: "p"}),
		Entry("what a Pod runs already", authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Subresource: "attach", Namespace: "default", Name: "p"}),
		Entry("a tunnel into a Pod", authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Subresource: "portforward", Namespace: "default", Name: "p"}),
		Entry("a Pod's log", authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Subresource: "log", Namespace: "default", Name: "p"}),
		Entry("one object of another kind", authorizationv1.ResourceAttributes{Verb: "get", Group: "apps", Resource: "deployments", Namespace: "default", Name: "d"}),
		Entry("a subresource of a kind that comes", authorizationv1.ResourceAttributes{Verb: "get", Group: "example.org", Resource: "widgets", Subresource: "console", Namespace: "default", Name: "w"}),
		Entry("everything", authorizationv1.ResourceAttributes{Verb: "get", Group: "*", Resource: "*"}),
	)

	It("reads any object all the same, by its name in a list", func(ctx SpecContext) {
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
