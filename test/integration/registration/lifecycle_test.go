// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/agent/enroll"
	"fleetgate.io/fleetgate/pkg/cluster/hub/membership"
	"fleetgate.io/fleetgate/pkg/cluster/hub/registration"
	"fleetgate.io/fleetgate/test/support/expect"
)

func subject(kind, name string) rbacv1.Subject { return rbacv1.Subject{Kind: kind, Name: name} }

// bootstrapSecret is the Secret that a chart creates on the member.
func bootstrapSecret(namespace string, values *enroll.Bootstrap) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: enroll.BootstrapSecret},
		StringData: map[string]string{
			"clusterNamespace": values.ClusterNamespace, "apiServerURL": values.APIServerURL, "apiServerCA": values.APIServerCA,
			"token": values.Token, "tokenName": values.TokenName,
		},
	}
}

var _ = Describe("A member", func() {
	var namespace, agentNamespace string

	BeforeEach(func(ctx SpecContext) {
		namespace, agentNamespace = makeNamespace(ctx), makeAgentNamespace(ctx)
	})

	It("deletes the registration token once its credential works, and reconnects without it", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		_, err := memberClient.CoreV1().Secrets(agentNamespace).Create(ctx,
			bootstrapSecret(agentNamespace, registrationValues(ctx, namespace)), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		a := startAgent(agentOptions{namespace: agentNamespace, clientID: namespace})
		name := expectEnrolled(ctx, a)
		_, err = memberClient.CoreV1().Secrets(agentNamespace).Get(ctx, enroll.BootstrapSecret, metav1.GetOptions{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "got %v", err)
		a.end()

		uid := getMember(ctx, name).UID
		again := startAgent(agentOptions{namespace: agentNamespace, clientID: namespace})
		Expect(expectEnrolled(ctx, again)).To(Equal(name))
		Expect(getMember(ctx, name).UID).To(Equal(uid))
	})

	It("requests a token when its credential is lost, and is the same member afterwards", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		values := registrationValues(ctx, namespace)
		a := startAgent(agentOptions{namespace: agentNamespace, clientID: namespace, bootstrap: enroll.Given(values)})
		name := expectEnrolled(ctx, a)
		a.end()
		Expect(memberClient.CoreV1().Secrets(agentNamespace).Delete(ctx, enroll.CredentialSecret, metav1.DeleteOptions{})).To(Succeed())

		again := startAgent(agentOptions{namespace: agentNamespace, clientID: namespace})
		expectProblem(again, enroll.NeedsToken, enroll.BootstrapSecret)
		_, err := memberClient.CoreV1().Secrets(agentNamespace).Create(ctx, bootstrapSecret(agentNamespace, values), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(expectEnrolled(ctx, again)).To(Equal(name))
	})

	It("is revoked by deleting its credential Secret on the hub, and can register again", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		values := registrationValues(ctx, namespace)
		a := startAgent(agentOptions{namespace: agentNamespace, clientID: namespace})
		_, err := memberClient.CoreV1().Secrets(agentNamespace).Create(ctx, bootstrapSecret(agentNamespace, values), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		name := expectEnrolled(ctx, a)
		config, err := a.enroller.HubConfig(ctx)
		Expect(err).NotTo(HaveOccurred())
		agentClient := expect.Client(config, scheme)
		stolen, err := a.enroller.Token(ctx)
		Expect(err).NotTo(HaveOccurred())

		Expect(hubClient.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: clusterv1beta1.MemberNamespace(name), Name: clusterv1beta1.AgentCredentialSecret,
		}})).To(Succeed())
		key := client.ObjectKey{Namespace: clusterv1beta1.MemberNamespace(name), Name: name}
		var imc clusterv1beta1.InternalMemberCluster
		Eventually(func() bool {
			return apierrors.IsUnauthorized(expect.Client(hubConfigWith(stolen), scheme).Get(ctx, key, &imc))
		}).Should(BeTrue())
		Eventually(func() bool { return apierrors.IsUnauthorized(agentClient.Get(ctx, key, &imc)) }).Should(BeTrue())
		expectProblem(a, enroll.NeedsToken)

		_, err = memberClient.CoreV1().Secrets(agentNamespace).Create(ctx, bootstrapSecret(agentNamespace, values), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(expectEnrolled(ctx, a)).To(Equal(name))
		Eventually(func() error { return agentClient.Get(ctx, key, &imc) }).Should(Succeed(), "the same client uses the new token")
		Expect(expect.Client(hubConfigWith(stolen), scheme).Get(ctx, key, &imc)).NotTo(Succeed())
	})

	It("leaves when its MemberCluster is deleted, and cannot join again until an administrator allows it", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		values := enroll.Given(registrationValues(ctx, namespace))
		a := startAgent(agentOptions{namespace: agentNamespace, clientID: namespace, bootstrap: values})
		name := expectEnrolled(ctx, a)
		expectJoined(ctx, name)
		Expect(hubClient.Create(ctx, &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{
			Namespace: clusterv1beta1.MemberNamespace(name), Name: "held", Finalizers: []string{"kubernetes-fleet.io/work-cleanup"},
		}})).To(Succeed())

		mc := getMember(ctx, name)
		Expect(hubClient.Delete(ctx, &mc)).To(Succeed())
		Eventually(a.ended).Should(BeClosed())
		expectGone(ctx, &mc)
		expectGone(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterv1beta1.MemberNamespace(name)}})
		expectGone(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: membership.ClusterRoleName(name)}})
		shown := getCluster(ctx, namespace, name)
		a.end()

		again := startAgent(agentOptions{namespace: agentNamespace, clientID: namespace, bootstrap: values})
		expectProblem(again, enroll.RegistrationRefused, "was deleted", registration.AnnotationMemberUID)
		Expect(getMember(ctx, name).UID).To(BeEmpty())
		Eventually(func(g Gomega) {
			g.Expect(getCluster(ctx, namespace, name).Status.Conditions).To(ContainElement(HaveField("Reason", "MemberLeft")))
		}).Should(Succeed())

		removeAnnotation(ctx, &shown, registration.AnnotationMemberUID)
		Expect(expectEnrolled(ctx, again)).To(Equal(name))
		expectJoined(ctx, name)
	})

	It("is deleted with its Cluster", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		a := startAgent(agentOptions{namespace: agentNamespace, clientID: namespace, bootstrap: enroll.Given(registrationValues(ctx, namespace))})
		name := expectEnrolled(ctx, a)
		expectJoined(ctx, name)
		shown := getCluster(ctx, namespace, name)
		a.end()
		b := startAgent(agentOptions{namespace: agentNamespace, clientID: namespace})
		expectEnrolled(ctx, b)
		Expect(hubClient.Delete(ctx, &shown)).To(Succeed())
		expectGone(ctx, &shown)
		Expect(getMember(ctx, name).UID).To(BeEmpty())
		var requests registrationv1alpha1.ClusterRegistrationList
		Expect(hubClient.List(ctx, &requests, client.InNamespace(namespace))).To(Succeed())
		Expect(requests.Items).To(BeEmpty())
	})

	It("that no longer exists is removed after the wait", func(ctx SpecContext) {
		startGateway(gatewayOptions{forceDeleteWait: 2 * time.Second})
		a := startAgent(agentOptions{namespace: agentNamespace, clientID: namespace, bootstrap: enroll.Given(registrationValues(ctx, namespace))})
		name := expectEnrolled(ctx, a)
		expectJoined(ctx, name)
		a.end()
		mc := getMember(ctx, name)
		Expect(hubClient.Delete(ctx, &mc)).To(Succeed())
		Consistently(func() string { return string(getMember(ctx, name).UID) }).ShouldNot(BeEmpty())
		expectGone(ctx, &mc)
	})

	It("whose agent never registered is removed by force, with the retained Works", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		mc := makeMember(ctx, namespace, subject("User", "jane"))
		expectReadyToJoin(ctx, mc.Name)
		Expect(hubClient.Create(ctx, &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{
			Namespace: clusterv1beta1.MemberNamespace(mc.Name), Name: "held", Finalizers: []string{placementv1beta1.WorkCleanupFinalizer},
		}})).To(Succeed())
		base := getMember(ctx, mc.Name)
		changed := base.DeepCopy()
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, clusterv1beta1.AnnotationGone, "true")
		Expect(hubClient.Patch(ctx, changed, client.MergeFrom(&base))).To(Succeed())
		Expect(hubClient.Delete(ctx, mc)).To(Succeed())
		expectGone(ctx, mc)
		expectGone(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterv1beta1.MemberNamespace(mc.Name)}})
	})

	It("follows a changed identity, and restores its label", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		name := "hand-" + strings.TrimPrefix(namespace, "clusters-")
		mc := &clusterv1beta1.MemberCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       clusterv1beta1.MemberClusterSpec{Identity: subject("User", "jane"), HeartbeatPeriodSeconds: 30},
		}
		Expect(hubClient.Create(ctx, mc)).To(Succeed())
		binding := &rbacv1.RoleBinding{}
		key := client.ObjectKey{Namespace: clusterv1beta1.MemberNamespace(name), Name: clusterv1beta1.RoleBindingName(name)}
		subjects := func() []rbacv1.Subject {
			_ = hubClient.Get(ctx, key, binding)
			return binding.Subjects
		}
		Eventually(subjects).Should(ConsistOf(HaveField("Name", "jane")))
		base := getMember(ctx, name)
		changed := base.DeepCopy()
		changed.Spec.Identity = subject("Group", "ops")
		changed.Labels = nil
		Expect(hubClient.Patch(ctx, changed, client.MergeFrom(&base))).To(Succeed())
		Eventually(subjects).Should(ConsistOf(And(HaveField("Name", "ops"), HaveField("APIGroup", rbacv1.GroupName))))
		Eventually(func() map[string]string { return getMember(ctx, name).Labels }).Should(HaveKey(clusterv1beta1.LabelMemberName))
		var imc clusterv1beta1.InternalMemberCluster
		Expect(hubClient.Get(ctx, client.ObjectKey{Namespace: clusterv1beta1.MemberNamespace(name), Name: name}, &imc)).To(Succeed())
		Expect(imc.Spec.HeartbeatPeriodSeconds).To(BeEquivalentTo(30))
		Expect(metav1.IsControlledBy(&imc, &base)).To(BeTrue())
	})

	It("keeps a manually written status until the agent reports again", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		a := startAgent(agentOptions{namespace: agentNamespace, clientID: namespace, bootstrap: enroll.Given(registrationValues(ctx, namespace))})
		name := expectEnrolled(ctx, a)
		expectJoined(ctx, name)
		a.end()
		heartbeat := func() int64 {
			mc := getMember(ctx, name)
			return mc.Status.AgentStatusOf(clusterv1beta1.MemberAgent).LastReceivedHeartbeat.Unix()
		}
		// The agent's first heartbeats may reach the gateway after it has stopped.
		Eventually(func(g Gomega) {
			base := getMember(ctx, name)
			changed := base.DeepCopy()
			changed.Status.AgentStatusOf(clusterv1beta1.MemberAgent).LastReceivedHeartbeat = metav1.Unix(1000, 0)
			g.Expect(hubClient.Status().Patch(ctx, changed, client.MergeFrom(&base))).To(Succeed())
			g.Consistently(heartbeat).Should(BeEquivalentTo(1000))
		}).Should(Succeed())
		startAgent(agentOptions{namespace: agentNamespace, clientID: namespace})
		Eventually(heartbeat).Should(BeNumerically(">", 1000))
	})

	It("gets a condition if its name or namespace is invalid", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		suffix := strings.TrimPrefix(namespace, "clusters-")
		taken := "taken-" + suffix
		foreign := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterv1beta1.MemberNamespace(taken)}}
		Expect(hubClient.Create(ctx, foreign)).To(Succeed())
		for name, reason := range map[string]string{
			strings.Repeat("x", 45) + "-" + suffix: clusterv1beta1.ReasonMemberClusterNameTooLong,
			"dot." + suffix:                        membership.ReasonNameInvalid,
			taken:                                  membership.ReasonNamespaceConflict,
		} {
			mc := &clusterv1beta1.MemberCluster{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec:       clusterv1beta1.MemberClusterSpec{Identity: subject("User", "jane")},
			}
			Expect(hubClient.Create(ctx, mc)).To(Succeed())
			Eventually(func() string {
				return expect.Condition(getMember(ctx, name).Status.Conditions, clusterv1beta1.ConditionReadyToJoin).Reason
			}).Should(Equal(reason))
			Expect(hubClient.Delete(ctx, mc)).To(Succeed())
			expectGone(ctx, mc)
		}
		Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(foreign), foreign)).To(Succeed())
		Expect(foreign.DeletionTimestamp.IsZero()).To(BeTrue(), "a foreign namespace stays")
	})
})
