// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/agent/enroll"
	"fleetgate.io/fleetgate/pkg/cluster/hub/clusterapi"
	"fleetgate.io/fleetgate/pkg/cluster/hub/importer"
)

// makeObject applies an object of Cluster API, a provider or a user.
func makeObject(ctx context.Context, namespace, document string) *unstructured.Unstructured {
	GinkgoHelper()
	o := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal([]byte(document), &o.Object)).To(Succeed())
	o.SetNamespace(namespace)
	Expect(hubClient.Create(ctx, o)).To(Succeed())
	return o
}

func mergeStatus(ctx context.Context, o *unstructured.Unstructured, document string) {
	GinkgoHelper()
	patch, err := yaml.YAMLToJSON([]byte(document))
	Expect(err).NotTo(HaveOccurred())
	Expect(hubClient.Status().Patch(ctx, o, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
}

// makeKubeconfig creates the Secret of Cluster API's contract, with a change.
func makeKubeconfig(ctx context.Context, namespace, cluster string, change func(*corev1.Secret)) {
	GinkgoHelper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster + "-kubeconfig", Labels: map[string]string{"cluster.x-k8s.io/cluster-name": cluster}},
		Type:       "cluster.x-k8s.io/secret",
		Data:       map[string][]byte{registrationv1alpha1.KubeConfigKey: memberKubeconfig(func(*clientcmdapi.Config) {})},
	}
	change(secret)
	Expect(hubClient.Create(ctx, secret)).To(Succeed())
}

func asItIs(*corev1.Secret) {}

// importedAgent starts the agent that an import has installed in the member's fleet-system. It gets its
// own namespace, because several are installed there one after the other.
func importedAgent(ctx context.Context, cluster *registrationv1alpha1.Cluster) *agent {
	GinkgoHelper()
	expectImported(ctx, cluster, corev1.ConditionTrue, importer.ReasonImported, "installed")
	secret, err := memberClient.CoreV1().Secrets(clusterv1beta1.SystemNamespace).Get(ctx, enroll.BootstrapSecret, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	values, err := enroll.ParseBootstrap(secret.Data[registrationv1alpha1.RegistrationValuesKey])
	Expect(err).NotTo(HaveOccurred())
	return startAgent(agentOptions{namespace: makeAgentNamespace(ctx), bootstrap: enroll.Given(values)})
}

func expectFleetCluster(ctx context.Context, namespace, name string) *registrationv1alpha1.Cluster {
	GinkgoHelper()
	cluster := &registrationv1alpha1.Cluster{}
	Eventually(func() error { return hubClient.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, cluster) }).Should(Succeed())
	return cluster
}

func hasFleetCluster(ctx context.Context, namespace, name string) bool {
	return getCluster(ctx, namespace, name).UID != ""
}

