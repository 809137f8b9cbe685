// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package work_test runs the member's side of Works (pkg/work/apply) between a
// real hub and a real member.
package work_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
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
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/apis/crds"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/apply"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/test/artifacts"
	"fleetgate.io/fleetgate/test/env"
)

const (
	memberName = "member-1"
	agentUser  = "agent-of-member-1"
	// ownNamespace is that of an agent which was installed under another name than usual.
	ownNamespace = "agents-own"
)

var (
	hub, member             *env.Cluster
	hubClient, memberClient client.Client
	hubNamespace            = clusterv1beta1.MemberNamespace(memberName)
	agent                   *runningAgent
)

func TestWork(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real API servers")
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(90 * time.Second)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
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
	hubClient, memberClient = clientFor(hub.Config()), clientFor(member.Config())
	prepareHub(ctx)
	Expect(apply.EnsureCRD(ctx, memberClient)).To(Succeed())
	Expect(apply.EnsureCRD(ctx, memberClient)).To(Succeed(), "a second start of the agent")
	agent = startAgent(member.Config())
	DeferCleanup(func() { agent.stop() })
})

// prepareHub makes what joining makes: the CRDs, the member's namespace with its
// InternalMemberCluster, and the agent's Role with the rules of this package.
func prepareHub(ctx context.Context) {
	GinkgoHelper()
	definitions, err := crds.ForHub(placementv1beta1.GroupName, clusterv1beta1.GroupVersion.Group)
	Expect(err).NotTo(HaveOccurred())
	for _, crd := range definitions {
		Expect(hubClient.Create(ctx, crd)).To(Succeed())
	}
	createNamespace(ctx, hubClient, hubNamespace)
	createMember(ctx)
	Eventually(func() error { return hubClient.List(ctx, &placementv1beta1.WorkList{}) }).Should(Succeed())
	name := clusterv1beta1.RoleName(memberName)
	Expect(hubClient.Create(ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: name},
		Rules:      apply.HubRules(memberName),
	})).To(Succeed())
	Expect(hubClient.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: agentUser}},
	})).To(Succeed())
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

func clientFor(config *rest.Config) client.Client {
	GinkgoHelper()
	c, err := client.New(unlimited(config), client.Options{Scheme: testScheme()})
	Expect(err).NotTo(HaveOccurred())
	return c
}

func unlimited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1
	return config
}

func testScheme() *runtime.Scheme {
	GinkgoHelper()
	s := runtime.NewScheme()
	for _, add := range schemes() {
		Expect(add(s)).To(Succeed())
	}
	return s
}

func schemes() []func(*runtime.Scheme) error {
	return []func(*runtime.Scheme) error{
		scheme.AddToScheme, apiextensionsv1.AddToScheme, placementv1beta1.AddToScheme, clusterv1beta1.AddToScheme,
	}
}

// runningAgent is the part of an agent that this suite is about.
type runningAgent struct {
	cancel context.CancelFunc
	done   chan error
}

// startAgent starts it with no rights on the hub but its own rules.
func startAgent(memberConfig *rest.Config) *runningAgent {
	GinkgoHelper()
	hubConfig, err := hub.ConfigFor(agentUser)
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	manager, err := newAgent(ctx, hubConfig, memberConfig)
	Expect(err).NotTo(HaveOccurred())
	started := &runningAgent{cancel: cancel, done: make(chan error, 1)}
	go func() { started.done <- manager.Start(ctx) }()
	return started
}

// newAgent makes what startAgent starts.
func newAgent(ctx context.Context, hubConfig, memberConfig *rest.Config) (ctrl.Manager, error) {
	known := runtime.NewScheme()
	for _, add := range schemes() {
		if err := add(known); err != nil {
			return nil, err
		}
	}
	skip := true
	manager, err := ctrl.NewManager(unlimited(hubConfig), ctrl.Options{
		Scheme:     known,
		Metrics:    server.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{hubNamespace: {}}},
		Controller: config.Controller{SkipNameValidation: &skip},
	})
	if err != nil {
		return nil, err
	}
	reconciler, err := apply.New(apply.Options{
		Member: memberName, MemberConfig: memberConfig, Effort: engine.Effort{Blind: time.Second}, NamespacedApplier: namespacedApplier, House: []string{ownNamespace},
	})
	if err != nil {
		return nil, err
	}
	return manager, reconciler.SetupWithManager(ctx, manager)
}

func (a *runningAgent) stop() {
	GinkgoHelper()
	if a.cancel == nil {
		return
	}
	a.cancel()
	a.cancel = nil
	Eventually(a.done).Should(Receive(BeNil()))
}

// restart replaces the agent of the suite.
func restartAgent() {
	GinkgoHelper()
	agent.stop()
	agent = startAgent(member.Config())
}
