// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package immutability_test enforces ImmutabilityPolicies on a real hub with two replicas of the
// gateway's policy engine, on its own kinds and on those of Cluster API's Azure provider.
package immutability_test

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/apis/crds"
	"fleetgate.io/fleetgate/pkg/webhook/capz"
	"fleetgate.io/fleetgate/pkg/webhook/immutability"
	"fleetgate.io/fleetgate/test/support/artifacts"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
)

// failClosedGroup is the only group whose policies may fail closed in this suite.
const failClosedGroup = "closed.example.org"

var (
	hub    *env.Cluster
	scheme *runtime.Scheme
	// masters is a break-glass user in group system:masters.
	masters client.Client
	front   *balancer
)

func TestImmutability(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real API servers")
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(60 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "ImmutabilityPolicies on a hub", Label("integration", "admission"))
}

var _ = artifacts.Report()

var _ = BeforeSuite(func(ctx SpecContext) {
	ctrl.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	if definitions, _ := filepath.Glob(filepath.Join(schemas(), "capz", "*.yaml")); len(definitions) == 0 && os.Getenv("FLEETGATE_SCHEMAS") == "" {
		Skip("the definitions of Cluster API's kinds for Azure are not part of the project: set FLEETGATE_SCHEMAS, see CONTRIBUTING.md")
	}
	var err error
	hub, err = env.Start(ctx, env.Options{Name: "hub", Audit: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(hub.Stop(ctx)).To(Succeed()) })
	scheme = build.Scheme(clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, admissionv1alpha1.AddToScheme)
	masters = expect.Client(hub.Config(), scheme)
	installDefinitions(ctx)
	expect.Created(ctx, masters, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterv1beta1.SystemNamespace}})
	applyGatewayRole(ctx)

	front = newBalancer()
	DeferCleanup(front.server.Close)
	front.replicas = []http.Handler{startReplica(true), startReplica(false)}
	applyPack(ctx)
})

// schemas is the directory with the CRDs of other projects: FLEETGATE_SCHEMAS, or beside the
// checkout.
func schemas() string {
	GinkgoHelper()
	if dir := os.Getenv("FLEETGATE_SCHEMAS"); dir != "" {
		return dir
	}
	home, err := env.Home()
	Expect(err).NotTo(HaveOccurred())
	return filepath.Join(home, "..", "..", "shared", "schemas")
}

func installDefinitions(ctx context.Context) {
	GinkgoHelper()
	definitions, err := crds.ForHub(admissionv1alpha1.GroupVersion.Group)
	Expect(err).NotTo(HaveOccurred())
	foreign, err := filepath.Glob(filepath.Join(schemas(), "capz", "*.yaml"))
	Expect(err).NotTo(HaveOccurred())
	Expect(foreign).NotTo(BeEmpty(), "no definitions in %s: set FLEETGATE_SCHEMAS", schemas())
	for _, path := range foreign {
		content, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		definition := &apiextensionsv1.CustomResourceDefinition{}
		Expect(yaml.Unmarshal(content, definition)).To(Succeed())
		definition.Spec.Conversion = nil
		definition.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
		definitions = append(definitions, definition)
	}
	for group, kinds := range map[string]map[string]string{
		"cluster.x-k8s.io":                {"Cluster": "clusters", "MachinePool": "machinepools"},
		"infrastructure.cluster.x-k8s.io": {"AzureMachinePoolMachine": "azuremachinepoolmachines"},
		"example.org":                     {"Widget": "widgets"},
		failClosedGroup:                   {"Door": "doors"},
	} {
		for kind, plural := range kinds {
			definitions = append(definitions, definitionOf(group, kind, plural))
		}
	}
	for _, definition := range definitions {
		expect.Created(ctx, masters, definition)
	}
	for _, definition := range definitions {
		Eventually(func(g Gomega) {
			g.Expect(masters.Get(ctx, client.ObjectKeyFromObject(definition), definition)).To(Succeed())
			g.Expect(definition.Status.Conditions).To(ContainElement(And(
				HaveField("Type", apiextensionsv1.Established), HaveField("Status", apiextensionsv1.ConditionTrue))))
		}).Should(Succeed())
	}
}

// applyPack creates the pack and waits until its last policy rejects a request.
func applyPack(ctx context.Context) {
	GinkgoHelper()
	policies, err := capz.Policies()
	Expect(err).NotTo(HaveOccurred())
	for _, policy := range policies {
		Eventually(func() error { return masters.Create(ctx, policy.DeepCopy()) }).Should(Succeed(), policy.Name)
	}
	for _, policy := range policies {
		eventuallyEnforced(ctx, policy.Name)
	}
	Eventually(func() error { return masters.Create(ctx, azureCluster("default", "probe-"+long), client.DryRunAll) }).
		Should(MatchError(ContainSubstring("44 characters")))
}

