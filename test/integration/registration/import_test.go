// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/importer"
	"fleetgate.io/fleetgate/test/env"
)

// memberKubeconfig is what an administrator of the member would put into a Secret.
func memberKubeconfig(change func(*clientcmdapi.Config)) []byte {
	GinkgoHelper()
	access := member.Config()
	config := clientcmdapi.NewConfig()
	config.CurrentContext = "default"
	config.Contexts["default"] = &clientcmdapi.Context{Cluster: "cluster", AuthInfo: "user"}
	config.Clusters["cluster"] = &clientcmdapi.Cluster{Server: member.URL, CertificateAuthorityData: member.CABundle}
	config.AuthInfos["user"] = &clientcmdapi.AuthInfo{ClientCertificateData: access.CertData, ClientKeyData: access.KeyData, Token: access.BearerToken}
	change(config)
	raw, err := clientcmd.Write(*config)
	Expect(err).NotTo(HaveOccurred())
	return raw
}

func makeImport(ctx context.Context, namespace, agentNamespace string, kubeconfig []byte) *registrationv1alpha1.Cluster {
	GinkgoHelper()
	if kubeconfig != nil {
		Expect(hubClient.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "my-cluster-kubeconfig"},
			Data:       map[string][]byte{registrationv1alpha1.KubeConfigKey: kubeconfig},
		})).To(Succeed())
	}
	cluster := &registrationv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "imported-" + namespace, Labels: map[string]string{"demo": "true", "env": "dev"}},
		Spec:       registrationv1alpha1.ClusterSpec{KubeConfigSecret: "my-cluster-kubeconfig", AgentNamespace: agentNamespace},
	}
	Expect(hubClient.Create(ctx, cluster)).To(Succeed())
	return cluster
}

func expectImported(ctx context.Context, cluster *registrationv1alpha1.Cluster, status corev1.ConditionStatus, reason, part string) {
	GinkgoHelper()
	Eventually(func() any { return getCluster(ctx, cluster.Namespace, cluster.Name).Status.Conditions }).Should(ContainElement(And(
		HaveField("Type", registrationv1alpha1.ClusterConditionImported), HaveField("Status", status), HaveField("Reason", reason),
		HaveField("Message", ContainSubstring(part)))))
}

var _ = Describe("Importing a cluster from a kubeconfig", func() {
	var namespace, agentNamespace string

	BeforeEach(func(ctx SpecContext) {
		namespace, agentNamespace = makeNamespace(ctx), makeAgentNamespace(ctx)
		DeferCleanup(func(ctx SpecContext) {
			_ = memberObjects().Delete(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "fleet-agent-" + agentNamespace}})
		})
	})

	It("installs the agent, which registers by itself, and forgets the kubeconfig", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		cluster := makeImport(ctx, namespace, agentNamespace, memberKubeconfig(func(*clientcmdapi.Config) {}))
		expectImported(ctx, cluster, corev1.ConditionTrue, importer.ReasonImported, "installed")

		By("looking at what is on the member")
		deployment, err := memberClient.AppsV1().Deployments(agentNamespace).Get(ctx, "fleet-agent", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(deployment.Spec.Template.Spec.Containers).To(ConsistOf(HaveField("Image", "agent:test")))
		var token registrationv1alpha1.ClusterRegistrationToken
		Expect(hubClient.Get(ctx, client.ObjectKey{Namespace: namespace, Name: importer.TokenName(cluster.Name)}, &token)).To(Succeed())
		Expect(token.Spec.TTL.Duration).To(Equal(12 * time.Hour))
		shown := getCluster(ctx, namespace, cluster.Name)
		Expect(metav1.IsControlledBy(&token, &shown)).To(BeTrue())
		Expect(shown.Spec.ClientID).To(HaveLen(26), "nobody can guess it")

		By("taking the kubeconfig away before the agent runs")
		Expect(hubClient.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "my-cluster-kubeconfig"}})).To(Succeed())
		a := startAgent(agentOptions{namespace: agentNamespace})
		Expect(expectEnrolled(ctx, a)).To(Equal(cluster.Name))
		expectJoined(ctx, cluster.Name)
		mc := getMember(ctx, cluster.Name)
		Expect(mc.Labels).To(And(HaveKeyWithValue("demo", "true"), HaveKeyWithValue("env", "dev")))
		Expect(mc.IsApproved()).To(BeTrue())
		expectImported(ctx, cluster, corev1.ConditionTrue, importer.ReasonImported, "installed")
	})

	It("says what is wrong with the kubeconfig", func(ctx SpecContext) {
		closed, err := env.NewLink("127.0.0.1:1")
		Expect(err).NotTo(HaveOccurred())
		Expect(closed.Close()).To(Succeed())
		startGateway(gatewayOptions{})
		tests := map[string]struct {
			kubeconfig   []byte
			reason, part string
		}{
			"no Secret": {nil, importer.ReasonKubeConfigNotFound, "make it"},
			"a command": {memberKubeconfig(func(c *clientcmdapi.Config) {
				c.AuthInfos["user"] = &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{Command: "touch", APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: "Never"}}
			}), importer.ReasonKubeConfigInvalid, "exec"},
			"a private server": {memberKubeconfig(func(c *clientcmdapi.Config) { c.Clusters["cluster"].Server = "https://" + closed.Addr() }),
				importer.ReasonUnreachable, "let its agent register by itself"},
			"a credential of another cluster": {memberKubeconfig(func(c *clientcmdapi.Config) { c.AuthInfos["user"] = &clientcmdapi.AuthInfo{Token: "wrong"} }),
				importer.ReasonKubeConfigRefused, "put a new one into the Secret"},
			"another CA": {memberKubeconfig(func(c *clientcmdapi.Config) { c.Clusters["cluster"].CertificateAuthorityData = hub.CABundle }),
				importer.ReasonUnreachable, "certificate"},
		}
		for what, tc := range tests {
			By(what)
			in := makeNamespace(ctx)
			cluster := makeImport(ctx, in, agentNamespace, tc.kubeconfig)
			expectImported(ctx, cluster, corev1.ConditionFalse, tc.reason, tc.part)
			Eventually(func() []registrationv1alpha1.GenericCondition {
				return getCluster(ctx, cluster.Namespace, cluster.Name).Status.Conditions
			}).Should(ContainElement(And(
				HaveField("Type", registrationv1alpha1.ClusterConditionReady), HaveField("Status", corev1.ConditionFalse),
				HaveField("Reason", tc.reason), HaveField("Message", And(HavePrefix("not imported: "), ContainSubstring(tc.part))))), "what get clusters shows")
		}
	})
})
