// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// Clients of the public API compare parts of rejection messages. The author may write placements
// and overrides and has no other right that matters here.
var _ = Describe("The messages that clients compare", func() {
	var (
		author     client.Client
		unparsable = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "test-key", Operator: metav1.LabelSelectorOpIn}}}
		byLabels   = placementv1beta1.ResourceSelectorTerm{
			Group: rbacv1.GroupName, Version: "v1", Kind: "ClusterRole", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"test-key": "test-value"}},
			SelectionScope: placementv1beta1.NamespaceWithResources,
		}
		nameless = placementv1beta1.ResourceSelectorTerm{
			Group: rbacv1.GroupName, Version: "v1", Kind: "ClusterRole", SelectionScope: placementv1beta1.NamespaceWithResources,
		}
	)
	picking := func(affinity placementv1beta1.ClusterAffinity) client.Object {
		spec := selecting("v1", "Namespace", "shop")
		spec.Policy = &placementv1beta1.PlacementPolicy{
			PlacementType: placementv1beta1.PickN, NumberOfClusters: ptr.To[int32](1), Affinity: &placementv1beta1.Affinity{ClusterAffinity: &affinity},
		}
		return clusterPlacement(spec)
	}
	overriding := func(selector placementv1beta1.ResourceSelectorTerm) client.Object {
		override := clusterOverride("x")
		override.Spec.ClusterResourceSelectors = []placementv1beta1.ResourceSelectorTerm{selector}
		return override
	}

	BeforeEach(func(ctx SpecContext) {
		name := "author-" + newNamespace(ctx)
		config, err := hub.ConfigFor(name)
		Expect(err).NotTo(HaveOccurred())
		author = clientFor(config)
		bindClusterRole(ctx, name, name, rbacv1.PolicyRule{APIGroups: []string{placementv1beta1.GroupName}, Resources: []string{"*"}, Verbs: []string{"create"}})
	})

	DescribeTable("are returned to", func(ctx SpecContext, object client.Object, sentence string) {
		// The API server takes a moment to enforce the author's rights.
		Eventually(func() error { return author.Create(ctx, object.DeepCopyObject().(client.Object)) }).Should(MatchError(ContainSubstring(sentence)))
	},
		Entry("an author who selects a namespaced resource in a ClusterResourcePlacement", clusterPlacement(selecting("v1", "ConfigMap", "settings")),
			"the resource is not found in schema (please retry) or it is not a cluster scoped resource: /v1, Kind=ConfigMap"),
		Entry("an author who selects a cluster-scoped resource in a ResourcePlacement", resourcePlacement(selecting("v1", "Namespace", "shop")),
			"the resource is not found in schema (please retry) or it is a cluster scoped resource: /v1, Kind=Namespace"),
		Entry("an author who selects resources with an invalid label selector", func() client.Object {
			spec := selecting("v1", "Namespace", "")
			spec.ResourceSelectors[0].LabelSelector = unparsable
			return clusterPlacement(spec)
		}(), fmt.Sprintf("the labelSelector in resource selector %+v is invalid:", unparsable)),
		Entry("an author who requires members with an invalid label selector", picking(placementv1beta1.ClusterAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{{LabelSelector: unparsable}}},
		}), fmt.Sprintf("the labelSelector in cluster selector %+v is invalid:", unparsable)),
		Entry("an author who prefers members with an invalid label selector", picking(placementv1beta1.ClusterAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []placementv1beta1.PreferredClusterSelector{{Weight: 1, Preference: placementv1beta1.ClusterSelectorTerm{LabelSelector: unparsable}}},
		}), fmt.Sprintf("the labelSelector in preferred cluster selector %+v is invalid:", unparsable)),
		Entry("an author who overrides resources by label", overriding(byLabels), fmt.Sprintf("label selector is not supported for resource selection %+v", byLabels)),
		Entry("an author who overrides resources without a name", overriding(nameless), fmt.Sprintf("resource name is required for resource selection %+v", nameless)),
	)
})
