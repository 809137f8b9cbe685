// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/agent/enroll"
	"fleetgate.io/fleetgate/pkg/cluster/hub/identity"
	"fleetgate.io/fleetgate/pkg/cluster/hub/registration"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
)

// hubConfigWith is a configuration for the hub with only a bearer token.
func hubConfigWith(token string) *rest.Config {
	return &rest.Config{Host: hub.URL, TLSClientConfig: rest.TLSClientConfig{CAData: hub.CABundle}, BearerToken: token}
}

var _ = Describe("Registering with a token", func() {
	var namespace, agentNamespace string

	BeforeEach(func(ctx SpecContext) {
		namespace, agentNamespace = makeNamespace(ctx), makeAgentNamespace(ctx)
	})

	It("makes the agent's cluster a joined, healthy member", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		a := startAgent(agentOptions{
			namespace: agentNamespace,
			bootstrap: enroll.Given(registrationValues(ctx, namespace)),
			labels:    map[string]string{"env": "prod", "fleet.cattle.io/stolen": "yes", "fleetgate.io/stolen": "yes"},
		})

		kubeSystem, err := memberClient.CoreV1().Namespaces().Get(ctx, "kube-system", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		want := registrationv1alpha1.ClusterName(string(kubeSystem.UID))
		DeferCleanup(func(ctx SpecContext) {
			// A second attempt uses the same name.
			shown := registrationv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: want}}
			Expect(client.IgnoreNotFound(hubClient.Delete(ctx, &shown))).To(Succeed())
			expectGone(ctx, &shown)
		})
		Expect(expectEnrolled(ctx, a)).To(Equal(want))
		expectJoined(ctx, want)

		By("showing the member's properties")
		mc := getMember(ctx, want)
		Expect(mc.Status.Properties[clusterv1beta1.PropertyNodeCount].Value).To(Equal("2"))
		Expect(mc.Status.Properties[clusterv1beta1.PropertyKubernetesVersion].Value).To(HavePrefix("v1."))
		Expect(mc.Status.ResourceUsage.Available.Cpu().IsZero()).To(BeFalse())
		Expect(mc.Labels).To(HaveKeyWithValue("env", "prod"))
		Expect(mc.Labels).To(HaveKeyWithValue(clusterv1beta1.LabelMemberName, want))
		Expect(mc.Labels).NotTo(HaveKey(HaveSuffix("stolen")))

		By("showing them on the Cluster")
		Eventually(func(g Gomega) {
			shown := getCluster(ctx, namespace, want)
			g.Expect(shown.Status.Namespace).To(Equal(clusterv1beta1.MemberNamespace(want)))
			g.Expect(shown.Status.Agent.LastSeen.IsZero()).To(BeFalse())
			g.Expect(shown.Status.Display.State).To(BeEmpty())
			g.Expect(shown.Status.Conditions).To(ContainElement(And(
				HaveField("Type", registrationv1alpha1.ClusterConditionReady), HaveField("Status", corev1.ConditionTrue))))
		}).Should(Succeed())

		By("recording what happened")
		Eventually(func(g Gomega) {
			var events corev1.EventList
			g.Expect(hubClient.List(ctx, &events, client.InNamespace("default"))).To(Succeed())
			var reasons []string
			for _, event := range events.Items {
				if event.InvolvedObject.Name == want {
					reasons = append(reasons, event.Reason)
				}
			}
			g.Expect(reasons).To(ContainElements("NamespaceCreated", "RoleCreated", "RoleBindingCreated",
				"InternalMemberClusterCreated", "MemberClusterReadyToJoin", "MemberClusterJoined"))
		}).Should(Succeed())

		By("mapping the agent's account to its member")
		members := &identity.Identities{Reader: hubClient, Seats: identity.FleetSeats()}
		Expect(members.MembersOf(ctx, clusterv1beta1.AgentUsername(want))).To(ConsistOf(want))
		Expect(members.IsAgentOf(ctx, clusterv1beta1.AgentUsername(want), want)).To(BeTrue())
	})

	It("grants the agent only its own rights", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		values := registrationValues(ctx, namespace)
		a := startAgent(agentOptions{namespace: agentNamespace, bootstrap: enroll.Given(values), clientID: "first-" + namespace})
		b := startAgent(agentOptions{namespace: makeAgentNamespace(ctx), bootstrap: enroll.Given(values), clientID: "second-" + namespace})
		first, second := expectEnrolled(ctx, a), expectEnrolled(ctx, b)
		Expect(first).NotTo(Equal(second), "one token registers any number of clusters")
		config, err := a.enroller.HubConfig(ctx)
		Expect(err).NotTo(HaveOccurred())
		agentClient := expect.Client(config, scheme)

		var own, other clusterv1beta1.InternalMemberCluster
		Expect(agentClient.Get(ctx, client.ObjectKey{Namespace: clusterv1beta1.MemberNamespace(first), Name: first}, &own)).To(Succeed())
		err = agentClient.Get(ctx, client.ObjectKey{Namespace: clusterv1beta1.MemberNamespace(second), Name: second}, &other)
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "another member's object: got %v", err)
		own.Spec.HeartbeatPeriodSeconds = 1
		Expect(apierrors.IsForbidden(agentClient.Update(ctx, &own))).To(BeTrue(), "its own orders")
		mc := getMember(ctx, first)
		mc.Labels["bribed"] = "yes"
		Expect(apierrors.IsForbidden(agentClient.Update(ctx, &mc))).To(BeTrue(), "its own labels")
		var secrets corev1.SecretList
		err = agentClient.List(ctx, &secrets, client.InNamespace(clusterv1beta1.MemberNamespace(second)))
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "Secrets: got %v", err)
	})

	It("issues a token that can only create and get registrations in its namespace", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		values := registrationValues(ctx, namespace)
		Expect(values.APIServerURL).To(Equal(hub.URL))
		Expect(values.TokenName).To(Equal("token"))
		holder, err := kubernetes.NewForConfig(hubConfigWith(values.Token))
		Expect(err).NotTo(HaveOccurred())
		allowed := func(verb, resource, in string) bool {
			review, err := holder.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
					Group: registrationv1alpha1.GroupName, Resource: resource, Verb: verb, Namespace: in,
				}},
			}, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			return review.Status.Allowed
		}
		Eventually(func() bool { return allowed("create", "clusterregistrations", namespace) }).Should(BeTrue())
		Expect(allowed("get", "clusterregistrations", namespace)).To(BeTrue())
		for _, verb := range []string{"list", "watch", "update", "patch", "delete"} {
			Expect(allowed(verb, "clusterregistrations", namespace)).To(BeFalse(), verb)
		}
		Expect(allowed("create", "clusterregistrations", "default")).To(BeFalse(), "another namespace")
		Expect(allowed("get", "clusters", namespace)).To(BeFalse())
		_, err = holder.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{})
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "Secrets: got %v", err)
	})

	It("issues a token without expiry when there is no TTL", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		token := makeToken(ctx, namespace, 0)
		values := valuesOf(ctx, token)
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: values.Token}}
		Expect(hubClient.Create(ctx, review)).To(Succeed())
		Expect(review.Status.Authenticated).To(BeTrue())
		Eventually(func(g Gomega) {
			g.Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(token), token)).To(Succeed())
			g.Expect(token.Status.SecretName).To(Equal("token"))
		}).Should(Succeed())
		Expect(token.Status.Expires).To(BeNil())
	})

	It("deletes an expired token with all its objects", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		token := makeToken(ctx, namespace, 4*time.Second)
		values := valuesOf(ctx, token)
		Eventually(func(g Gomega) {
			g.Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(token), token)).To(Succeed())
			g.Expect(token.Status.Expires).NotTo(BeNil())
		}).Should(Succeed())
		expectGone(ctx, token)
		expectGone(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "token"}})

		a := startAgent(agentOptions{namespace: agentNamespace, bootstrap: enroll.Given(values), clientID: namespace})
		expectProblem(a, enroll.TokenRefused, hub.URL, "has expired", "new ClusterRegistrationToken")
	})

	It("does not touch a foreign Secret", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		theirs := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "token"},
			Data:       map[string][]byte{"values": []byte("theirs")},
		}
		Expect(hubClient.Create(ctx, theirs)).To(Succeed())
		token := makeToken(ctx, namespace, time.Hour)
		Eventually(func(g Gomega) {
			g.Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(token), token)).To(Succeed())
			ready := expect.Condition(token.Status.Conditions, registrationv1alpha1.TokenConditionReady)
			g.Expect(ready.Reason).To(Equal(registrationv1alpha1.TokenReasonSecretConflict))
			g.Expect(ready.Message).To(ContainSubstring("delete it"))
		}).Should(Succeed())
		Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(theirs), theirs)).To(Succeed())
		Expect(theirs.Data).To(HaveKeyWithValue("values", []byte("theirs")))
	})

	It("reports invalid values, and continues when they are corrected", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		good := registrationValues(ctx, namespace)
		elsewhere := makeNamespace(ctx)
		closed, err := env.NewLink("127.0.0.1:1")
		Expect(err).NotTo(HaveOccurred())
		Expect(closed.Close()).To(Succeed())
		current := make(chan enroll.Bootstrap, 1)
		put := func(change func(*enroll.Bootstrap)) {
			values := *good
			change(&values)
			select {
			case <-current:
			default:
			}
			current <- values
		}
		put(func(b *enroll.Bootstrap) { b.Token = "wrong" })
		a := startAgent(agentOptions{namespace: agentNamespace, clientID: namespace, bootstrap: func(context.Context) (*enroll.Bootstrap, error) {
			values := <-current
			current <- values
			return &values, nil
		}})

		expectProblem(a, enroll.TokenRefused, hub.URL, "refuses the registration token")
		put(func(b *enroll.Bootstrap) { b.ClusterNamespace = elsewhere })
		expectProblem(a, enroll.NamespaceRefused, elsewhere, "clusterNamespace")
		put(func(b *enroll.Bootstrap) { b.APIServerURL = "https://" + closed.Addr() })
		expectProblem(a, enroll.HubUnreachable, closed.Addr(), "apiServerURL")
		put(func(b *enroll.Bootstrap) { b.APIServerCA = string(member.CABundle) })
		expectProblem(a, enroll.HubNotTrusted, hub.URL, "apiServerCA")
		put(func(b *enroll.Bootstrap) { b.APIServerURL = "http://hub" })
		expectProblem(a, enroll.BadBootstrap, "https")
		put(func(*enroll.Bootstrap) {})
		Expect(expectEnrolled(ctx, a)).To(Equal(registrationv1alpha1.ClusterName(namespace)))
	})

	It("rejects a request that no agent created, with the reason", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		request := &registrationv1alpha1.ClusterRegistration{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "request-mine"},
			Spec:       registrationv1alpha1.ClusterRegistrationSpec{ClientID: "mine", PublicKey: []byte("no key")},
		}
		Expect(hubClient.Create(ctx, request)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(request), request)).To(Succeed())
			granted := expect.Condition(request.Status.Conditions, registrationv1alpha1.RegistrationConditionGranted)
			g.Expect(granted.Status).To(Equal(metav1.ConditionFalse))
			g.Expect(granted.Reason).To(Equal(registrationv1alpha1.RegistrationReasonInvalid))
			g.Expect(granted.Message).To(ContainSubstring("publicKey"))
		}).Should(Succeed())
	})

	It("assigns a client ID to the first key only, until an administrator changes it", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		values := enroll.Given(registrationValues(ctx, namespace))
		first := startAgent(agentOptions{namespace: agentNamespace, bootstrap: values, clientID: namespace})
		name := expectEnrolled(ctx, first)

		second := startAgent(agentOptions{namespace: makeAgentNamespace(ctx), bootstrap: values, clientID: namespace})
		expectProblem(second, enroll.RegistrationRefused, name, registration.AnnotationKey)
		Expect(first.enroller.Ready()).To(Succeed())

		first.end()
		shown := getCluster(ctx, namespace, name)
		removeAnnotation(ctx, &shown, registration.AnnotationKey)
		Expect(expectEnrolled(ctx, second)).To(Equal(name))
	})

	It("uses an existing Cluster and its labels", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		Expect(hubClient.Create(ctx, &registrationv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mine-" + namespace, Labels: map[string]string{"env": "given"}},
			Spec:       registrationv1alpha1.ClusterSpec{ClientID: "secret-id"},
		})).To(Succeed())
		a := startAgent(agentOptions{
			namespace: agentNamespace, clientID: "secret-id", labels: map[string]string{"env": "claimed"},
			bootstrap: enroll.Given(registrationValues(ctx, namespace)),
		})
		name := expectEnrolled(ctx, a)
		Expect(name).To(Equal("mine-" + namespace))
		Expect(getMember(ctx, name).Labels).To(HaveKeyWithValue("env", "given"))
		var clusters registrationv1alpha1.ClusterList
		Expect(hubClient.List(ctx, &clusters, client.InNamespace(namespace))).To(Succeed())
		Expect(clusters.Items).To(HaveLen(1))
	})

	It("never reuses a member's name of another Cluster", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		name := "edge-" + namespace
		Expect(hubClient.Create(ctx, &clusterv1beta1.MemberCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       clusterv1beta1.MemberClusterSpec{Identity: subject("User", "somebody")},
		})).To(Succeed())
		Expect(hubClient.Create(ctx, &registrationv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       registrationv1alpha1.ClusterSpec{ClientID: "edge"},
		})).To(Succeed())
		a := startAgent(agentOptions{namespace: agentNamespace, clientID: "edge", bootstrap: enroll.Given(registrationValues(ctx, namespace))})
		Expect(expectEnrolled(ctx, a)).To(Equal(namespace + "-" + name))
		Expect(getMember(ctx, name).Spec.Identity.Name).To(Equal("somebody"))
	})
})
