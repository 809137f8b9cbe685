// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifestwork_test runs the cluster's side of ManifestWorks
// (pkg/work/agent/manifestwork) between a real hub and a real cluster.
package manifestwork_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
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
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/agent/apply"
	"fleetgate.io/fleetgate/pkg/work/agent/definitions"
	"fleetgate.io/fleetgate/pkg/work/agent/manifestwork"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/test/support/artifacts"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
)

const (
	clusterName = "cluster1"
	agentUser   = "agent-of-cluster1"
	agentID     = "agent-1"
)

var (
	hub, member             *env.Cluster
	hubClient, memberClient client.Client
	hubHash                 string
	agent                   *expect.Running
)

func TestManifestWorks(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real API servers")
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(90 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	SetDefaultConsistentlyDuration(time.Second)
	RunSpecs(t, "ManifestWorks on a cluster", Label("integration", "manifestwork"))
}

var _ = artifacts.OnFailure(func() []*env.Cluster { return []*env.Cluster{hub, member} })

var _ = BeforeSuite(func(ctx SpecContext) {
	ctrl.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	clusters, err := env.StartAll(ctx,
		env.Options{Name: "hub"},
		env.Options{Name: clusterName, Nodes: 1},
	)
	Expect(err).NotTo(HaveOccurred())
	hub, member = clusters[0], clusters[1]
	DeferCleanup(func(ctx SpecContext) {
		Expect(hub.Stop(ctx)).To(Succeed())
		Expect(member.Stop(ctx)).To(Succeed())
	})
	hubClient, memberClient = expect.Client(build.Unlimited(hub.Config()), testScheme()), expect.Client(build.Unlimited(member.Config()), testScheme())
	hubHash = manifestwork.HubHash(hub.Config().Host)
	prepareHub(ctx)
	Expect(apply.EnsureCRD(ctx, memberClient)).To(Succeed())
	Expect(definitions.Ensure(ctx, memberClient, workv1.GroupName)).To(Succeed())
	agent = startAgent(agentOptions{})
	DeferCleanup(func() { agent.Stop() })
})

// prepareHub prepares the hub for a cluster: the kinds, the cluster's namespace, and the agent's
// rights, which are exactly this package's rules.
func prepareHub(ctx context.Context) {
	GinkgoHelper()
	ours, err := crds.ForHub(workv1.GroupName, placementv1beta1.GroupName, clusterv1beta1.GroupVersion.Group)
	Expect(err).NotTo(HaveOccurred())
	for _, crd := range ours {
		Expect(hubClient.Create(ctx, crd)).To(Succeed())
	}
	expect.Created(ctx, hubClient, build.Namespace(clusterName))
	give(ctx, clusterName, manifestwork.HubRules())
	Eventually(func() error { return hubClient.List(ctx, &workv1.ManifestWorkList{}) }).Should(Succeed())
}

// give grants the agent's user rights in a namespace of the hub.
func give(ctx context.Context, namespace string, rules []rbacv1.PolicyRule) {
	GinkgoHelper()
	role, binding := build.Grant(namespace, agentUser, agentUser, rules)
	expect.Created(ctx, hubClient, role, binding)
}

func testScheme() *runtime.Scheme {
	return build.Scheme(scheme.AddToScheme, apiextensionsv1.AddToScheme, workv1.AddToScheme, placementv1beta1.AddToScheme, clusterv1beta1.AddToScheme)
}

// agentOptions configures the agent of a spec.
type agentOptions struct {
	// url is the agent's URL of the hub.
	url string
	id  string
	// of is the hub; if nil, the suite's.
	of *env.Cluster
	// grace is the grace period of evictions.
	grace time.Duration
	raw   bool
	// impersonate enables impersonation of executors.
	impersonate bool
	// wrap observes all requests to the cluster, wrapHub those to the hub.
	wrap, wrapHub func(http.RoundTripper) http.RoundTripper
	// over is the link to the hub; if nil, a direct connection.
	over *env.Link
	// works also applies Works.
	works bool
}

// startAgent starts an agent whose only rights on the hub are its rules.
func startAgent(o agentOptions) *expect.Running {
	GinkgoHelper()
	if o.of == nil {
		o.of = hub
	}
	hubConfig, err := o.of.ConfigFor(agentUser)
	Expect(err).NotTo(HaveOccurred())
	if o.over != nil {
		hubConfig = o.over.Config(hubConfig)
	}
	if o.wrapHub != nil {
		hubConfig.Wrap(o.wrapHub)
	}
	return expect.Started(func(ctx context.Context) (func(context.Context) error, error) {
		mgr, err := newAgent(ctx, o, hubConfig)
		if err != nil {
			return nil, err
		}
		return mgr.Start, nil
	})
}

func newAgent(ctx context.Context, o agentOptions, hubConfig *rest.Config) (ctrl.Manager, error) {
	skip := true
	inClusters := cache.ByObject{Namespaces: map[string]cache.Config{clusterName: {}}}
	mgr, err := ctrl.NewManager(build.Unlimited(hubConfig), ctrl.Options{
		Scheme:  testScheme(),
		Metrics: server.Options{BindAddress: "0"},
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{clusterv1beta1.MemberNamespace(clusterName): {}},
			ByObject:          map[client.Object]cache.ByObject{&workv1.ManifestWork{}: inClusters},
		},
		Controller: config.Controller{SkipNameValidation: &skip},
	})
	if err != nil {
		return nil, err
	}
	memberConfig := member.Config()
	if o.wrap != nil {
		memberConfig.Wrap(o.wrap)
	}
	reached, err := engine.NewMember(memberConfig)
	if err != nil {
		return nil, err
	}
	if err := mgr.Add(manager.RunnableFunc(reached.Watcher.Run)); err != nil {
		return nil, err
	}
	if o.works {
		works, err := apply.New(apply.Options{Member: clusterName, MemberAPI: reached})
		if err != nil {
			return nil, err
		}
		if err := works.SetupWithManager(ctx, mgr); err != nil {
			return nil, err
		}
	}
	options := manifestwork.Options{Cluster: clusterName, HubURL: o.of.Config().Host, AgentID: agentID, MemberAPI: reached,
		Tuning: engine.Tuning{Unwatched: time.Second}, RawFeedback: o.raw, Impersonate: o.impersonate, EvictionGrace: o.grace}
	if o.url != "" {
		options.HubURL = o.url
	}
	if o.id != "" {
		options.AgentID = o.id
	}
	reconciler, err := manifestwork.New(options)
	if err != nil {
		return nil, err
	}
	return mgr, reconciler.SetupWithManager(ctx, mgr)
}

// insteadOfTheAgent replaces the suite's agent for the rest of a spec.
func insteadOfTheAgent(o agentOptions) {
	GinkgoHelper()
	agent.Stop()
	agent = startAgent(o)
	DeferCleanup(func() {
		agent.Stop()
		agent = startAgent(agentOptions{})
	})
}
