// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/expect"
)

// cleanUp deletes a placement and the hub's namespace of the same name after the spec, and does
// not wait for either.
func cleanUp(name string) {
	DeferCleanup(func(ctx SpecContext) {
		for _, object := range []client.Object{
			&placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name}},
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		} {
			Expect(client.IgnoreNotFound(hub.Delete(ctx, object))).To(Succeed())
		}
	})
}

// soonAvailable is for placements with kinds whose availability is not tracked: by default, a member with
// them counts as unavailable for a minute after each change.
func soonAvailable() *placementv1beta1.RollingUpdateConfig {
	return &placementv1beta1.RollingUpdateConfig{UnavailablePeriodSeconds: ptr.To(1)}
}

// placement gets a ClusterResourcePlacement.
func placement(ctx context.Context, name string) (*placementv1beta1.ClusterResourcePlacement, error) {
	crp := &placementv1beta1.ClusterResourcePlacement{}
	return crp, hub.Get(ctx, client.ObjectKey{Name: name}, crp)
}

// condition is a condition of a ClusterResourcePlacement about its current spec, as "status/reason". It
// is "" if there is no such condition. kind has no prefix.
func condition(name, kind string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		crp, err := placement(ctx, name)
		if err != nil {
			return "", err
		}
		c := meta.FindStatusCondition(crp.Status.Conditions, crp.ConditionType(kind))
		if c == nil || c.ObservedGeneration != crp.Generation {
			return "", nil
		}
		return expect.Said(crp.Status.Conditions, c.Type), nil
	}
}

// waitAvailable waits until a ClusterResourcePlacement is Available on all its members.
func waitAvailable(ctx context.Context, name string) {
	GinkgoHelper()
	Eventually(condition(name, placementv1beta1.ConditionAvailable)).WithContext(ctx).WithTimeout(2 * time.Minute).Should(HavePrefix("True/"))
}

// applyAgain adds an object to a placed namespace. It returns when the agent of member-1 has applied the
// namespace's Work with it, and would have reverted what it reverts.
func applyAgain(ctx context.Context, name string) {
	GinkgoHelper()
	const added = "applied-again"
	Expect(hub.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: added}})).To(Succeed())
	Eventually(manifestCondition(name+"-work", added, placementv1beta1.ConditionApplied)).WithContext(ctx).Should(HavePrefix("True/"))
}