// balancer distributes requests round-robin over its replicas, like a Service.
type balancer struct {
	server   *httptest.Server
	replicas []http.Handler
	turn     atomic.Int64
	down     atomic.Bool
}

func newBalancer() *balancer {
	b := &balancer{}
	b.server = httptest.NewTLSServer(b)
	return b
}

// ServeHTTP forwards a request to the next replica. While down, it breaks the connection.
func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if b.down.Load() {
		panic(http.ErrAbortHandler)
	}
	b.replicas[b.turn.Add(1)%int64(len(b.replicas))].ServeHTTP(w, r)
}

func (b *balancer) clientConfig(context.Context) (admissionregistrationv1.WebhookClientConfig, error) {
	return admissionregistrationv1.WebhookClientConfig{
		URL:      &b.server.URL,
		CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b.server.Certificate().Raw}),
	}, nil
}

// startReplica runs the policy engine with the gateway's user and role. The leader maintains
// webhooks and status.
func startReplica(leader bool) http.Handler {
	GinkgoHelper()
	gateway, err := hub.ConfigFor("fleetgate:gateway")
	Expect(err).NotTo(HaveOccurred())
	skip := true
	manager, err := ctrl.NewManager(gateway, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &skip},
	})
	Expect(err).NotTo(HaveOccurred())
	compiler, err := immutability.NewCompiler()
	Expect(err).NotTo(HaveOccurred())
	policies, failClosed := immutability.NewPolicies(compiler), sets.New(failClosedGroup)
	ctx, cancel := context.WithCancel(context.Background())
	informer, err := manager.GetCache().GetInformer(ctx, &admissionv1alpha1.ImmutabilityPolicy{})
	Expect(err).NotTo(HaveOccurred())
	Expect(policies.Follow(informer)).To(Succeed())
	if leader {
		clientset, err := kubernetes.NewForConfig(gateway)
		Expect(err).NotTo(HaveOccurred())
		Expect((&immutability.WebhookReconciler{
			Client: manager.GetClient(), Live: manager.GetAPIReader(), Policies: policies, ClientConfig: front.clientConfig, FailClosed: failClosed,
			Namespace: clusterv1beta1.SystemNamespace, Clock: clock.RealClock{},
		}).SetupWithManager(manager)).To(Succeed())
		Expect((&immutability.StatusReconciler{
			Client: manager.GetClient(), Policies: policies, Mapper: manager.GetRESTMapper(),
			Schemas: &resolver.ClientDiscoveryResolver{Discovery: clientset.Discovery()}, FailClosed: failClosed,
		}).SetupWithManager(manager)).To(Succeed())
	}
	mux := http.NewServeMux()
	mux.Handle(immutability.PathPrefix, (&immutability.Handler{
		Policies: policies, Live: manager.GetAPIReader(), Mapper: manager.GetRESTMapper(), Namespaces: manager.GetClient(), Writer: manager.GetClient(),
		FailClosed: failClosed, Namespace: clusterv1beta1.SystemNamespace, Clock: clock.RealClock{},
	}).Serving())
	mux.Handle(immutability.PathAuthor, &admission.Webhook{Handler: &immutability.Author{
		Compiler: compiler, Writer: manager.GetClient(), Mapper: manager.GetRESTMapper(),
	}})
	done := make(chan error, 1)
	go func() { done <- manager.Start(ctx) }()
	DeferCleanup(func() {
		cancel()
		Eventually(done).Should(Receive(BeNil()))
	})
	Eventually(policies.Synced).Should(BeTrue())
	return mux
}

// definitionOf returns a CRD whose objects can have any field; a few fields have a type.
func definitionOf(group, kind, plural string) *apiextensionsv1.CustomResourceDefinition {
	keep := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name:        plural + "." + group,
			Annotations: map[string]string{"api-approved.kubernetes.io": "unapproved, for a test"},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, Plural: plural},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1beta1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"spec": {Type: "object", XPreserveUnknownFields: &keep, Properties: map[string]apiextensionsv1.JSONSchemaProps{
							"providerID": {Type: "string"}, "color": {Type: "string"}, "size": {Type: "integer"},
						}},
						"status": {Type: "object", XPreserveUnknownFields: &keep},
					},
				}},
			}},
		},
	}
}

// objectFrom parses one object of YAML.
func objectFrom(text string) *unstructured.Unstructured {
	GinkgoHelper()
	object := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal([]byte(text), &object.Object)).To(Succeed())
	return object
}
