// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/agent/enroll"
	"fleetgate.io/fleetgate/pkg/cluster/hub/importer"
	"fleetgate.io/fleetgate/test/support/env"
)

// upstreamController is one of Cluster API's controllers, in a folder that make clusterapi writes.
type upstreamController struct {
	name, folder string
	// certificate is that of its webhooks, and serving the folder with it.
	certificate []byte
	serving     string
	// webhooks, health and diagnostics are ports.
	webhooks, health, diagnostics int
}

// startClusterAPI runs Cluster API's own core, kubeadm and in-memory infrastructure controllers on the
// hub, with their definitions and webhooks.
func startClusterAPI(ctx context.Context) {
	GinkgoHelper()
	kubeconfig, err := hub.Kubeconfig("cluster-api", "system:masters")
	Expect(err).NotTo(HaveOccurred())
	home, err := env.Home()
	Expect(err).NotTo(HaveOccurred())
	names := []string{"core", "bootstrap", "controlplane", "test"}
	ports, err := env.FreePorts(3 * len(names))
	Expect(err).NotTo(HaveOccurred())
	var controllers []*upstreamController
	for i, name := range names {
		c := &upstreamController{
			name: name, folder: filepath.Join(home, "bin", "clusterapi", name), webhooks: ports[3*i], health: ports[3*i+1], diagnostics: ports[3*i+2],
		}
		c.define()
		controllers = append(controllers, c)
	}
	for _, c := range controllers {
		c.run(ctx, kubeconfig)
	}
	for _, c := range controllers {
		c.admit(ctx)
	}
}

// define creates the definitions, as the controller's kustomization would: with its webhook for
// conversions, and with labels for the versions of Cluster API's contract.
func (c *upstreamController) define() {
	GinkgoHelper()
	certificate, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	Expect(err).NotTo(HaveOccurred())
	c.certificate, c.serving = certificate, GinkgoT().TempDir()
	for name, content := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		Expect(os.WriteFile(filepath.Join(c.serving, name), content, 0o600)).To(Succeed())
	}
	options := envtest.CRDInstallOptions{Paths: []string{filepath.Join(c.folder, "config", "crd", "bases")}, ErrorIfPathMissing: true}
	Expect(envtest.ReadCRDFiles(&options)).To(Succeed(), "make clusterapi builds Cluster API")
	for _, definition := range options.CRDs {
		metav1.SetMetaDataLabel(&definition.ObjectMeta, "cluster.x-k8s.io/v1beta1", "v1beta1")
		metav1.SetMetaDataLabel(&definition.ObjectMeta, "cluster.x-k8s.io/v1beta2", "v1beta2")
		if len(definition.Spec.Versions) > 1 {
			definition.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
				Strategy: apiextensionsv1.WebhookConverter,
				Webhook: &apiextensionsv1.WebhookConversion{
					ConversionReviewVersions: []string{"v1"},
					ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: ptr.To(c.url("/convert")), CABundle: certificate},
				},
			}
		}
	}
	options.Paths = nil
	_, err = envtest.InstallCRDs(hub.Config(), options)
	Expect(err).NotTo(HaveOccurred())
}

func (c *upstreamController) url(path string) string {
	return fmt.Sprintf("https://127.0.0.1:%d%s", c.webhooks, path)
}

