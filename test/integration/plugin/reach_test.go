// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	multiclusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/multicluster/v1alpha1"
	"fleetgate.io/fleetgate/test/support/build"
)

// allowed grants the hub's administrator all rights on the members.
const allowed = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: hub-admins}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "fleetgate:admins"}]
`

var _ = Describe("Members are reached by the plugin", Ordered, ContinueOnFailure, func() {
	BeforeAll(func(ctx SpecContext) {
		for _, member := range []string{first, second} {
			onMember(ctx, member, allowed, "apply", "--filename=-")
		}
	})

	It("with kubectl's own commands, one member by name and many at once", func(ctx SpecContext) {
		Eventually(says(ctx, "get", "nodes", "--member", first, "-o", "name")).Should(Equal("node/member-1-node-1\n"))
		Expect(plugin(ctx, "get", "nodes", "--members", "all")).To(And(ContainSubstring("CLUSTER"), ContainSubstring("member-1-node-1"), ContainSubstring("member-2-node-1")))
		Expect(plugin(ctx, "get", "nodes", "--members", "name="+second)).NotTo(ContainSubstring("member-1-node-1"))
		file := filepath.Join(GinkgoT().TempDir(), "settings.yaml")
		Expect(os.WriteFile(file, []byte(build.ConfigMapText("default", "by-plugin", "a", "b")), 0o600)).To(Succeed())
		Expect(plugin(ctx, "apply", "-f", file, "--member", first)).To(ContainSubstring("configmap/by-plugin created"))
		Expect(plugin(ctx, "describe", "configmap", "by-plugin", "-n", "default", "--member", first)).To(ContainSubstring("by-plugin"))
		Expect(plugin(ctx, "delete", "configmap", "by-plugin", "-n", "default", "--member", first)).To(ContainSubstring("deleted"))
	})

	It("and not without a member, or with an unknown one", func(ctx SpecContext) {
		for want, args := range map[string][]string{
			"no member selected: set --member NAME":       {"get", "nodes"},
			`no member "membre-1": did you mean member-1`: {"get", "nodes", "--member", "membre-1"},
			"mutually exclusive":                          {"get", "nodes", "--member", first, "--members", "all"},
		} {
			_, code, stderr := tries(ctx, args...)
			Expect(code).To(Equal(1))
			Expect(stderr).To(ContainSubstring(want))
		}
	})

	It("by a multicluster manager that gets its credential from the plugin", func(ctx SpecContext) {
		manager, err := ctrl.NewManager(running.Hub.Config(), ctrl.Options{
			Metrics: metricsserver.Options{BindAddress: "0"}, Scheme: build.Scheme(scheme.AddToScheme, multiclusterv1alpha1.AddToScheme), Logger: GinkgoLogr,
		})
		Expect(err).NotTo(HaveOccurred())
		c := &consumer{manager: manager, members: map[string]engaged{}, labelled: map[string]bool{}}
		Expect(ctrl.NewControllerManagedBy(manager).For(&multiclusterv1alpha1.ClusterProfile{}).Complete(c)).To(Succeed())
		managed, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- manager.Start(managed) }()
		DeferCleanup(func() {
			stop()
			Expect(<-ended).To(Succeed())
		})
		Eventually(c.seen).Should(ConsistOf(first, second))

		// When a profile is deleted, the manager disengages the member. It engages it again with
		// the profile.
		hub(ctx, "", "delete", "clusterprofile", second, "--namespace=fleet-system")
		Eventually(c.losses).Should(BeNumerically(">", 0))
		Eventually(c.seen).Should(ConsistOf(first, second))
	})

	It("and gives no credential for a server that is not the hub", func(ctx SpecContext) {
		config := rest.CopyConfig(configOf(&multiclusterv1alpha1.AccessProviderStatus{}))
		config.Host = "https://127.0.0.1:1/apis/cluster.core.oam.dev/v1alpha1/clustergateways/member-1/proxy"
		config.Timeout = 5 * time.Second
		client, err := rest.HTTPClientFor(config)
		Expect(err).NotTo(HaveOccurred())
		response, err := client.Get(config.Host)
		if err == nil {
			Expect(response.Body.Close()).To(Succeed())
		}
		Expect(err).To(MatchError(ContainSubstring("exit code 1")))
	})
})

// configOf builds a configuration from a profile, as the inventory API's library does.
func configOf(provider *multiclusterv1alpha1.AccessProviderStatus) *rest.Config {
	var extension runtime.Object
	for _, e := range provider.Cluster.Extensions {
		extension = &runtime.Unknown{Raw: e.Extension.Raw, ContentType: runtime.ContentTypeJSON}
	}
	return &rest.Config{
		Host: provider.Cluster.Server, TLSClientConfig: rest.TLSClientConfig{CAData: provider.Cluster.CertificateAuthorityData},
		ExecProvider: &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", Command: filepath.Join(running.BinDir, "kubectl-fleetgate"),
			Args:               []string{"credential", "--kubeconfig=" + running.HubKubeconfig()},
			ProvideClusterInfo: true, InteractiveMode: clientcmdapi.NeverExecInteractiveMode, Config: extension,
		},
	}
}

// consumer is a program over all members. For each profile it runs a controller-runtime cluster and
// reads its ConfigMaps.
type consumer struct {
	manager ctrl.Manager
	mu      sync.Mutex
	// members are the engaged members, labelled those whose ConfigMaps were read; lost counts
	// disengagements.
	members  map[string]engaged
	labelled map[string]bool
	lost     int
}

// engaged is a member with the profile that it was engaged for.
type engaged struct {
	profile types.UID
	stop    context.CancelFunc
}

func (c *consumer) seen() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.labelled))
}

func (c *consumer) losses() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost
}

// Reconcile engages and disengages members with their profiles.
func (c *consumer) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	profile := &multiclusterv1alpha1.ClusterProfile{}
	err := c.manager.GetClient().Get(ctx, request.NamespacedName, profile)
	if apierrors.IsNotFound(err) || err == nil && profile.DeletionTimestamp != nil {
		c.lose(request.Name)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	c.mu.Lock()
	has, known := c.members[request.Name]
	c.mu.Unlock()
	if known && has.profile == profile.UID || len(profile.Status.AccessProviders) == 0 {
		return reconcile.Result{}, nil
	}
	// A profile can be deleted and re-created between two reconciles.
	c.lose(request.Name)
	return reconcile.Result{}, c.engage(request.Name, profile.UID, configOf(&profile.Status.AccessProviders[0]))
}

func (c *consumer) engage(name string, profile types.UID, config *rest.Config) error {
	member, err := cluster.New(config)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(context.Background())
	c.mu.Lock()
	c.members[name] = engaged{profile, stop}
	c.mu.Unlock()
	go func() { _ = member.Start(running) }() // It returns when the member is disengaged.
	member.GetCache().WaitForCacheSync(running)
	var list corev1.ConfigMapList
	if err := member.GetCache().List(running, &list); err != nil || len(list.Items) == 0 {
		c.lose(name)
		return fmt.Errorf("reading %d ConfigMaps of %s: %w", len(list.Items), name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.labelled[name] = true
	return nil
}

func (c *consumer) lose(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if member, has := c.members[name]; has {
		member.stop()
		delete(c.members, name)
		delete(c.labelled, name)
		c.lost++
	}
}
