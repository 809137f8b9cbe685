// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package klusterlets_test lets clusters with agents of Open Cluster Management join a real hub
// (pkg/cluster/hub/ocm/klusterlet, pkg/cluster/hub/ocm/managedcluster). The agents are simulated by the
// contract of a klusterlet, with real keys, certificates and Leases. The gateway's part has the
// gateway's rights.
package klusterlets_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/apis/crds"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/clusterset"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/klusterlet"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/membermirror"
	"fleetgate.io/fleetgate/pkg/webhook/policies"
	"fleetgate.io/fleetgate/test/support/artifacts"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
	"fleetgate.io/fleetgate/test/support/onehub"
)

const (
	gatewayUser = "fleetgate:gateway"
	// trusted is a user whose clusters are admitted automatically.
	trusted = "trusted-installer"
	// forceDeleteWait is how long agents have to clean up here.
	forceDeleteWait = 2 * time.Second
)

var (
	hub       *env.Cluster
	hubClient client.Client
	clientset kubernetes.Interface
	gateway   *expect.Running
)

func TestKlusterlets(t *testing.T) {
	onehub.Run(t, "Klusterlets on the hub", "klusterlets")
}

var _ = artifacts.OnFailure(func() []*env.Cluster { return []*env.Cluster{hub} })

var _ = BeforeSuite(func(ctx SpecContext) {
	hub = onehub.Start(ctx)
	hubClient = expect.Client(build.Unlimited(hub.Config()), kinds())
	var err error
	clientset, err = kubernetes.NewForConfig(build.Unlimited(hub.Config()))
	Expect(err).NotTo(HaveOccurred())
	ours, err := crds.ForHub(clusterv1.GroupName, workv1.GroupName, clusterv1beta1.GroupName)
	onehub.Serve(hub, append(ours, addOnKind()), err)
	giveTheGatewayItsRights(ctx)
	enforcePolicies(ctx)
	Expect(klusterlet.EnsureBootstrap(ctx, asGateway(), hub.URL, hub.CABundle)).To(Succeed())
	gateway = start(usual())
	DeferCleanup(func() { gateway.Stop() })
})

func kinds() *runtime.Scheme {
	return build.Scheme(scheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, clusterv1beta2.AddToScheme, workv1.AddToScheme, clusterv1beta1.AddToScheme, placementv1beta1.AddToScheme,
		addonv1alpha1.AddToScheme)
}

// giveTheGatewayItsRights grants the rights of an installation, and no others.
func giveTheGatewayItsRights(ctx context.Context) {
	GinkgoHelper()
	for _, file := range []string{"gateway-rbac.yaml", "klusterlets-rbac.yaml", "klusterlets-signer-rbac.yaml"} {
		manifest, err := os.ReadFile("../../support/fleet/" + file)
		Expect(err).NotTo(HaveOccurred())
		for document := range strings.SplitSeq(string(manifest), "\n---\n") {
			object := &unstructured.Unstructured{}
			Expect(yaml.Unmarshal([]byte(document), object)).To(Succeed())
			expect.Created(ctx, hubClient, object)
		}
	}
}

// enforcePolicies installs the policies for agents and for the gateway's account.
func enforcePolicies(ctx context.Context) {
	GinkgoHelper()
	parameters := policies.Parameters{GatewayUser: gatewayUser, GatewayNamespace: "fleet-system", ArgoCD: types.NamespacedName{Namespace: "argocd", Name: "fleetgate-argocd"}}
	expect.Created(ctx, hubClient, append(policies.Gateway(parameters), policies.Klusterlets()...)...)
	// They take effect with a delay, which an otherwise unused account detects.
	probe := &rbacv1.ClusterRoleBinding{ObjectMeta: build.Named("probe"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "fleetgate-klusterlets"}}
	gateway := asGateway()
	Eventually(func() error { return gateway.Create(ctx, probe.DeepCopy(), client.DryRunAll) }).Should(MatchError(ContainSubstring("the gateway binds")))
}

func usual() klusterlet.Options {
	return klusterlet.Options{Users: []string{trusted}, ForceDeleteWait: forceDeleteWait, Workers: 4}
}

func asGateway() client.Client {
	GinkgoHelper()
	config, err := hub.ConfigFor(gatewayUser)
	Expect(err).NotTo(HaveOccurred())
	return expect.Client(build.Unlimited(config), kinds())
}

// start runs the gateway's part, like its leader.
func start(options klusterlet.Options) *expect.Running {
	GinkgoHelper()
	rest, err := hub.ConfigFor(gatewayUser)
	Expect(err).NotTo(HaveOccurred())
	skip := true
	return expect.Started(func(context.Context) (func(context.Context) error, error) {
		mgr, err := ctrl.NewManager(build.Unlimited(rest), ctrl.Options{
			Scheme:     kinds(),
			Metrics:    server.Options{BindAddress: "0"},
			Controller: config.Controller{SkipNameValidation: &skip},
		})
		if err != nil {
			return nil, err
		}
		if err := clusterset.SetupWithManager(mgr); err != nil {
			return nil, err
		}
		if err := (&membermirror.Reconciler{Client: mgr.GetClient(), Workers: 4}).SetupWithManager(mgr); err != nil {
			return nil, err
		}
		options.Members = membermirror.Members{Hub: mgr.GetClient()}
		return mgr.Start, klusterlet.SetupWithManager(build.Unlimited(rest), mgr, options)
	})
}
