// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/agent/enroll"
	"fleetgate.io/fleetgate/pkg/cluster/hub/importer"
	"fleetgate.io/fleetgate/pkg/cluster/hub/registration"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// expectToken waits for a condition of a registration token.
func expectToken(ctx context.Context, namespace, name, condition, reason, part string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		var token registrationv1alpha1.ClusterRegistrationToken
		g.Expect(hubClient.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &token)).To(Succeed())
		g.Expect(token.Status.Conditions).To(ContainElement(And(
			HaveField("Type", condition), HaveField("Reason", reason), HaveField("Message", ContainSubstring(part)))))
	}).Should(Succeed())
}

// expectLabel waits for the label env of a member, and for the keys that are marked as its agent's
// choice.
func expectLabel(ctx context.Context, name, env, marked string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		mc := getMember(ctx, name)
		g.Expect(mc.Labels["env"]).To(Equal(env))
		g.Expect(mc.Annotations[registration.AnnotationSelfAssignedLabels]).To(Equal(marked))
	}).Should(Succeed())
}

var _ = Describe("The bearer of a leaked registration token", Label("hostile"), func() {
	oneUse := map[string]string{registrationv1alpha1.AnnotationUses: "1"}
	register := func(ctx context.Context, clientID string, values *enroll.Bootstrap) *agent {
		return startAgent(agentOptions{
			namespace: makeAgentNamespace(ctx), clientID: clientID, bootstrap: enroll.Given(values), labels: map[string]string{"env": "prod"},
		})
	}
	clustersIn := func(ctx context.Context, namespace string) []registrationv1alpha1.Cluster {
		GinkgoHelper()
		var clusters registrationv1alpha1.ClusterList
		Expect(hubClient.List(ctx, &clusters, client.InNamespace(namespace))).To(Succeed())
		return clusters.Items
	}

	It("cannot register besides the one cluster of the token, whenever the gateway is killed", Label("crash"), func(ctx SpecContext) {
		type life struct {
			namespace string
			killed    *crash
			values    *enroll.Bootstrap
			agents    []*agent
		}
		var lives []*life
		var crashes []*crash
		startGateway(gatewayOptions{})
		for at := range 6 {
			l := &life{namespace: makeNamespace(ctx)}
			l.killed, l.values = newCrash(at+1, l.namespace), makeTokenWith(ctx, l.namespace, "once", time.Hour, oneUse)
			lives, crashes = append(lives, l), append(crashes, l.killed)
		}
		endUsualGateway()

		By("creating two requests before a gateway runs")
		for _, l := range lives {
			l.agents = []*agent{register(ctx, l.namespace+"-a", l.values), register(ctx, l.namespace+"-b", l.values)}
			Eventually(func(g Gomega) {
				var requests registrationv1alpha1.ClusterRegistrationList
				g.Expect(hubClient.List(ctx, &requests, client.InNamespace(l.namespace))).To(Succeed())
				g.Expect(requests.Items).To(HaveLen(2))
			}).Should(Succeed())
		}
		first := startGateway(gatewayOptions{config: configOf(crashes...)})
		for _, l := range lives {
			Eventually(l.killed.dead).Should(BeClosed())
		}
		first.end()

		By("continuing with another gateway")
		startGateway(gatewayOptions{})
		for _, l := range lives {
			Eventually(func() []string {
				return []string{refusal.ReasonOf(l.agents[0].enroller.Ready()), refusal.ReasonOf(l.agents[1].enroller.Ready())}
			}).Should(ConsistOf("", enroll.RegistrationRefused))
			for _, a := range l.agents {
				if err := a.enroller.Ready(); err != nil {
					Expect(err).To(MatchError(ContainSubstring("has reached its use limit, 1 of 1")))
				}
			}
			Expect(clustersIn(ctx, l.namespace)).To(HaveLen(1))
			expectToken(ctx, l.namespace, "once", registrationv1alpha1.TokenConditionReady, registrationv1alpha1.TokenReasonUseLimitReached, "names the Clusters")
		}
	}, SpecTimeout(4*time.Minute))

	It("cannot register again once the Cluster was deleted", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		namespace, agentNamespace := makeNamespace(ctx), makeAgentNamespace(ctx)
		values := makeTokenWith(ctx, namespace, "once", time.Hour, oneUse)
		a := startAgent(agentOptions{namespace: agentNamespace, clientID: namespace, bootstrap: enroll.Given(values)})
		name := expectEnrolled(ctx, a)
		a.end()
		cluster := getCluster(ctx, namespace, name)
		Expect(hubClient.Delete(ctx, &cluster)).To(Succeed())
		// A patch, because the gateway writes the member concurrently, or has already removed it.
		member := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		gone := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"fleetgate.io/gone":"true"}}}`))
		Expect(client.IgnoreNotFound(hubClient.Patch(ctx, member, gone))).To(Succeed())
		expectGone(ctx, &cluster)

		again := startAgent(agentOptions{namespace: agentNamespace, clientID: namespace, bootstrap: enroll.Given(values)})
		expectProblem(again, enroll.RegistrationRefused, "has reached its use limit, 1 of 1")
		Expect(clustersIn(ctx, namespace)).To(BeEmpty())
	})

	It("cannot register while the token's uses are unreadable", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		namespace := makeNamespace(ctx)
		values := makeTokenWith(ctx, namespace, "typo", time.Hour, map[string]string{registrationv1alpha1.AnnotationUses: "one"})
		expectProblem(register(ctx, namespace, values), enroll.RegistrationRefused, "no whole number from 1 to 1000")
		expectToken(ctx, namespace, "typo", registrationv1alpha1.TokenConditionReady, registrationv1alpha1.TokenReasonInvalid, "correct it")
		Expect(clustersIn(ctx, namespace)).To(BeEmpty())
	})

	It("chooses labels, which are marked, and are ignored if the gateway says so", func(ctx SpecContext) {
		first := startGateway(gatewayOptions{})
		namespace := makeNamespace(ctx)
		a := register(ctx, namespace, makeTokenWith(ctx, namespace, "leaked", time.Hour, nil))
		name := expectEnrolled(ctx, a)
		expectToken(ctx, namespace, "leaked", registrationv1alpha1.TokenConditionRestricted, registrationv1alpha1.TokenReasonPermissive, "any number of clusters")
		expectLabel(ctx, name, "prod", "env")
		first.end()

		startGateway(gatewayOptions{labels: registration.IgnoreSelfAssigned})
		expectLabel(ctx, name, "", "env")

		By("having an administrator vouch for them")
		cluster := getCluster(ctx, namespace, name)
		Expect(cluster.Labels).To(HaveKeyWithValue("env", "prod"))
		removeAnnotation(ctx, &cluster, registration.AnnotationBroughtLabels)
		expectLabel(ctx, name, "prod", "")
	})

	It("chooses no labels, and waits for approval, with a strict gateway", func(ctx SpecContext) {
		startGateway(gatewayOptions{defaults: registration.Defaults{Strict: true}})
		namespace := makeNamespace(ctx)
		a := register(ctx, namespace, makeTokenWith(ctx, namespace, "leaked", time.Hour, nil))
		name := expectEnrolled(ctx, a)
		expectJoined(ctx, name)
		mc := getMember(ctx, name)
		Expect(mc.IsApproved()).To(BeFalse())
		expectLabel(ctx, name, "", "")
		expectToken(ctx, namespace, "leaked", registrationv1alpha1.TokenConditionRestricted, registrationv1alpha1.TokenReasonRestricted, "needs an approval")
	})
})

var _ = Describe("An imported cluster", func() {
	It("whose agent lost its key is the same member after the agent is installed again", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		namespace, agentNamespace := makeNamespace(ctx), makeAgentNamespace(ctx)
		cluster := makeImport(ctx, namespace, agentNamespace, memberKubeconfig(func(*clientcmdapi.Config) {}))
		expectImported(ctx, cluster, corev1.ConditionTrue, importer.ReasonImported, "installed")
		a := startAgent(agentOptions{namespace: agentNamespace})
		Expect(expectEnrolled(ctx, a)).To(Equal(cluster.Name))
		expectToken(ctx, namespace, importer.TokenName(cluster.Name), registrationv1alpha1.TokenConditionReady, registrationv1alpha1.TokenReasonUseLimitReached, "1 of 1")
		a.end()

		secrets := memberClient.CoreV1().Secrets(agentNamespace)
		Expect(secrets.Delete(ctx, enroll.KeySecret, metav1.DeleteOptions{})).To(Succeed())
		Expect(secrets.Delete(ctx, enroll.CredentialSecret, metav1.DeleteOptions{})).To(Succeed())
		base := getCluster(ctx, namespace, cluster.Name)
		again := base.DeepCopy()
		again.Spec.RedeployAgentGeneration = 1
		Expect(hubClient.Patch(ctx, again, client.MergeFrom(&base))).To(Succeed())
		expectToken(ctx, namespace, importer.TokenName(cluster.Name), registrationv1alpha1.TokenConditionReady, registrationv1alpha1.TokenReasonIssued, "values")
		Eventually(func() error {
			_, err := secrets.Get(ctx, enroll.BootstrapSecret, metav1.GetOptions{})
			return err
		}).Should(Succeed())
		Expect(expectEnrolled(ctx, startAgent(agentOptions{namespace: agentNamespace}))).To(Equal(cluster.Name))
	})
})
