// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/test/support/expect"
)

// installClaims installs Open Cluster Management's ClusterClaims on the member.
func installClaims(ctx context.Context) {
	GinkgoHelper()
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	spec := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"value": text}}
	definition := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "clusterclaims.cluster.open-cluster-management.io"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "cluster.open-cluster-management.io", Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "clusterclaims", Singular: "clusterclaim", Kind: "ClusterClaim", ListKind: "ClusterClaimList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1alpha1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec},
				}},
			}},
		},
	}
	_, err := envtest.InstallCRDs(member.Config(), envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{definition}})
	Expect(err).NotTo(HaveOccurred())
}

func memberObjects() client.Client {
	GinkgoHelper()
	c, err := client.New(member.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return c
}

func makeClaim(ctx context.Context, name, value string) *unstructured.Unstructured {
	GinkgoHelper()
	claim := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cluster.open-cluster-management.io/v1alpha1", "kind": "ClusterClaim",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"value": value},
	}}
	Expect(memberObjects().Create(ctx, claim)).To(Succeed())
	return claim
}

func changeClaim(ctx context.Context, claim *unstructured.Unstructured, value string) {
	GinkgoHelper()
	Expect(unstructured.SetNestedField(claim.Object, value, "spec", "value")).To(Succeed())
	Expect(memberObjects().Update(ctx, claim)).To(Succeed())
}

func deleteClaim(ctx context.Context, claim *unstructured.Unstructured) {
	GinkgoHelper()
	Expect(memberObjects().Delete(ctx, claim)).To(Succeed())
}

// setHeartbeatPeriod sets a heartbeat period that is short enough for a test.
func setHeartbeatPeriod(ctx context.Context, name string, seconds int32) {
	GinkgoHelper()
	base := getMember(ctx, name)
	changed := base.DeepCopy()
	changed.Spec.HeartbeatPeriodSeconds = seconds
	Expect(hubClient.Patch(ctx, changed, client.MergeFrom(&base))).To(Succeed())
	Eventually(func(g Gomega) {
		mc := getMember(ctx, name)
		g.Expect(expect.Condition(mc.Status.Conditions, clusterv1beta1.ConditionJoined).ObservedGeneration).To(Equal(mc.Generation))
	}).Should(Succeed())
}
