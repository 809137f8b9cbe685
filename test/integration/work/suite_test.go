// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package work_test runs the member's side of Works (pkg/work/agent/apply) between a
// real hub and a real member.
package work_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/apis/crds"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/agent/apply"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/retention"
	"fleetgate.io/fleetgate/test/support/artifacts"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
)

const (
	memberName = "member-1"
	agentUser  = "agent-of-member-1"
	// ownNamespace is the namespace of an agent that was installed under another name.
	ownNamespace = "agents-own"
)

var (
	hub, member             *env.Cluster
	hubClient, memberClient client.Client
	hubNamespace            = clusterv1beta1.MemberNamespace(memberName)
	agent                   *expect.Running
)

func TestWork(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real API servers")
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(90 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	SetDefaultConsistentlyDuration(time.Second)
	RunSpecs(t, "Works on a member", Label("integration", "work"))
}

var _ = artifacts.OnFailure(func() []*env.Cluster { return []*env.Cluster{hub, member} })

var _ = BeforeSuite(func(ctx SpecContext) {
	ctrl.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	clusters, err := env.StartAll(ctx,
		env.Options{Name: "hub"},
		env.Options{Name: memberName, Nodes: 1},
	)
	Expect(err).NotTo(HaveOccurred())
	hub, member = clusters[0], clusters[1]
	DeferCleanup(func(ctx SpecContext) {
		Expect(hub.Stop(ctx)).To(Succeed())
		Expect(member.Stop(ctx)).To(Succeed())
	})
	hubClient, memberClient = expect.Client(build.Unlimited(hub.Config()), testScheme()), expect.Client(build.Unlimited(member.Config()), testScheme())
	prepareHub(ctx)
	Expect(apply.EnsureCRD(ctx, memberClient)).To(Succeed())
	Expect(apply.EnsureCRD(ctx, memberClient)).To(Succeed(), "a second start of the agent")
	agent = startAgent(member.Config())
	DeferCleanup(func() { agent.Stop() })
})

// prepareHub prepares the hub for a joined member: the CRDs, the member's namespace with its
// InternalMemberCluster, and the agent's Role with the rules of this package.
func prepareHub(ctx context.Context) {
	GinkgoHelper()
	definitions, err := crds.ForHub(placementv1beta1.GroupName, clusterv1beta1.GroupVersion.Group)
	Expect(err).NotTo(HaveOccurred())
	for _, crd := range definitions {
		Expect(hubClient.Create(ctx, crd)).To(Succeed())
	}
	expect.Created(ctx, hubClient, build.Namespace(hubNamespace))
	createMember(ctx)
	Eventually(func() error { return hubClient.List(ctx, &placementv1beta1.WorkList{}) }).Should(Succeed())
	name := clusterv1beta1.RoleName(memberName)
	role, binding := build.Grant(hubNamespace, name, agentUser, apply.HubRules(memberName))
	expect.Created(ctx, hubClient, role, binding)
}

func createMember(ctx context.Context) {
	GinkgoHelper()
	Eventually(func() error {
		return hubClient.Create(ctx, &clusterv1beta1.InternalMemberCluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: memberName},
			Spec:       clusterv1beta1.InternalMemberClusterSpec{State: clusterv1beta1.ClusterStateJoin},
		})
	}).Should(Succeed())
}

func testScheme() *runtime.Scheme {
	return build.Scheme(scheme.AddToScheme, apiextensionsv1.AddToScheme, placementv1beta1.AddToScheme, clusterv1beta1.AddToScheme)
}

// startAgent starts an agent whose only rights on the hub are its rules.
func startAgent(memberConfig *rest.Config) *expect.Running {
	GinkgoHelper()
	hubConfig, err := hub.ConfigFor(agentUser)
	Expect(err).NotTo(HaveOccurred())
	return expect.Started(func(ctx context.Context) (func(context.Context) error, error) {
		manager, err := newAgent(ctx, hubConfig, memberConfig)
		if err != nil {
			return nil, err
		}
		return manager.Start, nil
	})
}

// newAgent returns the agent that startAgent starts.
func newAgent(ctx context.Context, hubConfig, memberConfig *rest.Config) (ctrl.Manager, error) {
	skip := true
	mgr, err := ctrl.NewManager(build.Unlimited(hubConfig), ctrl.Options{
		Scheme:     testScheme(),
		Metrics:    server.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{hubNamespace: {}}},
		Controller: config.Controller{SkipNameValidation: &skip},
	})
	if err != nil {
		return nil, err
	}
	reached, err := engine.NewMember(memberConfig)
	if err != nil {
		return nil, err
	}
	if err := mgr.Add(manager.RunnableFunc(reached.Watcher.Run)); err != nil {
		return nil, err
	}
	reconciler, err := apply.New(apply.Options{
		Member: memberName, MemberAPI: reached, Tuning: engine.Tuning{Unwatched: time.Second}, NamespacedApplier: namespacedApplier, ReservedNamespaces: []string{ownNamespace},
		Retention: retention.NewTracker(tellHeld),
	})
	if err != nil {
		return nil, err
	}
	return mgr, reconciler.SetupWithManager(ctx, mgr)
}

// restart replaces the agent of the suite.
func restartAgent() {
	GinkgoHelper()
	agent.Stop()
	agent = startAgent(member.Config())
}
