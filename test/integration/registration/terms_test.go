// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/agent/enroll"
	"fleetgate.io/fleetgate/pkg/cluster/hub/registration"
	"fleetgate.io/fleetgate/test/support/expect"
	"fleetgate.io/fleetgate/test/support/forwardproxy"
	"fleetgate.io/fleetgate/test/support/program"
)

// makeTokenWith creates a token with annotations, like its administrator.
func makeTokenWith(ctx context.Context, namespace, name string, ttl time.Duration, annotations map[string]string) *enroll.Bootstrap {
	GinkgoHelper()
	token := &registrationv1alpha1.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: annotations}}
	token.Spec.TTL = &metav1.Duration{Duration: ttl}
	Expect(hubClient.Create(ctx, token)).To(Succeed())
	return valuesOf(ctx, token)
}

var _ = Describe("A registration token", func() {
	var namespace, agentNamespace string

	BeforeEach(func(ctx SpecContext) {
		namespace, agentNamespace = makeNamespace(ctx), makeAgentNamespace(ctx)
	})

	It("decides which labels agents can set", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		values := makeTokenWith(ctx, namespace, "token", time.Hour, map[string]string{registrationv1alpha1.AnnotationAllowedLabels: "acme.com/*"})
		a := startAgent(agentOptions{
			namespace: agentNamespace, clientID: namespace, bootstrap: enroll.Given(values),
			labels: map[string]string{"acme.com/tier": "gold", "env": "prod", "fleetgate.io/x": "y"},
		})
		name := expectEnrolled(ctx, a)
		Expect(getMember(ctx, name).Labels).To(And(HaveKeyWithValue("acme.com/tier", "gold"), Not(HaveKey("env")), Not(HaveKey("fleetgate.io/x"))))

		By("naming those that it dropped")
		message := And(ContainSubstring("env (not allowed by fleetgate.io/allowed-labels"), ContainSubstring("fleetgate.io/x (reserved)"), Not(ContainSubstring("acme.com/tier")))
		Eventually(func() any { return getCluster(ctx, namespace, name).Status.Conditions }).Should(ContainElement(And(
			HaveField("Type", registrationv1alpha1.ClusterConditionLabelsAccepted), HaveField("Status", corev1.ConditionFalse), HaveField("Message", message))))
		Eventually(func(g Gomega) {
			var events eventsv1.EventList
			g.Expect(hubClient.List(ctx, &events, client.InNamespace(namespace))).To(Succeed())
			g.Expect(events.Items).To(ContainElement(And(HaveField("Reason", "LabelsDropped"), HaveField("Regarding.Name", name), HaveField("Note", message))))
		}).Should(Succeed())

		By("setting the missing label as the administrator")
		labelled := getCluster(ctx, namespace, name)
		base := labelled.DeepCopy()
		metav1.SetMetaDataLabel(&labelled.ObjectMeta, "env", "prod")
		Expect(hubClient.Patch(ctx, &labelled, client.MergeFrom(base))).To(Succeed())
		Eventually(func() any { return getCluster(ctx, namespace, name).Status.Conditions }).Should(ContainElement(And(
			HaveField("Type", registrationv1alpha1.ClusterConditionLabelsAccepted), HaveField("Message", Not(ContainSubstring("env ("))))))
	})

	It("allows all labels that nobody reserves by default", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		a := startAgent(agentOptions{
			namespace: agentNamespace, clientID: namespace, bootstrap: enroll.Given(registrationValues(ctx, namespace)),
			labels: map[string]string{"team": "a", "acme.com/tier": "gold", "topology.kubernetes.io/region": "eu"},
		})
		name := expectEnrolled(ctx, a)
		Expect(getMember(ctx, name).Labels).To(And(HaveKeyWithValue("team", "a"), HaveKeyWithValue("acme.com/tier", "gold"), Not(HaveKey("topology.kubernetes.io/region"))))
	})

	It("without expiry lets members join that need an approval", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		a := startAgent(agentOptions{namespace: agentNamespace, clientID: namespace, bootstrap: enroll.Given(valuesOf(ctx, makeToken(ctx, namespace, 0)))})
		name := expectEnrolled(ctx, a)
		expectJoined(ctx, name)
		mc := getMember(ctx, name)
		Expect(mc.IsApproved()).To(BeFalse())
		Expect(mc.Spec.Taints).To(ConsistOf(And(HaveField("Key", clusterv1beta1.TaintUnapproved), HaveField("Effect", corev1.TaintEffectNoSchedule))))
		waiting := ContainElement(And(HaveField("Type", "Ready"), HaveField("Status", corev1.ConditionFalse), HaveField("Reason", "WaitingForApproval")))
		Eventually(func() any { return getCluster(ctx, namespace, name).Status.Conditions }).Should(waiting)

		By("tainting it as in docs/how-to/placement.md, which does not approve it")
		keys := func() (all []string) {
			for _, taint := range getMember(ctx, name).Spec.Taints {
				all = append(all, taint.Key)
			}
			return all
		}
		page, err := os.ReadFile("../../../docs/how-to/placement.md")
		Expect(err).NotTo(HaveOccurred())
		patches := regexp.MustCompile(`(?m)^kubectl patch membercluster member-1 (--type=\S+) -p '(.+)'$`).FindAllStringSubmatch(string(page), -1)
		Expect(patches).To(HaveLen(2), "one that adds a taint, one that removes it")
		for i, want := range [][]string{{clusterv1beta1.TaintUnapproved, "maintenance"}, {clusterv1beta1.TaintUnapproved}} {
			said, err := program.Kubectl(ctx, hub, "", "patch", "membercluster", name, patches[i][1], "-p", patches[i][2])
			Expect(err).NotTo(HaveOccurred(), said)
			Expect(keys()).To(Equal(want))
		}

		mc = getMember(ctx, name)
		approved := mc.DeepCopy()
		approved.Spec.Taints = nil
		Expect(hubClient.Patch(ctx, approved, client.MergeFrom(&mc))).To(Succeed())
		Eventually(func() any { return getCluster(ctx, namespace, name).Status.Conditions }).Should(
			ContainElement(And(HaveField("Type", "Ready"), HaveField("Status", corev1.ConditionTrue))))
	})

	It("outlives the API server's maximum, with a Secret that is deleted at its expiry", Label("matrix"), func(ctx SpecContext) {
		config := hub.Config()
		config.ContentType = "application/json"
		config.Wrap(grantingAtMost(20*time.Minute, namespace))
		first := startGateway(gatewayOptions{config: config})
		token := makeToken(ctx, namespace, time.Hour)
		values := valuesOf(ctx, token)
		account := client.ObjectKey{Namespace: namespace, Name: token.Name + "-" + string(token.UID)}
		var legacy corev1.Secret
		Expect(hubClient.Get(ctx, client.ObjectKey{Namespace: namespace, Name: account.Name + "-token"}, &legacy)).To(Succeed())
		Expect(legacy.Type).To(Equal(corev1.SecretTypeServiceAccountToken))
		Expect(values.Token).To(Equal(string(legacy.Data[corev1.ServiceAccountTokenKey])), "the one with the full lifetime")
		Eventually(func(g Gomega) {
			g.Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(token), token)).To(Succeed())
			g.Expect(token.Status.Expires).NotTo(BeNil())
		}).Should(Succeed())
		Expect(token.Status.Expires.Sub(token.CreationTimestamp.Time)).To(Equal(time.Hour))
		a := startAgent(agentOptions{namespace: agentNamespace, clientID: namespace, bootstrap: enroll.Given(values)})
		expectEnrolled(ctx, a)

		By("checking an hour later")
		first.end()
		startGateway(gatewayOptions{tokenClock: later{by: time.Hour}})
		expectGone(ctx, &legacy)
		expectGone(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name}})
		expectGone(ctx, token)
		Eventually(func() bool {
			err := expect.Client(hubConfigWith(values.Token), scheme).Get(ctx, client.ObjectKey{Namespace: namespace, Name: "request-x"}, &registrationv1alpha1.ClusterRegistration{})
			return apierrors.IsUnauthorized(err)
		}).Should(BeTrue(), "no copy of it works")
	})

	It("is sufficient for an agent whose predecessor's key signed the transfer", Label("matrix"), func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		values := enroll.Given(registrationValues(ctx, namespace))
		first := startAgent(agentOptions{namespace: agentNamespace, clientID: namespace, bootstrap: values})
		name := expectEnrolled(ctx, first)
		expectJoined(ctx, name)
		uid := getMember(ctx, name).UID
		stolen, err := first.enroller.Token(ctx)
		Expect(err).NotTo(HaveOccurred())
		first.end()

		By("moving the key as documented")
		secrets := memberClient.CoreV1().Secrets(agentNamespace)
		key, err := secrets.Get(ctx, enroll.KeySecret, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		key.Data["previous-private-key"] = key.Data["private-key"]
		delete(key.Data, "private-key")
		_, err = secrets.Update(ctx, key, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(secrets.Delete(ctx, enroll.CredentialSecret, metav1.DeleteOptions{})).To(Succeed())
		second := startAgent(agentOptions{namespace: agentNamespace, clientID: namespace, bootstrap: values})
		Expect(expectEnrolled(ctx, second)).To(Equal(name))
		mc := getMember(ctx, name)
		Expect(mc.UID).To(Equal(uid))
		Expect(mc.IsApproved()).To(BeTrue())
		Eventually(func() map[string][]byte {
			key, err = secrets.Get(ctx, enroll.KeySecret, metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			return key.Data
		}).ShouldNot(HaveKey("previous-private-key"))
		imc := &clusterv1beta1.InternalMemberCluster{}
		at := client.ObjectKey{Namespace: clusterv1beta1.MemberNamespace(name), Name: name}
		Eventually(func() bool {
			return apierrors.IsUnauthorized(expect.Client(hubConfigWith(stolen), scheme).Get(ctx, at, imc))
		}).Should(BeTrue())
	})

	It("for a Cluster transfers it to another agent, and revokes the previous one", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		values := enroll.Given(registrationValues(ctx, namespace))
		first := startAgent(agentOptions{namespace: agentNamespace, clientID: namespace, bootstrap: values})
		name := expectEnrolled(ctx, first)
		expectJoined(ctx, name)
		// The first agent notices the revocation with its heartbeat.
		setHeartbeatPeriod(ctx, name, 1)
		config, err := first.enroller.HubConfig(ctx)
		Expect(err).NotTo(HaveOccurred())
		stolen, err := first.enroller.Token(ctx)
		Expect(err).NotTo(HaveOccurred())

		By("using it with another client ID")
		moving := makeTokenWith(ctx, namespace, "moving", time.Hour, map[string]string{registrationv1alpha1.AnnotationForCluster: name})
		other := startAgent(agentOptions{namespace: makeAgentNamespace(ctx), clientID: "other", bootstrap: enroll.Given(moving)})
		expectProblem(other, enroll.RegistrationRefused, name)
		other.end()

		By("using it with the Cluster's own")
		second := startAgent(agentOptions{namespace: makeAgentNamespace(ctx), clientID: namespace, bootstrap: enroll.Given(moving)})
		Expect(expectEnrolled(ctx, second)).To(Equal(name))
		key := client.ObjectKey{Namespace: clusterv1beta1.MemberNamespace(name), Name: name}
		var imc clusterv1beta1.InternalMemberCluster
		Eventually(func() bool {
			return apierrors.IsUnauthorized(expect.Client(hubConfigWith(stolen), scheme).Get(ctx, key, &imc))
		}).Should(BeTrue())
		expectProblem(first, enroll.RegistrationRefused, registrationv1alpha1.AnnotationForCluster)
		Expect(second.enroller.Ready()).To(Succeed())
		Expect(config.BearerToken).To(BeEmpty())
	})

	It("does not work outside of --registration-namespaces", func(ctx SpecContext) {
		startGateway(gatewayOptions{namespaces: []string{"elsewhere"}})
		token := makeToken(ctx, namespace, time.Hour)
		Eventually(func(g Gomega) {
			g.Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(token), token)).To(Succeed())
			ready := expect.Condition(token.Status.Conditions, registrationv1alpha1.TokenConditionReady)
			g.Expect(ready.Reason).To(Equal(registrationv1alpha1.TokenReasonNamespaceNotAllowed))
			g.Expect(ready.Message).To(ContainSubstring("--registration-namespaces"))
		}).Should(Succeed())
		Expect(apierrors.IsNotFound(hubClient.Get(ctx, client.ObjectKeyFromObject(token), &corev1.Secret{}))).To(BeTrue())
	})

	It("that expires meanwhile is named in the rejection, and the agent continues with the next one", func(ctx SpecContext) {
		first := startGateway(gatewayOptions{})
		const ttl = 30 * time.Second
		token := makeToken(ctx, namespace, ttl)
		values := valuesOf(ctx, token)
		first.end()
		var current atomic.Pointer[enroll.Bootstrap]
		current.Store(values)
		a := startAgent(agentOptions{namespace: agentNamespace, clientID: namespace, bootstrap: func(context.Context) (*enroll.Bootstrap, error) {
			return current.Load(), nil
		}})
		var requests registrationv1alpha1.ClusterRegistrationList
		Eventually(func() int {
			Expect(hubClient.List(ctx, &requests, client.InNamespace(namespace))).To(Succeed())
			return len(requests.Items)
		}).Should(Equal(1))

		By("running a gateway after its expiry")
		second := startGateway(gatewayOptions{clock: later{by: ttl}, tokenClock: later{by: ttl}})
		expectGone(ctx, token)
		Eventually(func(g Gomega) {
			g.Expect(hubClient.List(ctx, &requests, client.InNamespace(namespace))).To(Succeed())
			g.Expect(requests.Items).To(HaveLen(1))
			granted := expect.Condition(requests.Items[0].Status.Conditions, registrationv1alpha1.RegistrationConditionGranted)
			g.Expect(granted.Reason).To(Equal(registrationv1alpha1.RegistrationReasonUnproven))
			g.Expect(granted.Message).To(ContainSubstring("give the agent the values of a new one"))
		}).Should(Succeed())
		expectProblem(a, enroll.TokenRefused, "new ClusterRegistrationToken")
		second.end()

		By("giving the agent the values of another token")
		startGateway(gatewayOptions{clock: later{by: time.Hour}}) // For this gateway, the rejection is old enough.
		current.Store(makeTokenWith(ctx, namespace, "next", 2*time.Hour, nil))
		Expect(expectEnrolled(ctx, a)).To(Equal(registrationv1alpha1.ClusterName(namespace)))
	})

	It("lets a member reconnect after an outage longer than its credential's lifetime, without a manual step", func(ctx SpecContext) {
		hubClock := clocktesting.NewFakePassiveClock(time.Now())
		startGateway(gatewayOptions{clock: hubClock})
		values := enroll.Given(registrationValues(ctx, namespace))
		a := startAgent(agentOptions{namespace: agentNamespace, clientID: namespace, bootstrap: values})
		name := expectEnrolled(ctx, a)
		expectJoined(ctx, name)
		uid := getMember(ctx, name).UID
		a.end()

		const outage = 8 * 24 * time.Hour
		hubClock.SetTime(hubClock.Now().Add(outage))
		base := getCluster(ctx, namespace, name)
		touched := base.DeepCopy()
		touched.Annotations["touched"] = "yes"
		Expect(hubClient.Patch(ctx, touched, client.MergeFrom(&base))).To(Succeed())
		var requests registrationv1alpha1.ClusterRegistrationList
		Eventually(func() []registrationv1alpha1.ClusterRegistration {
			Expect(hubClient.List(ctx, &requests, client.InNamespace(namespace))).To(Succeed())
			return requests.Items
		}).Should(BeEmpty(), "the grants are invalid")
		// The API server's clock cannot be moved: its grants must not look old.
		hubClock.SetTime(time.Now())
		again := startAgent(agentOptions{namespace: agentNamespace, clientID: namespace, bootstrap: values, clock: later{clock.RealClock{}, outage}})
		Expect(expectEnrolled(ctx, again)).To(Equal(name))
		Expect(getMember(ctx, name).UID).To(Equal(uid))
	})
})

