// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package replicasets_test runs the hub's side of ManifestWorks (pkg/placement/ocm/replicaset) on a
// real hub. Specs write the status in place of agents.
package replicasets_test

import (
	"context"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"fleetgate.io/fleetgate/pkg/apis/crds"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	"fleetgate.io/fleetgate/pkg/placement"
	"fleetgate.io/fleetgate/pkg/placement/ocm/replicaset"
	"fleetgate.io/fleetgate/pkg/work/hub/ttl"
	"fleetgate.io/fleetgate/test/support/artifacts"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/onehub"
)

var (
	hub       *env.Cluster
	hubClient client.Client
	gateway   *running
)

func TestReplicaSets(t *testing.T) {
	onehub.Run(t, "ManifestWorks on the hub", "replicasets")
}

var _ = artifacts.OnFailure(func() []*env.Cluster { return []*env.Cluster{hub} })

var _ = BeforeSuite(func(ctx SpecContext) {
	hub = onehub.Start(ctx)
	var err error
	hubClient, err = client.New(unlimited(hub.Config()), client.Options{Scheme: kinds()})
	Expect(err).NotTo(HaveOccurred())
	serve(hub, workv1.GroupName)
	gateway = start()
	DeferCleanup(func() { gateway.stop() })
	By("serving Placements after the gateway, as another product may")
	serve(hub, ocmclusterv1beta1.GroupName)
	makeSetOfAll(ctx, hubClient)
})

// serve installs the kinds of a group on a hub.
func serve(at *env.Cluster, group string) {
	GinkgoHelper()
	ours, err := crds.ForHub(group)
	onehub.Serve(at, ours, err)
}

func kinds() *runtime.Scheme {
	GinkgoHelper()
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		scheme.AddToScheme, apiextensionsv1.AddToScheme, workv1.AddToScheme, workv1alpha1.AddToScheme, ocmclusterv1beta1.AddToScheme, clusterv1.AddToScheme, clusterv1beta2.AddToScheme,
	} {
		Expect(add(known)).To(Succeed())
	}
	return known
}

func unlimited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1
	return config
}

// running is the part of a gateway under test.
type running struct {
	cancel context.CancelFunc
	done   chan error
}

func start() *running {
	GinkgoHelper()
	skip := true
	mgr, err := ctrl.NewManager(unlimited(hub.Config()), ctrl.Options{
		Scheme:     kinds(),
		Metrics:    server.Options{BindAddress: "0"},
		Cache:      cache.Options{ByObject: replicaset.CacheOptions()},
		Controller: config.Controller{SkipNameValidation: &skip},
	})
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	Expect(placement.SetupReplicaSets(ctx, mgr, 4, tenancyOf(mgr))).To(Succeed())
	Expect((&ttl.Reconciler{Client: mgr.GetClient(), Clock: clock.RealClock{}}).SetupWithManager(mgr)).To(Succeed())
	started := &running{cancel: cancel, done: make(chan error, 1)}
	go func() { started.done <- mgr.Start(ctx) }()
	return started
}

func (r *running) stop() {
	GinkgoHelper()
	if r.cancel == nil {
		return
	}
	r.cancel()
	r.cancel = nil
	Eventually(r.done).Should(Receive(BeNil()))
}
