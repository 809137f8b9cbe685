// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	viewv1alpha1 "fleetgate.io/fleetgate/pkg/apis/view/v1alpha1"
	"fleetgate.io/fleetgate/test/build"
	"fleetgate.io/fleetgate/test/expect"
)

const metricsGroup = "metrics.k8s.io"

// Who measures Pods is nothing to the gateway: a custom resource of the same group, version
// and names stands for it, with what was measured written into it.
var _ = Describe("kubectl top", func() {
	It("shows what the Pods of all members use", func(ctx SpecContext) {
		serveMetrics(ctx)
		measure(ctx, on[first], twin, "250m", "64Mi")
		measure(ctx, on[second], pod, "1500m", "256Mi")
		jane := someone(ctx, "jane", team)
		Expect(lines(jane.gets(ctx, "-n", namespace, "top", "pods"))).To(ConsistOf(
			[]string{"NAME", "CPU(cores)", "MEMORY(bytes)"}, []string{twin, "250m", "64Mi"}, []string{pod, "1500m", "256Mi"}))
		Expect(lines(jane.gets(ctx, "-n", namespace, "top", "pods", "--sort-by=cpu", "--no-headers"))).To(HaveExactElements(
			HaveExactElements(pod, "1500m", "256Mi"), HaveExactElements(twin, "250m", "64Mi")))
		Expect(lines(jane.gets(ctx, "-n", namespace, "top", "pod", pod, "--no-headers"))).To(HaveExactElements(HaveExactElements(pod, "1500m", "256Mi")))
	})

	It("is of custom resources, which come as objects too, and in pages", func(ctx SpecContext) {
		serveMetrics(ctx)
		measure(ctx, on[first], twin, "250m", "64Mi")
		measure(ctx, on[second], twin, "250m", "64Mi")
		measure(ctx, on[second], pod, "1500m", "256Mi")
		jane := someone(ctx, "jane", team)
		of := []string{"-n", namespace, "get", "pods." + metricsGroup}
		names := `{range .items[*]}{.kind}/{.metadata.labels.view\.fleetgate\.io/member}/{.metadata.name} {end}`
		for _, chunk := range []string{"0", "1", "2"} {
			Expect(jane.gets(ctx, append(of, "--chunk-size="+chunk, "-o", "jsonpath="+names)...)).
				To(Equal("PodMetrics/member-1/web PodMetrics/member-2/api PodMetrics/member-2/web "))
		}
		Expect(columns(2, jane.gets(ctx, of...))).To(Equal([]string{"CLUSTER NAME", "member-1 web", "member-2 api", "member-2 web"}))
	})

	It("tells members with Pods of one name apart in a view that qualifies names", func(ctx SpecContext) {
		serveMetrics(ctx)
		measure(ctx, on[first], twin, "100m", "64Mi")
		measure(ctx, on[second], twin, "200m", "64Mi")
		expect.CreatedForSpec(ctx, hubClient, &viewv1alpha1.FleetView{ObjectMeta: build.Named("measured"), Spec: viewv1alpha1.FleetViewSpec{Names: viewv1alpha1.NamesQualified}})
		jane := someone(ctx, "jane", team, "measured")
		Eventually(func() ([][]string, error) {
			stdout, _, err := jane.tries(ctx, "-n", namespace, "top", "pods", "--no-headers")
			return lines(stdout), err
		}).WithContext(ctx).Should(ConsistOf(
			[]string{first + "." + twin, "100m", "64Mi"}, []string{second + "." + twin, "200m", "64Mi"}))
	})
})

// serveMetrics has both members serve the kind, and the team read it, until the spec ends.
func serveMetrics(ctx context.Context) {
	GinkgoHelper()
	for _, member := range on {
		expect.CreatedForSpec(ctx, member, metricsKind())
		expect.CreatedForSpec(ctx, member, &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "metrics-reader", Labels: map[string]string{"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{metricsGroup}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}}},
		})
	}
}

func metricsKind() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "pods." + metricsGroup, Annotations: map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: "unapproved, a stand-in"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: metricsGroup, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "pods", Singular: "pod", Kind: "PodMetrics", ListKind: "PodMetricsList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1beta1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: ptr.To(true),
				}},
			}},
		},
	}
}

// measure says what a Pod uses, as soon as the member serves the kind.
func measure(ctx context.Context, member client.Client, name, cpu, memory string) {
	GinkgoHelper()
	measured := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": metricsGroup + "/v1beta1", "kind": "PodMetrics",
		"metadata":   map[string]any{"namespace": namespace, "name": name},
		"timestamp":  metav1.Now().UTC().Format(time.RFC3339),
		"window":     "10s",
		"containers": []any{map[string]any{"name": "main", "usage": map[string]any{"cpu": cpu, "memory": memory}}},
	}}
	Eventually(func() error { return member.Create(ctx, measured.DeepCopy()) }).WithContext(ctx).Should(Succeed())
}
