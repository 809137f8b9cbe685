// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rights_test compares what arrives on a real member with the rights of its authors on the
// hub. The gateway and the agent run as programs.
package rights_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	configv1alpha1 "fleetgate.io/fleetgate/pkg/apis/config/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/artifacts"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
	"fleetgate.io/fleetgate/test/support/fleet"
	"fleetgate.io/fleetgate/test/support/program"
)

const memberName = "member-1"

var (
	running     *fleet.Fleet
	hub, member client.Client
	written     *writes
)

func TestRights(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real API servers")
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(90 * time.Second)
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	RunSpecs(t, "Rights of authors", Label("integration", "rights"))
}

var _ = artifacts.OnFailure(func() []*env.Cluster { return running.Clusters() })

var _ = BeforeSuite(func(ctx SpecContext) {
	configuration, err := env.ConfigFlag(GinkgoT().TempDir(), configv1alpha1.GatewayKind,
		"placement: {helmCharts: true, snapshotMinimumInterval: 0s, changesCollectionDuration: 0s}")
	Expect(err).NotTo(HaveOccurred())
	running = program.Fleet(ctx, fleet.Options{Members: []string{memberName}, Patience: 5 * time.Minute, OCM: true, GatewayArgs: []string{configuration}})
	scheme := build.Scheme(clientgoscheme.AddToScheme, placementv1beta1.AddToScheme, clusterv1beta1.AddToScheme, workv1.AddToScheme, workv1alpha1.AddToScheme,
		clusterv1.AddToScheme, ocmclusterv1beta1.AddToScheme, clusterv1beta2.AddToScheme)
	hub = expect.Client(build.Unlimited(running.Hub.Config()), scheme)
	memberConfig := build.Unlimited(running.Members[0].Cluster.Config())
	member = expect.Client(memberConfig, scheme)
	prepare(ctx)
	watcher, err := dynamic.NewForConfig(memberConfig)
	Expect(err).NotTo(HaveOccurred())
	written = recordWrites(watcher)
	DeferCleanup(written.stop)
})

// prepare defines the kinds of the pool, lets the testers write at all entrances, and waits for the member.
func prepare(ctx SpecContext) {
	GinkgoHelper()
	for _, k := range pool {
		if k.Group == groupServed || k.Group == groupUnknown || k.Group == groupChecked {
			define(ctx, hub, k, k.onHub)
			define(ctx, member, k, k.onMember)
		}
	}
	const write = "create update patch get"
	expect.Created(ctx, hub,
		&rbacv1.ClusterRole{ObjectMeta: build.Named(testers), Rules: []rbacv1.PolicyRule{
			rule(placementv1beta1.GroupName, write, "clusterresourceplacements", "resourceplacements", "clusterresourceoverrides", "resourceoverrides",
				"clusterstagedupdateruns", "stagedupdateruns"),
			rule(placementv1beta1.GroupName, "create update patch", "clusterresourceenvelopes", "resourceenvelopes"),
			rule(workv1alpha1.GroupVersion.Group, write, "manifestworkreplicasets"),
		}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: build.Named(testers), RoleRef: roleRef("ClusterRole", testers),
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: testers}}},
		&placementv1beta1.ClusterStagedUpdateStrategy{ObjectMeta: build.Named("all"), Spec: placementv1beta1.UpdateStrategySpec{
			Stages: []placementv1beta1.StageConfig{{Name: "all", LabelSelector: &metav1.LabelSelector{}}}}},
		&clusterv1beta2.ManagedClusterSet{ObjectMeta: build.Named("all"), Spec: clusterv1beta2.ManagedClusterSetSpec{ClusterSelector: clusterv1beta2.ManagedClusterSelector{
			SelectorType: clusterv1beta2.LabelSelector, LabelSelector: &metav1.LabelSelector{}}}},
	)
	expect.Created(ctx, member,
		&corev1.ServiceAccount{ObjectMeta: build.In("default", executor)},
		&rbacv1.ClusterRoleBinding{ObjectMeta: build.Named(executor), RoleRef: roleRef("ClusterRole", "cluster-admin"),
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: executor}}},
	)
	Eventually(func(g Gomega) {
		m := &clusterv1beta1.MemberCluster{}
		g.Expect(hub.Get(ctx, client.ObjectKey{Name: memberName}, m)).To(Succeed())
		g.Expect(meta.IsStatusConditionTrue(m.Status.Conditions, clusterv1beta1.ConditionJoined)).To(BeTrue())
		g.Expect(hub.Get(ctx, client.ObjectKey{Name: memberName}, &clusterv1.ManagedCluster{})).To(Succeed())
	}).Should(Succeed())
}
