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
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

const metricsGroup = "metrics.k8s.io"

// The gateway does not know who serves metrics. A custom resource with the group, version and names
// of metrics stands in for it, with written values.
var _ = Describe("kubectl top", func() {
	It("shows the usage of Pods on all members", func(ctx SpecContext) {
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

	It("can be listed as objects and in pages, because they are custom resources", func(ctx SpecContext) {
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

	It("shows Pods of the same name on two members in a view that qualifies names", func(ctx SpecContext) {
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

// serveMetrics installs the kind on both members and lets the team read it until the spec ends.
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

// measure writes the usage of a Pod once the member serves the kind.
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
