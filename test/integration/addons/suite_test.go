// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package addons_test runs the hub's side of add-ons (pkg/addon/hub) on a real hub, with the
// gateway's rights, and the side of members (pkg/addon/agent) with an agent's. Specs write decisions in
// place of a scheduler, and hashes, ManifestWorks and conditions in place of the managers of add-ons.
// For registration there is a manager that was written from the contract.
package addons_test

import (
	"context"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllers "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	addons "fleetgate.io/fleetgate/pkg/addon/hub"
	"fleetgate.io/fleetgate/pkg/addon/hub/template"
	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/apis/crds"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	addonv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1beta1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/klusterlet"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/managedcluster"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/membermirror"
	"fleetgate.io/fleetgate/pkg/placement/ocm/replicaset"
	"fleetgate.io/fleetgate/pkg/webhook/policies"
	"fleetgate.io/fleetgate/pkg/work/agent/definitions"
	"fleetgate.io/fleetgate/test/support/artifacts"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
	"fleetgate.io/fleetgate/test/support/onehub"
)

const gatewayUser = "fleetgate:gateway"

var (
	hub       *env.Cluster
	hubClient client.Client
	gateway   *expect.Running
	// conversions answers conversions between the versions of add-ons.
	conversions *converter
	// writes are those of the gateway.
	writes = accepted{count: map[string]int{}}
)

func TestAddOns(t *testing.T) {
	onehub.Run(t, "Add-ons on the hub", "addons")
}

var _ = artifacts.OnFailure(func() []*env.Cluster { return []*env.Cluster{hub} })

var _ = BeforeSuite(func(ctx SpecContext) {
	hub = onehub.Start(ctx)
	hubClient = expect.Client(build.Unlimited(hub.Config()), kinds())
	ours, err := crds.ForHub(addonv1alpha1.GroupName, clusterv1.GroupName, workv1.GroupName, clusterv1beta1.GroupVersion.Group, authenticationv1beta1.GroupVersion.Group)
	onehub.Serve(hub, withoutBeta(ours), err)
	before := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: build.Named("before-v1beta1")}
	before.Spec.AddOnConfiguration.CRDName = "former"
	expect.Created(ctx, hubClient, before)
	Expect(definitions.Ensure(ctx, hubClient, workv1.GroupName)).To(Succeed())
	giveTheGatewayItsRights(ctx)
	enforcePolicies(ctx)
	conversions = convert(ctx)
	DeferCleanup(func() { conversions.running.Stop() })
	gateway = start()
	DeferCleanup(func() { gateway.Stop() })
})

func kinds() *runtime.Scheme {
	return build.Scheme(scheme.AddToScheme, apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme, addonv1alpha1.AddToScheme, addonv1beta1.AddToScheme, clusterv1.AddToScheme, ocmclusterv1beta1.AddToScheme, workv1.AddToScheme,
		clusterv1beta1.AddToScheme, authenticationv1beta1.AddToScheme)
}

// giveTheGatewayItsRights grants the rights of an installation that also accepts klusterlets, and no
// others.
func giveTheGatewayItsRights(ctx context.Context) {
	GinkgoHelper()
	expect.Created(ctx, hubClient, build.Namespace(addonv1alpha1.HubNamespace))
	for _, file := range []string{"gateway-rbac.yaml", "klusterlets-rbac.yaml", "addons-rbac.yaml"} {
		manifest, err := os.ReadFile("../../support/fleet/" + file)
		Expect(err).NotTo(HaveOccurred())
		for document := range strings.SplitSeq(string(manifest), "\n---\n") {
			object := &unstructured.Unstructured{}
			Expect(yaml.Unmarshal([]byte(document), object)).To(Succeed())
			if object.GetNamespace() == "" || object.GetNamespace() == addonv1alpha1.HubNamespace {
				expect.Created(ctx, hubClient, object)
			}
		}
	}
}

// enforcePolicies installs the policies for agents and for the gateway's account, and the roles of
// agents.
func enforcePolicies(ctx context.Context) {
	GinkgoHelper()
	parameters := policies.Parameters{GatewayUser: gatewayUser, GatewayNamespace: "fleet-system", ArgoCD: types.NamespacedName{Namespace: "argocd", Name: "fleetgate-argocd"}, TokenLifetime: time.Hour}
	for _, objects := range [][]client.Object{policies.Gateway(parameters), policies.Members(parameters), policies.Klusterlets()} {
		expect.Created(ctx, hubClient, objects...)
	}
	for _, role := range managedcluster.Roles() {
		expect.Created(ctx, hubClient, role)
	}
	expect.Created(ctx, hubClient, &rbacv1.ClusterRole{ObjectMeta: build.Named("requests"), Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create", "get", "list", "watch"}},
	}})
	// They take effect with a delay, which an otherwise unused binding detects.
	probe := &rbacv1.ClusterRoleBinding{ObjectMeta: build.Named("probe"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "fleetgate-gateway"}}
	Eventually(func() error { return clientOf(gatewayUser).Create(ctx, probe.DeepCopy(), client.DryRunAll) }).Should(MatchError(ContainSubstring("the gateway binds")))
}

// accepted counts requests that change something, by verb and path. One that conflicts with another client
// changes nothing and is made again.
type accepted struct {
	mutex sync.Mutex
	count map[string]int // guarded by mutex
}

func (a *accepted) wrap(next http.RoundTripper) http.RoundTripper {
	return counted(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err == nil && response.StatusCode < http.StatusMultipleChoices {
			a.mutex.Lock()
			defer a.mutex.Unlock()
			a.count[r.Method+" "+r.URL.Path]++
		}
		return response, err
	})
}

// of are the requests with a verb for paths that contain a text.
func (a *accepted) of(verb, text string) int {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	all := 0
	for key, count := range a.count {
		if is, path, _ := strings.Cut(key, " "); is == verb && strings.Contains(path, text) {
			all += count
		}
	}
	return all
}

type counted func(*http.Request) (*http.Response, error)

func (c counted) RoundTrip(r *http.Request) (*http.Response, error) { return c(r) }

// start runs the gateway's part, like its leader.
func start() *expect.Running {
	GinkgoHelper()
	config, err := hub.ConfigFor(gatewayUser)
	Expect(err).NotTo(HaveOccurred())
	config.Wrap(writes.wrap)
	skip := true
	return expect.Started(func(ctx context.Context) (func(context.Context) error, error) {
		mgr, err := ctrl.NewManager(build.Unlimited(config), ctrl.Options{
			Scheme:     kinds(),
			Metrics:    server.Options{BindAddress: "0"},
			Cache:      cache.Options{ByObject: replicaset.CacheOptions()},
			Controller: controllers.Controller{SkipNameValidation: &skip},
		})
		if err != nil {
			return nil, err
		}
		return mgr.Start, addons.SetupWithManager(ctx, mgr, addons.Options{
			Clock: clock.RealClock{}, Workers: 4, Members: membermirror.Members{Hub: mgr.GetClient()},
			Agents: klusterlet.AgentsOf(membermirror.Members{Hub: mgr.GetClient()}), HashOf: replicaset.HashOf,
			Authority: template.Authority{Parse: klusterlet.ParseAddOn, Sign: klusterlet.SignAddOn(clock.RealClock{})},
		})
	})
}