var _ = Describe("A cluster of Cluster API", Ordered, func() {
	var namespace, name string

	BeforeAll(func(ctx SpecContext) {
		// The gateway runs before Cluster API is installed on the hub.
		startGateway(gatewayOptions{})
		_, err := envtest.InstallCRDs(hub.Config(), envtest.CRDInstallOptions{Paths: []string{"testdata/cluster-api.yaml"}, ErrorIfPathMissing: true})
		Expect(err).NotTo(HaveOccurred())
	})

	BeforeEach(func(ctx SpecContext) {
		namespace = makeNamespace(ctx)
		name = "made-" + strings.TrimPrefix(namespace, "clusters-")
	})

	It("is imported once its control plane was available and its kubeconfig exists, with its properties", func(ctx SpecContext) {
		infrastructure := makeObject(ctx, namespace, `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: AzureCluster
metadata: {name: infra, annotations: {cluster.x-k8s.io/managed-by: others}}
spec: {location: westeurope, resourceGroup: rg-1, subscriptionID: 0000-1111}`)
		makeObject(ctx, namespace, `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: AzureMachinePool
metadata: {name: spot}
spec: {template: {spotVMOptions: {evictionPolicy: Delete}}}`)
		makeObject(ctx, namespace, `
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata: {name: spot, labels: {cluster.x-k8s.io/cluster-name: `+name+`}}
spec: {template: {spec: {infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: AzureMachinePool, name: spot}}}}`)
		origin := makeObject(ctx, namespace, `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata:
  name: `+name+`
  labels: {fleetgate.io/auto-import: "true", cni: calico, team: red, cluster.x-k8s.io/watch-filter: x}
  finalizers: [cluster.cluster.x-k8s.io]
spec: {infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: AzureCluster, name: infra}}`)

		By("creating Secrets that only resemble the right one")
		makeKubeconfig(ctx, namespace, name, func(s *corev1.Secret) { s.Name += "-user" })
		mergeStatus(ctx, origin, `status: {phase: Provisioned, failureDomains: {"1": {}, "2": {}, "3": {}}}`)
		Consistently(hasFleetCluster).WithArguments(ctx, namespace, name).Should(BeFalse(), "the control plane was not available")
		mergeStatus(ctx, origin, `status: {conditions: [{type: ControlPlaneInitialized, status: "True"}]}`)
		Consistently(hasFleetCluster).WithArguments(ctx, namespace, name).Should(BeFalse(), "the kubeconfig is missing")
		makeKubeconfig(ctx, namespace, name, asItIs)

		a := importedAgent(ctx, expectFleetCluster(ctx, namespace, name))
		Expect(expectEnrolled(ctx, a)).To(Equal(name))
		expectJoined(ctx, name)
		Eventually(func(g Gomega) {
			mc := getMember(ctx, name)
			for key, value := range map[string]string{
				"cni": "calico", "topology.kubernetes.io/region": "westeurope", "fleet.azure.com/location": "westeurope",
				"fleet.azure.com/resource-group": "rg-1", "fleet.azure.com/subscription-id": "0000-1111",
				"infrastructure.fleetgate.io/provider": "AzureCluster", "infrastructure.fleetgate.io/spot": "true",
				"infrastructure.fleetgate.io/externally-managed": "true", "infrastructure.fleetgate.io/zone-2": "true",
			} {
				g.Expect(mc.Labels).To(HaveKeyWithValue(key, value))
			}
			g.Expect(mc.Labels).NotTo(Or(HaveKey("team"), HaveKey("cluster.x-k8s.io/watch-filter")))
			g.Expect(mc.Status.Properties).To(And(
				HaveKeyWithValue(clusterv1beta1.PropertyName("infrastructure.fleetgate.io/failure-domain-count"), HaveField("Value", "3")),
				HaveKeyWithValue(clusterv1beta1.PropertyName("infrastructure.fleetgate.io/spot-pool-count"), HaveField("Value", "1")),
				HaveKey(clusterv1beta1.PropertyNodeCount)))
		}).Should(Succeed())

		before := infrastructure.GetResourceVersion()
		Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(infrastructure), infrastructure)).To(Succeed())
		Expect(infrastructure.GetResourceVersion()).To(Equal(before), "foreign objects are never written")

		By("changing its properties")
		mergeStatus(ctx, origin, `status: {failureDomains: {"3": null}}`)
		Eventually(func(g Gomega) {
			mc := getMember(ctx, name)
			g.Expect(mc.Labels).NotTo(HaveKey("infrastructure.fleetgate.io/zone-3"))
			g.Expect(mc.Status.Properties).To(
				HaveKeyWithValue(clusterv1beta1.PropertyName("infrastructure.fleetgate.io/failure-domain-count"), HaveField("Value", "2")))
		}).Should(Succeed())

		By("deleting it, with its agent stopped and a finalizer on its Work")
		a.end()
		Expect(hubClient.Create(ctx, &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{
			Namespace: clusterv1beta1.MemberNamespace(name), Name: "held", Finalizers: []string{"kubernetes-fleet.io/work-cleanup"},
		}})).To(Succeed())
		Expect(hubClient.Delete(ctx, origin)).To(Succeed())
		Eventually(func() bool { return getMember(ctx, name).DeletionTimestamp.IsZero() }).Should(BeFalse())
		Expect(hubClient.Patch(ctx, origin, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
		expectGone(ctx, &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
		Eventually(hasFleetCluster).WithArguments(ctx, namespace, name).Should(BeFalse())
		_, err := memberClient.AppsV1().Deployments(clusterv1beta1.SystemNamespace).Get(ctx, "fleet-agent", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred(), "the member's objects stay")
	})

	It("of the newer version is imported with its namespace, unless it opts out", func(ctx SpecContext) {
		Expect(hubClient.Patch(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
			client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"fleetgate.io/auto-import":"true"}}}`)))).To(Succeed())
		status := `status: {initialization: {controlPlaneInitialized: true}, failureDomains: [{name: eu-1a}]}`
		refused := makeObject(ctx, namespace, `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: no-`+name+`, labels: {fleetgate.io/auto-import: "false"}}
spec: {infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: AzureCluster, name: missing}}`)
		origin := makeObject(ctx, namespace, `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: `+name+`}
