// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

// drifts are the drifted fields of each kind with both values.
func drifts(drifted []placementv1beta1.DriftedResourcePlacement) map[string][]placementv1beta1.PatchDetail {
	all := map[string][]placementv1beta1.PatchDetail{}
	for _, d := range drifted {
		all[d.Kind] = append(all[d.Kind], d.ObservedDrifts...)
	}
	return all
}

var _ = Describe("A reader of placements who cannot read roles", func() {
	It("sees which fields of a Role drifted and no values, and those of a ConfigMap with values", func(ctx SpecContext) {
		const name, hidden = "drift-read", "(redacted for security reasons)"
		expect.CreatedForSpec(ctx, hub, build.Namespace(name))
		Expect(hub.Create(ctx, build.ConfigMap(name, "settings", "colour", "red"))).To(Succeed())
		Expect(hub.Create(ctx, &rbacv1.Role{ObjectMeta: build.In(name, "operators"), Rules: []rbacv1.PolicyRule{rule("", "get", "pods")}})).To(Succeed())
		placeNamespace(ctx, name, func(spec *placementv1beta1.PlacementSpec) {
			spec.Strategy.ApplyStrategy = &placementv1beta1.ApplyStrategy{WhenToApply: placementv1beta1.ApplyIfNotDrifted}
		})
		reader, err := as(name)
		Expect(err).NotTo(HaveOccurred())

		change := func(object client.Object, patch string) {
			GinkgoHelper()
			Eventually(func() error { return member.Patch(ctx, object, expect.MergePatch(patch)) }).Should(Succeed())
		}
		change(&rbacv1.Role{ObjectMeta: build.In(name, "operators")}, `{"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}`)
		change(build.ConfigMap(name, "settings"), `{"data":{"colour":"blue"}}`)

		onBinding := func(ctx context.Context) (map[string][]placementv1beta1.PatchDetail, error) {
			list := &placementv1beta1.ClusterResourceBindingList{}
			if err := hub.List(ctx, list, client.MatchingLabels{placementv1beta1.ParentPlacementLabel: name}); err != nil || len(list.Items) == 0 {
				return nil, err
			}
			return drifts(list.Items[0].Status.DriftedPlacements), nil
		}
		onPlacement := func(ctx context.Context) (map[string][]placementv1beta1.PatchDetail, error) {
			crp := &placementv1beta1.ClusterResourcePlacement{}
			if err := reader.Get(ctx, client.ObjectKey{Name: name}, crp); err != nil || len(crp.Status.PlacementStatuses) == 0 {
				return nil, err
			}
			return drifts(crp.Status.PlacementStatuses[0].DriftedPlacements), nil
		}
		settings := []placementv1beta1.PatchDetail{{Path: "/data/colour", ValueInHub: "red", ValueInMember: "blue"}}
		with := func(inHub, inMember string) map[string][]placementv1beta1.PatchDetail {
			return map[string][]placementv1beta1.PatchDetail{
				"ConfigMap": settings, "Role": {{Path: "/rules/0/resources/0", ValueInHub: inHub, ValueInMember: inMember}}}
		}
		Eventually(onBinding).WithContext(ctx).Should(Equal(with("pods", "secrets")))
		Eventually(onPlacement).WithContext(ctx).Should(Equal(with(hidden, hidden)))
		Expect(reader.Get(ctx, client.ObjectKey{Namespace: name, Name: "operators"}, &rbacv1.Role{})).To(Satisfy(apierrors.IsForbidden))
		Expect(reader.List(ctx, &placementv1beta1.ClusterResourceBindingList{})).To(Satisfy(apierrors.IsForbidden))
	})
})