func (c *upstreamController) run(ctx context.Context, kubeconfig string) {
	GinkgoHelper()
	process, err := env.NewProcess(env.ProcessOptions{
		Name: "cluster-api-" + c.name, Dir: hub.Dir, Path: filepath.Join(c.folder, "manager"),
		// The in-memory API servers are at the address that their provider takes for its Pod's.
		Env: []string{"KUBECONFIG=" + kubeconfig, "POD_IP=127.0.0.1"},
		Args: []string{
			"--webhook-port=" + strconv.Itoa(c.webhooks), "--webhook-cert-dir=" + c.serving,
			fmt.Sprintf("--health-addr=127.0.0.1:%d", c.health),
			fmt.Sprintf("--diagnostics-address=127.0.0.1:%d", c.diagnostics), "--insecure-diagnostics=true",
			"--feature-gates=ClusterTopology=true",
		},
		Ready: env.Answers(http.DefaultClient, fmt.Sprintf("http://127.0.0.1:%d/readyz", c.health)),
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(process.Start(ctx)).To(Succeed())
	DeferCleanup(process.Stop)
}

// admit creates the webhooks. Those of all controllers have the same names.
func (c *upstreamController) admit(ctx context.Context) {
	GinkgoHelper()
	manifests, err := os.ReadFile(filepath.Join(c.folder, "config", "webhook", "manifests.yaml"))
	Expect(err).NotTo(HaveOccurred())
	for document := range strings.SplitSeq(string(manifests), "\n---\n") {
		var mutating admissionregistrationv1.MutatingWebhookConfiguration
		Expect(yaml.Unmarshal([]byte(document), &mutating)).To(Succeed())
		var created client.Object = &mutating
		for i := range mutating.Webhooks {
			c.serve(&mutating.Webhooks[i].ClientConfig)
		}
		if mutating.Kind != "MutatingWebhookConfiguration" {
			var validating admissionregistrationv1.ValidatingWebhookConfiguration
			Expect(yaml.Unmarshal([]byte(document), &validating)).To(Succeed())
			Expect(validating.Kind).To(Equal("ValidatingWebhookConfiguration"))
			for i := range validating.Webhooks {
				c.serve(&validating.Webhooks[i].ClientConfig)
			}
			created = &validating
		}
		created.SetName(c.name + "-cluster-api")
		Expect(hubClient.Create(ctx, created)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(hubClient.Delete(ctx, created)).To(Succeed()) })
	}
}

// serve replaces a Service by the process.
func (c *upstreamController) serve(config *admissionregistrationv1.WebhookClientConfig) {
	*config = admissionregistrationv1.WebhookClientConfig{URL: ptr.To(c.url(*config.Service.Path)), CABundle: c.certificate}
}

// list returns objects of a kind of Cluster API or a provider.
func list(ctx context.Context, namespace, group, kind string) []unstructured.Unstructured {
	GinkgoHelper()
	objects := &unstructured.UnstructuredList{}
	objects.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1beta2", Kind: kind + "List"})
	Expect(hubClient.List(ctx, objects, client.InNamespace(namespace))).To(Succeed())
	return objects.Items
}

// reportZones gives the infrastructure of each cluster two zones, which the in-memory provider does not have.
func reportZones(ctx context.Context, namespace string, clusters int) {
	GinkgoHelper()
	var infrastructures []unstructured.Unstructured
	Eventually(func() []unstructured.Unstructured {
		infrastructures = list(ctx, namespace, "infrastructure.cluster.x-k8s.io", "DevCluster")
		return infrastructures
	}).Should(HaveLen(clusters))
	for i := range infrastructures {
		mergeStatus(ctx, &infrastructures[i], `status: {failureDomains: [{name: zone-a, controlPlane: true}, {name: zone-b, controlPlane: true}]}`)
	}
}

// selfRegistered starts the agent of an imported cluster, which only an API server with kubelets would run.
func selfRegistered(ctx context.Context, cluster *registrationv1alpha1.Cluster) *agent {
	GinkgoHelper()
	values := valuesOf(ctx, &registrationv1alpha1.ClusterRegistrationToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: importer.TokenName(cluster.Name)},
	})
	return startAgent(agentOptions{
		namespace: makeAgentNamespace(ctx), bootstrap: enroll.Given(values), clientID: getCluster(ctx, cluster.Namespace, cluster.Name).Spec.ClientID,
	})
}

