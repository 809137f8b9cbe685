// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission_test writes objects to a real hub whose API server calls the gateway's webhooks
// and evaluates its policies.
package admission_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	cmv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/apis/crds"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/apiserver/frontproxy"
	"fleetgate.io/fleetgate/pkg/install"
	"fleetgate.io/fleetgate/pkg/serviceaccount/hub/argocd"
	"fleetgate.io/fleetgate/pkg/webhook"
	"fleetgate.io/fleetgate/pkg/webhook/intake"
	"fleetgate.io/fleetgate/pkg/webhook/policies"
	"fleetgate.io/fleetgate/pkg/webhook/serving"
	"fleetgate.io/fleetgate/test/support/artifacts"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
	"fleetgate.io/fleetgate/test/support/mutation"
)

const (
	service       = "gateway"
	gatewayUser   = "fleetgate:gateway"
	tokenLifetime = 7 * 24 * time.Hour
)

var (
	hub    *env.Cluster
	scheme *runtime.Scheme
	// masters is a break-glass user in group system:masters.
	masters client.Client
	gateway *runningGateway
)

func TestAdmission(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real API servers")
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(90 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "Admission on a hub", Label("integration", "admission"))
}

var _ = artifacts.Report()

var _ = BeforeSuite(func(ctx SpecContext) {
	ctrl.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	var err error
	hub, err = env.Start(ctx, env.Options{Name: "hub", Audit: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(hub.Stop(ctx)).To(Succeed()) })

	scheme = build.Scheme(clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme,
		placementv1beta1.AddToScheme, clusterv1beta1.AddToScheme, cmv1.AddToScheme)
	masters = clientFor(hub.Config())
	applyGatewayRole(ctx)
	gateway = newGateway(ctx)
	makeLeftovers(ctx)
	gateway.start()
	DeferCleanup(func() { gateway.stop() })
	Expect(gateway.installer.InstallServing(ctx)).To(Succeed())
	prepareMember(ctx)
	waitUntilAdmissionIsOn(ctx)
})

func clientFor(config *rest.Config) client.Client {
	GinkgoHelper()
	return expect.Client(config, scheme)
}

// applyGatewayRole grants the gateway exactly the rights of an installation.
func applyGatewayRole(ctx context.Context) {
	GinkgoHelper()
	manifest, err := os.ReadFile("../../support/fleet/gateway-rbac.yaml")
	Expect(err).NotTo(HaveOccurred())
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return
		}
		Expect(err).NotTo(HaveOccurred())
		if object.GetName() == "fleetgate-native-policies" {
			continue // The chart creates it only on request.
		}
		Expect(masters.Create(ctx, object)).To(Succeed())
	}
}

// runningGateway is the gateway's admission: webhooks, their certificate, and the configurations
// that point the hub's API server at them.
type runningGateway struct {
	config       *rest.Config
	client       client.Client
	port         int
	certificates *serving.Certificates
	handover     *intake.Handover
	installer    *install.Installer
	guardRails   policies.GuardRails
	// strictEnvelopes is read on start.
	strictEnvelopes bool
	// trustAuthors is read on start; the hub follows after InstallServing.
	trustAuthors bool

	cancel context.CancelFunc
	done   chan error
}

func newGateway(ctx context.Context) *runningGateway {
	GinkgoHelper()
	config, err := hub.ConfigFor(gatewayUser)
	Expect(err).NotTo(HaveOccurred())
	ports, err := env.FreePorts(1)
	Expect(err).NotTo(HaveOccurred())
	definitions, err := crds.ForHub(placementv1beta1.GroupVersion.Group, clusterv1beta1.GroupVersion.Group)
	Expect(err).NotTo(HaveOccurred())
	g := &runningGateway{config: config, client: clientFor(config), port: ports[0]}
	g.installer = &install.Installer{
		Client: g.client, Definitions: definitions, Version: "v0.1.0", Clock: clock.RealClock{},
		APIs: []install.GroupVersion{{Group: intake.GroupVersion.Group, Version: intake.GroupVersion.Version, Port: int32(g.port)}},
		Hub:  install.Hub{Namespace: clusterv1beta1.SystemNamespace, Service: service, ExternalName: "127.0.0.1", APIPort: 8443},
	}
	g.handover = &intake.Handover{
		Hub: g.client, Namespace: clusterv1beta1.SystemNamespace, Service: service, Port: int32(g.port), ServerName: serviceName,
		Mutating: []string{policies.MutatingConfiguration}, Validating: []string{policies.ValidatingConfiguration}, Clock: clock.RealClock{},
	}
	Expect(g.installer.InstallBase(ctx)).To(Succeed())
	Expect(g.installer.InstallDefinitions(ctx)).To(Succeed())
	return g
}