spec: {infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: AzureCluster, name: missing}}`)
		for _, o := range []*unstructured.Unstructured{refused, origin} {
			makeKubeconfig(ctx, namespace, o.GetName(), asItIs)
			mergeStatus(ctx, o, status)
		}
		cluster := expectFleetCluster(ctx, namespace, name)
		Expect(cluster.Labels).To(HaveKeyWithValue("topology.kubernetes.io/zone", "eu-1a"))
		Expect(cluster.Annotations[clusterv1beta1.AnnotationProperties]).To(ContainSubstring(`failure-domain-count":"1"`))
		expectImported(ctx, cluster, corev1.ConditionTrue, importer.ReasonImported, "installed")
		Expect(hasFleetCluster(ctx, namespace, refused.GetName())).To(BeFalse())

		By("creating another one of its name")
		Expect(hubClient.Delete(ctx, origin)).To(Succeed())
		origin.SetResourceVersion("")
		origin.SetUID("")
		Expect(hubClient.Create(ctx, origin)).To(Succeed())
		mergeStatus(ctx, origin, status)
		Eventually(func() string { return getCluster(ctx, namespace, name).Annotations[clusterapi.AnnotationOriginUID] }).Should(Equal(string(origin.GetUID())))
		Expect(getCluster(ctx, namespace, name).UID).NotTo(Equal(cluster.UID))
	})

	It("with an invalid kubeconfig, or the name of another Cluster, reports it", func(ctx SpecContext) {
		taken := "taken-" + name
		Expect(hubClient.Create(ctx, &registrationv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: taken}})).To(Succeed())
		for _, cluster := range []string{name, taken} {
			origin := makeObject(ctx, namespace, `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: `+cluster+`, labels: {fleetgate.io/auto-import: "true"}}
spec: {}`)
			mergeStatus(ctx, origin, `status: {initialization: {controlPlaneInitialized: true}}`)
		}
		makeKubeconfig(ctx, namespace, name, func(s *corev1.Secret) {
			s.Data[registrationv1alpha1.KubeConfigKey] = memberKubeconfig(func(c *clientcmdapi.Config) {
				c.AuthInfos["user"] = &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
					Command: "kubelogin", APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: "Never",
				}}
			})
		})
		makeKubeconfig(ctx, namespace, taken, asItIs)
		expectImported(ctx, expectFleetCluster(ctx, namespace, name), corev1.ConditionFalse, importer.ReasonKubeConfigInvalid, "exec")
		Eventually(func(g Gomega) {
			var events corev1.EventList
			g.Expect(hubClient.List(ctx, &events, client.InNamespace(namespace))).To(Succeed())
			g.Expect(events.Items).To(ContainElement(And(
				HaveField("Reason", clusterapi.EventNameTaken), HaveField("InvolvedObject.Name", taken), HaveField("Message", ContainSubstring("was not created for this one")))))
		}).Should(Succeed())
		Expect(getCluster(ctx, namespace, taken).Spec.KubeConfigSecret).To(BeEmpty())
	})
})