// Only the API servers of the clusters are not real: they know no server-side apply and run no Pods.
var _ = Describe("Clusters that Cluster API made from a ClusterClass", Label("matrix"), Ordered, func() {
	const clusters = 10
	var namespace string
	var names []string
	agents := map[string]*agent{}

	BeforeAll(func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		startClusterAPI(ctx)
		namespace = makeNamespace(ctx)
		templates, err := os.ReadFile(filepath.Join("testdata", "clusterclass.yaml"))
		Expect(err).NotTo(HaveOccurred())
		for document := range strings.SplitSeq(string(templates), "\n---\n") {
			makeObject(ctx, namespace, document)
		}
		for i := range clusters {
			name := fmt.Sprintf("class-%d-%s", i, strings.TrimPrefix(namespace, "clusters-"))
			names = append(names, name)
			makeObject(ctx, namespace, `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: `+name+`, labels: {fleetgate.io/auto-import: "true", cni: calico, team: red}}
spec:
  clusterNetwork: {pods: {cidrBlocks: [192.168.0.0/16]}, services: {cidrBlocks: [10.96.0.0/12]}}
  topology:
    classRef: {name: in-memory}
    version: v1.36.3
    controlPlane: {replicas: 1}
    workers: {machineDeployments: [{class: default-worker, name: md-0, replicas: 1}]}`)
		}
		reportZones(ctx, namespace, clusters)
	})

	It("become members with their labels, zones and versions", SpecTimeout(10*time.Minute), func(ctx SpecContext) {
		for _, name := range names {
			cluster := expectFleetCluster(ctx, namespace, name)
			expectImported(ctx, cluster, corev1.ConditionFalse, importer.ReasonApplyFailed, "https://127.0.0.1:")
			agents[name] = selfRegistered(ctx, cluster)
		}
		for _, name := range names {
			Expect(expectEnrolled(ctx, agents[name])).To(Equal(name))
			expectJoined(ctx, name)
			Eventually(func(g Gomega) {
				mc := getMember(ctx, name)
				for key, value := range map[string]string{
					"cni": "calico", "infrastructure.fleetgate.io/provider": "DevCluster", "infrastructure.fleetgate.io/cluster-class": "in-memory",
					"infrastructure.fleetgate.io/zone-zone-a": "true", "infrastructure.fleetgate.io/zone-zone-b": "true",
				} {
					g.Expect(mc.Labels).To(HaveKeyWithValue(key, value))
				}
				g.Expect(mc.Labels).NotTo(HaveKey("team"), "it is not on the list")
				for property, value := range map[string]string{
					"failure-domain-count": "2", "failure-domains": "zone-a,zone-b", "kubernetes-version": "v1.36.3", "kubernetes-minor": "36",
					"pod-cidrs": "192.168.0.0/16", "service-cidrs": "10.96.0.0/12",
				} {
					g.Expect(mc.Status.Properties).To(HaveKeyWithValue(clusterv1beta1.PropertyName("infrastructure.fleetgate.io/"+property), HaveField("Value", value)))
				}
			}).Should(Succeed())
		}
	})

	It("leave no trace when Cluster API has deleted them", SpecTimeout(10*time.Minute), func(ctx SpecContext) {
		deleted := &unstructured.Unstructured{}
		deleted.SetAPIVersion("cluster.x-k8s.io/v1beta2")
		deleted.SetKind("Cluster")
		deleted.SetNamespace(namespace)
		deleted.SetName(names[0])
		Expect(hubClient.Delete(ctx, deleted)).To(Succeed())
		expectGone(ctx, deleted)
		expectGone(ctx, &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: names[0]}})
		expectGone(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterv1beta1.MemberNamespace(names[0])}})
		Eventually(func(g Gomega) {
			for group, kind := range map[string]string{
				"cluster.x-k8s.io": "Machine", "controlplane.cluster.x-k8s.io": "KubeadmControlPlane", "infrastructure.cluster.x-k8s.io": "DevCluster",
			} {
				for _, object := range list(ctx, namespace, group, kind) {
					g.Expect(object.GetName()).NotTo(HavePrefix(names[0]), kind)
				}
			}
			for _, objects := range []client.ObjectList{
				&registrationv1alpha1.ClusterList{}, &registrationv1alpha1.ClusterRegistrationTokenList{}, &registrationv1alpha1.ClusterRegistrationList{},
				&corev1.SecretList{}, &corev1.ServiceAccountList{},
			} {
				g.Expect(hubClient.List(ctx, objects, client.InNamespace(namespace))).To(Succeed())
				g.Expect(objects).NotTo(HaveField("Items", ContainElement(HaveField("Name", ContainSubstring(names[0])))), "%T", objects)
			}
		}).Should(Succeed())

		By("keeping the others")
		for _, name := range names[1:] {
			mc := getMember(ctx, name)
			Expect(mc.UID).NotTo(BeEmpty())
			Expect(mc.DeletionTimestamp.IsZero()).To(BeTrue())
		}
	})
})
