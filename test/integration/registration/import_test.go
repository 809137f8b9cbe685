// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/charts"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/importer"
	"fleetgate.io/fleetgate/pkg/placement/helmchart"
	"fleetgate.io/fleetgate/pkg/placement/helmchart/engine"
	"fleetgate.io/fleetgate/test/support/env"
)

// memberKubeconfig is the kubeconfig of the member's administrator.
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

// inProcess renders the agent's chart in this process.
type inProcess struct{}

func (inProcess) Render(_ context.Context, r *helmchart.Release) (*helmchart.Rendered, error) {
	answer := engine.Render(r)
	if answer.Problem != nil {
		return nil, answer.Problem
	}
	return answer, nil
}

func agentChart() importer.Chart {
	GinkgoHelper()
	packed, err := charts.Agent()
	Expect(err).NotTo(HaveOccurred())
	return &helmchart.Bundled{Engine: inProcess{}, Package: packed}
}

// ofFormerGateway are the labels on objects of gateways that did not use the agent's chart.
func ofFormerGateway() map[string]string {
	return map[string]string{"app.kubernetes.io/name": "fleet-agent", "app.kubernetes.io/managed-by": "fleetgate"}
}

// formerAgent is the Deployment of such a gateway, and formerBinding the binding of its account.
func formerAgent(namespace string, labels map[string]string) *appsv1.Deployment {
	selector := map[string]string{"app.kubernetes.io/name": "fleet-agent"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "fleet-agent", Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: selector},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: selector},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "agent", Image: "agent:former"}}},
			},
		},
	}
}

func formerBinding(namespace string, labels map[string]string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "fleet-agent-" + namespace, Labels: labels},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "fleet-agent"}},
	}
}

