// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chaos changes a fleet at random while parts of it fail, and records every deletion on the
// members. Each deletion must have a cause among the changes. The fleet is a real hub with a gateway
// and two real members with their agents.
package chaos

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/artifacts"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/fleet"
	"fleetgate.io/fleetgate/test/support/program"
)

// patience is how long the fleet may take to recover from everything that a round did to it. It is
// long because a slow machine is not an error.
const patience = 10 * time.Minute

var (
	running *fleet.Fleet
	hub     client.Client
	// members are the clients of the members themselves.
	members map[string]client.Client
)

func TestChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real API servers")
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(200 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "Deletions on members", Label("integration", "chaos"))
}

var _ = artifacts.OnFailure(func() []*env.Cluster { return running.Clusters() })

// startFleet starts a fleet for one spec. A second attempt of the spec gets another one.
func startFleet(ctx context.Context) {
	GinkgoHelper()
	running = program.Fleet(ctx, fleet.Options{Members: []string{"member-1", "member-2"}, OCM: true, Patience: 5 * time.Minute, Way: ways.Start})
	kinds := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, placementv1beta1.AddToScheme, clusterv1beta1.AddToScheme,
		clusterv1.AddToScheme, clusterv1beta2.AddToScheme, ocmclusterv1beta1.AddToScheme, workv1alpha1.AddToScheme)
	var err error
	hub, err = running.Hub.Client(kinds...)
	Expect(err).NotTo(HaveOccurred())
	members = map[string]client.Client{}
	for _, m := range running.Members {
		members[m.Name], err = m.Cluster.Client(kinds...)
		Expect(err).NotTo(HaveOccurred())
		Eventually(func(g Gomega, ctx context.Context) {
			joined, cluster := &clusterv1beta1.MemberCluster{}, &clusterv1.ManagedCluster{}
			g.Expect(hub.Get(ctx, client.ObjectKey{Name: m.Name}, joined)).To(Succeed())
			g.Expect(meta.IsStatusConditionTrue(joined.Status.Conditions, clusterv1beta1.ConditionJoined)).To(BeTrue())
			g.Expect(hub.Get(ctx, client.ObjectKey{Name: m.Name}, cluster)).To(Succeed())
		}).WithContext(ctx).Should(Succeed())
	}
}
