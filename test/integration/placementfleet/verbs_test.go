// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placementfleet

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/expect"
)

// shop creates a namespace with settings of a colour.
func shop(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
	Expect(hub.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "settings"}, Data: map[string]string{"colour": "red"}})).To(Succeed())
}

func paint(ctx context.Context, shop, colour string) {
	GinkgoHelper()
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "settings"}}
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"data":{"colour":%q}}`, colour))
	Eventually(func(ctx context.Context) error { return hub.Patch(ctx, settings, patch) }).WithContext(ctx).Should(Succeed())
}

// create creates an object on the hub for one spec.
func create(ctx context.Context, object client.Object) {
	GinkgoHelper()
	expect.CreatedForSpec(ctx, hub, object)
}

// place creates a placement of the shop of its name; a cleanup removes it from the members.
func place(ctx context.Context, name string, change func(*placementv1beta1.PlacementSpec)) {
	GinkgoHelper()
	crp := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name}}
	crp.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: name}}
	change(&crp.Spec)
	DeferCleanup(func(ctx context.Context) {
		Eventually(colours).WithContext(ctx).WithArguments(name).Should(Equal("- - -"))
	})
	create(ctx, crp)
}

func respec(ctx context.Context, name string, change func(*placementv1beta1.PlacementSpec)) {
	GinkgoHelper()
	Eventually(func(ctx context.Context) error {
		crp := &placementv1beta1.ClusterResourcePlacement{}
		if err := hub.Get(ctx, client.ObjectKey{Name: name}, crp); err != nil {
			return err
		}
		change(&crp.Spec)
		return hub.Update(ctx, crp)
	}).WithContext(ctx).Should(Succeed())
}

func fixed(names ...string) func(*placementv1beta1.PlacementSpec) {
	return func(spec *placementv1beta1.PlacementSpec) {
		spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixed, ClusterNames: names}
	}
}

// colours returns the colours of a shop on member-1, member-2 and member-3, - where there is none.
func colours(ctx context.Context, shop string) (string, error) {
	var all []string
	for _, m := range running.Members {
		settings := &corev1.ConfigMap{}
		err := members[m.Name].Get(ctx, client.ObjectKey{Namespace: shop, Name: "settings"}, settings)
		switch {
		case apierrors.IsNotFound(err):
			all = append(all, "-")
		case err != nil:
			return "", err
		default:
			all = append(all, settings.Data["colour"])
		}
	}
	return strings.Join(all, " "), nil
}

// available reports whether a placement's current generation is Available.
func available(ctx context.Context, name string) (bool, error) {
	crp := &placementv1beta1.ClusterResourcePlacement{}
	err := hub.Get(ctx, client.ObjectKey{Name: name}, crp)
	c := meta.FindStatusCondition(crp.Status.Conditions, crp.ConditionType(placementv1beta1.ConditionAvailable))
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == crp.Generation, err
}

func edit(ctx context.Context, member string, change func(*clusterv1beta1.MemberCluster)) {
	GinkgoHelper()
	Eventually(func(ctx context.Context) error {
		m := &clusterv1beta1.MemberCluster{}
		if err := hub.Get(ctx, client.ObjectKey{Name: member}, m); err != nil {
			return err
		}
		if m.Labels == nil {
			m.Labels = map[string]string{}
		}
		change(m)
		return hub.Update(ctx, m)
	}).WithContext(ctx).Should(Succeed())
}

// relabel sets a label of members for one spec.
func relabel(ctx context.Context, label string, values map[string]string) {
	GinkgoHelper()
	for member, value := range values {
		edit(ctx, member, func(m *clusterv1beta1.MemberCluster) { m.Labels[label] = value })
		DeferCleanup(func(ctx context.Context) {
			edit(ctx, member, func(m *clusterv1beta1.MemberCluster) { delete(m.Labels, label) })
		})
	}
}

// taint adds a taint to a member for one spec.
func taint(ctx context.Context, member string) {
	GinkgoHelper()
	edit(ctx, member, func(m *clusterv1beta1.MemberCluster) {
		m.Spec.Taints = []clusterv1beta1.Taint{{Key: "closed", Effect: corev1.TaintEffectNoSchedule}}
	})
	DeferCleanup(func(ctx context.Context) {
		edit(ctx, member, func(m *clusterv1beta1.MemberCluster) { m.Spec.Taints = nil })
	})
}

func evict(ctx context.Context, name, placement, member string) {
	GinkgoHelper()
	e := &placementv1beta1.ClusterResourcePlacementEviction{ObjectMeta: metav1.ObjectMeta{Name: name}}
	e.Spec = placementv1beta1.PlacementEvictionSpec{PlacementName: placement, ClusterName: member}
	create(ctx, e)
}
