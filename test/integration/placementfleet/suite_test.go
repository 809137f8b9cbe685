// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placementfleet tests placements end to end with a real hub, a real gateway, and three
// real members with their agents. It compares what is on the members.
package placementfleet

import (
	"context"
	"os"
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
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/test/support/artifacts"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/fleet"
	"fleetgate.io/fleetgate/test/support/program"
)

var (
	running *fleet.Fleet
	hub     client.Client
	// members are the clients of the members themselves.
	members = map[string]client.Client{}
)

func TestPlacementFleet(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(90 * time.Second)
	EnforceDefaultTimeoutsWhenUsingContexts()
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	RunSpecs(t, "Placement on a fleet", Label("placement", "matrix"))
}

var _ = artifacts.OnFailure(func() []*env.Cluster { return running.Clusters() })

var _ = BeforeSuite(func(ctx SpecContext) {
	// With FLEETGATE_OCM (make test-matrix) the same specs run with members as ManagedClusters too.
	running = program.Fleet(ctx, fleet.Options{Members: []string{"member-1", "member-2", "member-3"}, Audit: true, Patience: 5 * time.Minute, OCM: os.Getenv("FLEETGATE_OCM") != "", Way: ways.Start})
	var err error
	kinds := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, placementv1beta1.AddToScheme, clusterv1beta1.AddToScheme, registrationv1alpha1.AddToScheme)
	hub, err = running.Hub.Client(kinds...)
	Expect(err).NotTo(HaveOccurred())
	for _, m := range running.Members {
		members[m.Name], err = m.Cluster.Client(kinds...)
		Expect(err).NotTo(HaveOccurred())
	}
	for name := range members {
		Eventually(func(g Gomega, ctx context.Context) {
			m := &clusterv1beta1.MemberCluster{}
			g.Expect(hub.Get(ctx, client.ObjectKey{Name: name}, m)).To(Succeed())
			g.Expect(meta.IsStatusConditionTrue(m.Status.Conditions, clusterv1beta1.ConditionJoined)).To(BeTrue())
		}).WithContext(ctx).Should(Succeed())
	}
})