// grantingAtMost simulates an API server that limits the lifetime of tokens, for the accounts of a
// namespace.
func grantingAtMost(life time.Duration, namespace string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err != nil || response.StatusCode != http.StatusCreated ||
				!strings.Contains(request.URL.Path, "/namespaces/"+namespace+"/serviceaccounts/") || !strings.HasSuffix(request.URL.Path, "/token") {
				return response, err
			}
			defer func() { _ = response.Body.Close() }()
			granted := &authenticationv1.TokenRequest{}
			if err := json.NewDecoder(response.Body).Decode(granted); err != nil {
				return nil, err
			}
			granted.Status.ExpirationTimestamp = metav1.NewTime(time.Now().Add(life))
			capped, err := json.Marshal(granted)
			response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(capped)), int64(len(capped))
			response.Header.Del("Content-Length")
			return response, err
		})
	}
}

// later is a clock that is ahead of the real one.
type later struct {
	clock.RealClock
	by time.Duration
}

func (l later) Now() time.Time                  { return l.RealClock.Now().Add(l.by) }
func (l later) Since(t time.Time) time.Duration { return l.Now().Sub(t) }

var _ = Describe("An agent behind a forward proxy", func() {
	DescribeTable("reaches the hub only with CONNECT, and keeps the proxy", func(ctx SpecContext, secured bool) {
		namespace, agentNamespace := makeNamespace(ctx), makeAgentNamespace(ctx)
		startGateway(gatewayOptions{})
		values := registrationValues(ctx, namespace)
		proxy := forwardproxy.Start(secured)
		DeferCleanup(proxy.Close)
		// A kubeconfig has room for the proxy's authority there.
		values.APIServerCA += string(proxy.CA())
		bootstrap, err := enroll.ParseBootstrapKubeconfig(bootstrapKubeconfig(values, proxy.URL))
		Expect(err).NotTo(HaveOccurred())
		Expect(bootstrap.TokenName).To(Equal("token"), "from the token itself")
		a := startAgent(agentOptions{namespace: agentNamespace, clientID: namespace, bootstrap: enroll.Given(bootstrap)})
		name := expectEnrolled(ctx, a)
		expectJoined(ctx, name)

		hubURL, err := url.Parse(hub.URL)
		Expect(err).NotTo(HaveOccurred())
		Expect(proxy.Asked()).To(HaveEach("CONNECT " + hubURL.Host))
		secret, err := memberClient.CoreV1().Secrets(agentNamespace).Get(ctx, enroll.CredentialSecret, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(secret.Data).To(HaveKeyWithValue("proxy-url", []byte(proxy.URL)))

		By("restarting with its stored state")
		a.end()
		before := len(proxy.Asked())
		Expect(expectEnrolled(ctx, startAgent(agentOptions{namespace: agentNamespace, clientID: namespace}))).To(Equal(name))
		Expect(len(proxy.Asked())).To(BeNumerically(">", before))
	},
		Entry("by http", false),
		Entry("by https, with its authority appended to the hub's", true),
	)
})

func bootstrapKubeconfig(values *enroll.Bootstrap, proxy string) []byte {
	GinkgoHelper()
	config := clientcmdapi.NewConfig()
	config.CurrentContext = "hub"
	config.Contexts["hub"] = &clientcmdapi.Context{Cluster: "hub", AuthInfo: "agent", Namespace: values.ClusterNamespace}
	config.Clusters["hub"] = &clientcmdapi.Cluster{Server: values.APIServerURL, CertificateAuthorityData: []byte(values.APIServerCA), ProxyURL: proxy}
	config.AuthInfos["agent"] = &clientcmdapi.AuthInfo{Token: values.Token}
	raw, err := clientcmd.Write(*config)
	Expect(err).NotTo(HaveOccurred())
	return raw
}

var _ = Describe("A Cluster's administrator", func() {
	It("labels the member, and groups count it", func(ctx SpecContext) {
		namespace := makeNamespace(ctx)
		startGateway(gatewayOptions{})
		a := startAgent(agentOptions{namespace: makeAgentNamespace(ctx), clientID: namespace, bootstrap: enroll.Given(registrationValues(ctx, namespace))})
		name := expectEnrolled(ctx, a)
		expectJoined(ctx, name)
		group := &registrationv1alpha1.ClusterGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "demo"}}
		group.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"demo": "true"}}
		Expect(hubClient.Create(ctx, group)).To(Succeed())
		counts := func() string {
			_ = hubClient.Get(ctx, client.ObjectKeyFromObject(group), group)
			return group.Status.Display.ReadyClusters
		}
		Eventually(counts).Should(Equal("0/0"))

		base := getCluster(ctx, namespace, name)
		labelled := base.DeepCopy()
		metav1.SetMetaDataLabel(&labelled.ObjectMeta, "demo", "true")
		metav1.SetMetaDataLabel(&labelled.ObjectMeta, "fleet.azure.com/location", "westeurope")
		Expect(hubClient.Patch(ctx, labelled, client.MergeFrom(&base))).To(Succeed())
		Eventually(counts).Should(Equal("1/1"))
		Eventually(func() map[string]string { return getMember(ctx, name).Labels }).Should(
			And(HaveKeyWithValue("demo", "true"), HaveKeyWithValue("fleet.azure.com/location", "westeurope")))

		base = getCluster(ctx, namespace, name)
		bare := base.DeepCopy()
		delete(bare.Labels, "demo")
		Expect(hubClient.Patch(ctx, bare, client.MergeFrom(&base))).To(Succeed())
		Eventually(func() map[string]string { return getMember(ctx, name).Labels }).ShouldNot(HaveKey("demo"))
		Eventually(counts).Should(Equal("0/0"))
	})

	It("cannot take over the member of another namespace, and nobody can change its origin", func(ctx SpecContext) {
		ours, theirs := makeNamespace(ctx), makeNamespace(ctx)
		startGateway(gatewayOptions{})
		victim := startAgent(agentOptions{namespace: makeAgentNamespace(ctx), clientID: ours, bootstrap: enroll.Given(registrationValues(ctx, ours))})
		name := expectEnrolled(ctx, victim)
		mc := getMember(ctx, name)
		Expect(hubClient.Create(ctx, &registrationv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: theirs, Name: name, Annotations: map[string]string{
				registration.AnnotationMember: name, registration.AnnotationMemberUID: string(mc.UID),
			}},
			Spec: registrationv1alpha1.ClusterSpec{ClientID: "thief"},
		})).To(Succeed())
		thief := startAgent(agentOptions{namespace: makeAgentNamespace(ctx), clientID: "thief", bootstrap: enroll.Given(registrationValues(ctx, theirs))})
		expectProblem(thief, enroll.RegistrationRefused, "was not created for Cluster")
		Expect(victim.enroller.Ready()).To(Succeed())

		moved := mc.DeepCopy()
		moved.Annotations[registration.AnnotationClusterUID] = "other"
		err := hubClient.Patch(ctx, moved, client.MergeFrom(&mc))
		Expect(err).To(MatchError(ContainSubstring("immutable")))
	})
})