// start returns once webhooks answer and the installer has their CA.
func (g *runningGateway) start() {
	GinkgoHelper()
	name := service + "." + clusterv1beta1.SystemNamespace + ".svc"
	g.certificates = serving.FromAuthority(g.client, clusterv1beta1.SystemNamespace, []string{name})
	clientset, err := kubernetes.NewForConfig(g.config)
	Expect(err).NotTo(HaveOccurred())
	proxy, err := frontproxy.Read(context.Background(), clientset)
	Expect(err).NotTo(HaveOccurred())
	manager, err := ctrl.NewManager(g.config, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: intake.NewServer(intake.Options{
			Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(g.port)), GetCertificate: g.certificates.GetCertificate,
			FrontProxy: proxy.FrontProxy, Unproved: g.handover.Unproved,
		}),
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(manager.Add(g.certificates)).To(Succeed())
	Expect(webhook.Register(manager, webhook.Strictness{StrictEnvelopes: g.strictEnvelopes, TrustAuthors: g.trustAuthors})).To(Succeed())

	ctx, cancel := context.WithCancel(context.Background())
	g.cancel, g.done = cancel, make(chan error, 1)
	go func() { g.done <- manager.Start(ctx) }()
	Expect(g.certificates.WaitForFirst(ctx)).To(Succeed())
	Eventually(func() error { return manager.GetWebhookServer().StartedChecker()(nil) }).Should(Succeed())
	g.guardRails = policies.GuardRailsSelected
	g.want(ctx)
}

// want configures the installer for the current settings.
func (g *runningGateway) want(ctx context.Context) {
	GinkgoHelper()
	ca, err := g.certificates.CABundle(ctx)
	Expect(err).NotTo(HaveOccurred())
	g.installer.Hub.CABundle = ca
	parameters := policies.Parameters{
		TokenLifetime: tokenLifetime, GatewayUser: gatewayUser, GatewayNamespace: clusterv1beta1.SystemNamespace,
		ArgoCD: types.NamespacedName{Namespace: "argocd", Name: argocd.Account},
	}
	g.installer.Extra = mutation.Left(slices.Concat(
		policies.Members(parameters),
		policies.MemberBounds(),
		policies.Identities(parameters),
		policies.Gateway(parameters),
		g.guardRails.Of(parameters),
		policies.HelmCharts(), policies.Authors(), policies.Definitions(g.guardRails),
		policies.Deliveries(parameters),
		webhook.Configurations(webhook.Endpoint{Aggregated: true, TrustAuthors: g.trustAuthors}),
	))
	g.installer.Obsolete = g.guardRails.Obsolete(parameters)
}

func (g *runningGateway) stop() {
	GinkgoHelper()
	if g.cancel == nil {
		return
	}
	g.cancel()
	g.cancel = nil
	Eventually(g.done).Should(Receive(BeNil()))
}

// waitUntilAdmissionIsOn sends invalid objects until they are rejected. The API server takes a
// moment to notice new configurations and policies.
func waitUntilAdmissionIsOn(ctx context.Context) {
	GinkgoHelper()
	for _, resource := range []client.Object{
		clusterPlacement(selecting("v1", "Nothing", "n")),
		resourcePlacement(selecting("v1", "Nothing", "n")),
		clusterOverride(),
		resourceOverride(),
		envelope(map[string]any{"kind": "Nothing"}),
		clusterEnvelope(map[string]any{"kind": "Nothing"}),
	} {
		Eventually(func() error { return masters.Create(ctx, resource.DeepCopyObject().(client.Object), client.DryRunAll) }).
			Should(MatchError(ContainSubstring("denied the request")))
	}
	member := newMemberIdentity(ctx)
	Eventually(func() error {
		return member.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: memberNamespace, Name: "x"}}, client.DryRunAll)
	}).Should(MatchError(ContainSubstring("fleetgate-member-secrets")))
	Eventually(func() error { return requestToken(ctx, member, "agent", 2*tokenLifetime, "") }).
		Should(MatchError(ContainSubstring("fleetgate-member-token-requests")))
	var policies admissionregistrationv1.ValidatingAdmissionPolicyList
	Expect(masters.List(ctx, &policies)).To(Succeed())
	for _, policy := range policies.Items {
		Expect(policy.Status.TypeChecking).To(Or(BeNil(), HaveField("ExpressionWarnings", BeEmpty())), policy.Name)
	}
}
