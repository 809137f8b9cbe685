// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workloads applies typical manifests of users to a real hub with a real gateway and two real
// members with their agents. All of Kubernetes' controllers run on the hub and on the members. The
// specs compare the members' objects with the authors' manifests.
package workloads

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/artifacts"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/fleet"
	"fleetgate.io/fleetgate/test/support/program"
)

var (
	running *fleet.Fleet
	hub     client.Client
	// member1 and member2 are clients of the members' own API servers.
	member1, member2 client.Client
)

func TestWorkloads(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real API servers")
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(90 * time.Second)
	EnforceDefaultTimeoutsWhenUsingContexts()
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	RunSpecs(t, "Workloads on members", Label("integration", "workloads"))
}

var _ = artifacts.OnFailure(func() []*env.Cluster { return running.Clusters() })

var _ = BeforeSuite(func(ctx SpecContext) {
	running = program.Fleet(ctx, fleet.Options{Members: []string{"member-1", "member-2"}, Patience: 5 * time.Minute})
	kinds := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, placementv1beta1.AddToScheme, clusterv1beta1.AddToScheme)
	clients := make([]client.Client, 0, 3)
	for _, cluster := range running.Clusters() {
		c, err := cluster.Client(kinds...)
		Expect(err).NotTo(HaveOccurred())
		clients = append(clients, c)
	}
	hub, member1, member2 = clients[0], clients[1], clients[2]
	for _, m := range running.Members {
		Eventually(func(g Gomega, ctx context.Context) {
			cluster := &clusterv1beta1.MemberCluster{}
			g.Expect(hub.Get(ctx, client.ObjectKey{Name: m.Name}, cluster)).To(Succeed())
			g.Expect(meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1beta1.ConditionJoined)).To(BeTrue())
		}).WithContext(ctx).Should(Succeed())
	}
})

// kubectl runs kubectl as an administrator of a cluster of the fleet and returns its output.
func kubectl(ctx context.Context, at *env.Cluster, args ...string) string {
	GinkgoHelper()
	output, err := program.Kubectl(ctx, at, "", args...)
	Expect(err).NotTo(HaveOccurred(), output)
	return output
}

// applyFile applies a file of testdata with kubectl, as users do.
func applyFile(ctx context.Context, at *env.Cluster, file string) {
	GinkgoHelper()
	kubectl(ctx, at, "apply", "-f", filepath.Join("testdata", file))
}
