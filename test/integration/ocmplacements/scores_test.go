// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ocmplacements_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcescore "fleetgate.io/fleetgate/pkg/addon/agent/score"
	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/managedcluster"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

// agentOf is a client with the rights that an agent of the cluster has in its namespace.
func agentOf(ctx context.Context, cluster string) client.Client {
	GinkgoHelper()
	user := "agent-of-" + cluster
	Expect(client.IgnoreAlreadyExists(hubClient.Create(ctx, build.Namespace(cluster)))).To(Succeed())
	for _, role := range managedcluster.Roles() {
		Expect(client.IgnoreAlreadyExists(hubClient.Create(ctx, role))).To(Succeed())
		binding := &rbacv1.RoleBinding{ObjectMeta: build.In(cluster, role.Name), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}}
		binding.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
		Expect(hubClient.Create(ctx, binding)).To(Succeed())
	}
	config, err := hub.ConfigFor(user)
	Expect(err).NotTo(HaveOccurred())
	return expect.Client(build.Unlimited(config), kinds())
}

// reporting runs a reporter of scores for a cluster.
func reporting(ctx context.Context, cluster string, now *clocktesting.FakePassiveClock) (*resourcescore.Reporter, *expect.Running) {
	GinkgoHelper()
	r := &resourcescore.Reporter{Hub: agentOf(ctx, cluster), Namespace: cluster, Free: &resourcescore.Free{}, Clock: now}
	running := expect.Started(func(context.Context) (func(context.Context) error, error) {
		return func(ctx context.Context) error {
			r.Run(ctx)
			return nil
		}, nil
	})
	DeferCleanup(func(ctx SpecContext) {
		running.Stop()
		Expect(r.Remove(ctx)).To(Succeed()) // Other specs list scores of this name.
	})
	return r, running
}

func cores(amount string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount), corev1.ResourceMemory: resource.MustParse("8Gi"), "example.com/device": resource.MustParse("1")}
}

var _ = Describe("Scores of fleetgate's agents", func() {
	It("choose the member with more free resources, follow it, and are removed", func(ctx SpecContext) {
		b := newBed(ctx, 2)
		now := clocktesting.NewFakePassiveClock(time.Now())
		first, _ := reporting(ctx, b.name(1), now)
		second, running := reporting(ctx, b.name(2), now)
		first.Free.Set(cores("2"))
		second.Free.Set(cores("24"))
		placement := b.place(ctx, "p", both(wants(1), scores(resourcescore.Name+"/"+resourcescore.CPU)))
		Eventually(chosen(ctx, placement)).Should(Equal(b.names(2)))
		written := &clusterv1alpha1.AddOnPlacementScore{}
		Expect(hubClient.Get(ctx, client.ObjectKey{Namespace: b.name(2), Name: resourcescore.Name}, written)).To(Succeed())
		Expect(written.Status.Scores).To(Equal([]clusterv1alpha1.AddOnPlacementScoreItem{{Name: "cpuAvailable", Value: 48}, {Name: "memAvailable", Value: 38}, {Name: "example.com/device", Value: 20}}))
		Expect(written.Status.ValidUntil.Time).To(BeTemporally(">", now.Now()))

		By("using the resources of the second, a minute later")
		now.SetTime(now.Now().Add(time.Minute))
		second.Free.Set(cores("1"))
		Eventually(chosen(ctx, placement)).Should(Equal(b.names(1)))

		By("having no right to other scores")
		other := &clusterv1alpha1.AddOnPlacementScore{ObjectMeta: build.In(b.name(2), "other")}
		Expect(second.Hub.Create(ctx, other)).To(Satisfy(apierrors.IsForbidden))
		theirs := &clusterv1alpha1.AddOnPlacementScore{ObjectMeta: build.In(b.name(1), resourcescore.Name)}
		Expect(second.Hub.Status().Patch(ctx, theirs, expect.MergePatch(`{"status":{"scores":[]}}`))).To(Satisfy(apierrors.IsForbidden))

		By("disabling the scores of the second")
		running.Stop()
		Expect(second.Remove(ctx)).To(Succeed())
		Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(written), written)).To(Satisfy(apierrors.IsNotFound))
	})
})