var _ = Describe("Importing a cluster from a kubeconfig", func() {
	var namespace, agentNamespace string

	BeforeEach(func(ctx SpecContext) {
		namespace, agentNamespace = makeNamespace(ctx), makeAgentNamespace(ctx)
	})

	It("replaces objects of a gateway without the agent's chart once", func(ctx SpecContext) {
		Expect(memberObjects().Create(ctx, formerAgent(agentNamespace, ofFormerGateway()))).To(Succeed())
		Expect(memberObjects().Create(ctx, formerBinding(agentNamespace, ofFormerGateway()))).To(Succeed())
		startGateway(gatewayOptions{})
		cluster := makeImport(ctx, namespace, agentNamespace, memberKubeconfig(func(*clientcmdapi.Config) {}))
		expectImported(ctx, cluster, corev1.ConditionTrue, importer.ReasonImported, "installed")

		deployment, err := memberClient.AppsV1().Deployments(agentNamespace).Get(ctx, "fleet-agent", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(deployment.Spec.Template.Spec.Containers).To(ConsistOf(HaveField("Image", "agent:test")))
		Expect(deployment.Spec.Selector.MatchLabels).To(HaveKeyWithValue("app.kubernetes.io/instance", "fleet-agent"), "as in a release of the chart")
		former := formerBinding(agentNamespace, nil)
		Expect(apierrors.IsNotFound(memberObjects().Get(ctx, client.ObjectKeyFromObject(former), former))).To(BeTrue())
		var bindings rbacv1.ClusterRoleBindingList
		Expect(memberObjects().List(ctx, &bindings)).To(Succeed())
		Expect(bindings.Items).To(ContainElement(And(HaveField("RoleRef.Name", "cluster-admin"), HaveField("Subjects", ConsistOf(HaveField("Namespace", agentNamespace))))),
			"the chart's binding is there")

		By("installing it again, which deletes nothing")
		Eventually(func() error {
			again := getCluster(ctx, namespace, cluster.Name)
			again.Spec.RedeployAgentGeneration++
			return hubClient.Update(ctx, &again)
		}).Should(Succeed())
		Eventually(func() *int64 { return getCluster(ctx, namespace, cluster.Name).Status.AgentDeployedGeneration }).Should(HaveValue(BeEquivalentTo(1)))
		same, err := memberClient.AppsV1().Deployments(agentNamespace).Get(ctx, "fleet-agent", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(same.UID).To(Equal(deployment.UID))

		By("changing the agent's settings, without redeployAgentGeneration")
		toleration := corev1.Toleration{Key: "node.example.com/new", Operator: corev1.TolerationOpExists}
		Eventually(func() error {
			again := getCluster(ctx, namespace, cluster.Name)
			again.Spec.HostNetwork, again.Spec.AgentTolerations = ptr.To(true), []corev1.Toleration{toleration}
			return hubClient.Update(ctx, &again)
		}).Should(Succeed())
		Eventually(func(g Gomega) {
			deployment, err := memberClient.AppsV1().Deployments(agentNamespace).Get(ctx, "fleet-agent", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			pod := deployment.Spec.Template.Spec
			g.Expect(pod.HostNetwork).To(BeTrue())
			g.Expect(pod.DNSPolicy).To(Equal(corev1.DNSDefault), "the DNS of a cluster without network is not reachable")
			g.Expect(pod.Tolerations).To(ContainElement(toleration))
		}).Should(Succeed())
		Expect(getCluster(ctx, namespace, cluster.Name).Status.AgentDeployedGeneration).To(HaveValue(BeEquivalentTo(1)))
	})

	It("does not touch a foreign Deployment with the agent's name, and reports it", func(ctx SpecContext) {
		Expect(memberObjects().Create(ctx, formerAgent(agentNamespace, nil))).To(Succeed())
		startGateway(gatewayOptions{})
		cluster := makeImport(ctx, namespace, agentNamespace, memberKubeconfig(func(*clientcmdapi.Config) {}))
		expectImported(ctx, cluster, corev1.ConditionFalse, importer.ReasonApplyFailed, `refuses Deployment "fleet-agent"`)
		deployment, err := memberClient.AppsV1().Deployments(agentNamespace).Get(ctx, "fleet-agent", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(deployment.Spec.Template.Spec.Containers).To(ConsistOf(HaveField("Image", "agent:former")))
	})

	It("reports settings of a Cluster that the agent's chart rejects", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		Expect(hubClient.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "my-cluster-kubeconfig"},
			Data:       map[string][]byte{registrationv1alpha1.KubeConfigKey: memberKubeconfig(func(*clientcmdapi.Config) {})},
		})).To(Succeed())
		cluster := &registrationv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "imported-" + namespace},
			Spec:       registrationv1alpha1.ClusterSpec{KubeConfigSecret: "my-cluster-kubeconfig", AgentNamespace: agentNamespace, PrivateRepoURL: "no such registry"},
		}
		Expect(hubClient.Create(ctx, cluster)).To(Succeed())
		expectImported(ctx, cluster, corev1.ConditionFalse, importer.ReasonChartFailed, "spec.privateRepoURL")
	})

	It("installs the agent, which registers by itself, and no longer needs the kubeconfig", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		cluster := makeImport(ctx, namespace, agentNamespace, memberKubeconfig(func(*clientcmdapi.Config) {}))
		expectImported(ctx, cluster, corev1.ConditionTrue, importer.ReasonImported, "installed")

		By("checking the member's objects")
		deployment, err := memberClient.AppsV1().Deployments(agentNamespace).Get(ctx, "fleet-agent", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(deployment.Spec.Template.Spec.Containers).To(ConsistOf(HaveField("Image", "agent:test")))
		var token registrationv1alpha1.ClusterRegistrationToken
		Expect(hubClient.Get(ctx, client.ObjectKey{Namespace: namespace, Name: importer.TokenName(cluster.Name)}, &token)).To(Succeed())
		Expect(token.Spec.TTL.Duration).To(Equal(12 * time.Hour))
		shown := getCluster(ctx, namespace, cluster.Name)
		Expect(metav1.IsControlledBy(&token, &shown)).To(BeTrue())
		Expect(shown.Spec.ClientID).To(HaveLen(26), "it is a random ID")

		By("deleting the kubeconfig before the agent runs")
		Expect(hubClient.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "my-cluster-kubeconfig"}})).To(Succeed())
		a := startAgent(agentOptions{namespace: agentNamespace})
		Expect(expectEnrolled(ctx, a)).To(Equal(cluster.Name))
		expectJoined(ctx, cluster.Name)
		mc := getMember(ctx, cluster.Name)
		Expect(mc.Labels).To(And(HaveKeyWithValue("demo", "true"), HaveKeyWithValue("env", "dev")))
		Expect(mc.IsApproved()).To(BeTrue())
		expectImported(ctx, cluster, corev1.ConditionTrue, importer.ReasonImported, "installed")
	})

	It("installs no agent with a Secret that a user created under the name of its token's Secret", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: importer.TokenName("imported-" + namespace)}}
		foreign.Data = map[string][]byte{registrationv1alpha1.RegistrationValuesKey: []byte(`{"apiServerURL": "https://hub.example.org", "token": "t"}`)}
		Expect(hubClient.Create(ctx, foreign)).To(Succeed())
		cluster := makeImport(ctx, namespace, agentNamespace, memberKubeconfig(func(*clientcmdapi.Config) {}))
		expectImported(ctx, cluster, corev1.ConditionFalse, importer.ReasonTokenConflict, "does not belong to ClusterRegistrationToken")
		_, err := memberClient.AppsV1().Deployments(agentNamespace).Get(ctx, "fleet-agent", metav1.GetOptions{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
	})

	It("reports an unusable kubeconfig", func(ctx SpecContext) {
		closed, err := env.NewLink("127.0.0.1:1")
		Expect(err).NotTo(HaveOccurred())
		Expect(closed.Close()).To(Succeed())
		startGateway(gatewayOptions{})
		tests := map[string]struct {
			kubeconfig   []byte
			reason, part string
		}{
			"no Secret": {nil, importer.ReasonKubeConfigNotFound, "create it"},
			"a command": {memberKubeconfig(func(c *clientcmdapi.Config) {
				c.AuthInfos["user"] = &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{Command: "touch", APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: "Never"}}
			}), importer.ReasonKubeConfigInvalid, "exec"},
			"unreachable server": {memberKubeconfig(func(c *clientcmdapi.Config) { c.Clusters["cluster"].Server = "https://" + closed.Addr() }),
				importer.ReasonUnreachable, "let its agent register by itself"},
			"credential of another cluster": {memberKubeconfig(func(c *clientcmdapi.Config) { c.AuthInfos["user"] = &clientcmdapi.AuthInfo{Token: "wrong"} }),
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
