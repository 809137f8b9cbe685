// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

var _ = Describe("A ConfigMap or Secret that describes a chart", func() {
	var (
		author    client.Client
		namespace string
		rights    int
	)

	may := func(ctx context.Context, resource string, verbs ...string) {
		GinkgoHelper()
		rights++
		bindClusterRole(ctx, fmt.Sprintf("chart-author-%s-%d", namespace, rights), "chart-author-"+namespace,
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, Verbs: verbs})
	}
	refused := func(resource string) OmegaMatcher {
		return MatchError(And(ContainSubstring("fleetgate-helm-charts"), ContainSubstring(
			fmt.Sprintf("chart-author-%s cannot render %s in namespace %s: with annotation fleetgate.io/helm-chart it is rendered as a chart", namespace, resource, namespace))))
	}
	annotated := func() metav1.ObjectMeta {
		return metav1.ObjectMeta{GenerateName: "chart-", Namespace: namespace, Annotations: map[string]string{placementv1beta1.HelmChartAnnotation: "a"}}
	}

	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		config, err := hub.ConfigFor("chart-author-" + namespace)
		Expect(err).NotTo(HaveOccurred())
		author = clientFor(config)
		may(ctx, "configmaps", "create", "update", "patch", "get")
		may(ctx, "secrets", "create", "update", "patch", "get")
		Eventually(func() error {
			return author.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "plain-", Namespace: namespace}})
		}).Should(Succeed())
	})

	It("can be written only by a user with the verb render", func(ctx SpecContext) {
		configMap := func() client.Object { return &corev1.ConfigMap{ObjectMeta: annotated()} }
		secret := func() client.Object { return &corev1.Secret{ObjectMeta: annotated()} }
		Eventually(func() error { return author.Create(ctx, configMap()) }).Should(refused("configmaps"))
		Eventually(func() error { return author.Create(ctx, secret()) }).Should(refused("secrets"))
		may(ctx, "configmaps", "render")
		Eventually(func() error { return author.Create(ctx, configMap()) }).Should(Succeed())
		Expect(author.Create(ctx, secret())).To(refused("secrets"))
		may(ctx, "secrets", "render")
		Eventually(func() error { return author.Create(ctx, secret()) }).Should(Succeed())
	})

	It("can be labelled and stopped being a chart by others, but not created or changed", func(ctx SpecContext) {
		written := &corev1.ConfigMap{ObjectMeta: annotated(), Data: map[string]string{"values.yaml": "a: 1"}, BinaryData: map[string][]byte{"chart.tgz": {1}}}
		Expect(masters.Create(ctx, written)).To(Succeed())
		Eventually(func() error {
			return change(ctx, author, written, func(c *corev1.ConfigMap) { c.Data["values.yaml"] = "a: 2" })
		}).Should(refused("configmaps"))
		Expect(change(ctx, author, written, func(c *corev1.ConfigMap) { c.BinaryData["chart.tgz"] = []byte{2} })).To(refused("configmaps"))
		Expect(change(ctx, author, written, func(c *corev1.ConfigMap) { c.Annotations[placementv1beta1.HelmChartAnnotation] = "b" })).To(refused("configmaps"))
		Expect(change(ctx, author, written, func(c *corev1.ConfigMap) { c.Labels = map[string]string{"team": "a"} })).To(Succeed())
		Expect(change(ctx, author, written, func(c *corev1.ConfigMap) { c.Annotations = nil })).To(Succeed())
		Expect(change(ctx, author, written, func(c *corev1.ConfigMap) { c.Data["values.yaml"] = "a: 2" })).To(Succeed())
		Expect(change(ctx, author, written, func(c *corev1.ConfigMap) {
			c.Annotations = map[string]string{placementv1beta1.HelmChartAnnotation: "a"}
		})).To(refused("configmaps"))
	})
})
