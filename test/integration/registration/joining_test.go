// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	multiclusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/multicluster/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/agent/enroll"
	"fleetgate.io/fleetgate/pkg/cluster/hub/membership"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/telemetry/version"
	"fleetgate.io/fleetgate/test/support/expect"
)

// makeMember creates a MemberCluster with a unique name, like an administrator.
func makeMember(ctx context.Context, namespace string, identity rbacv1.Subject) *clusterv1beta1.MemberCluster {
	GinkgoHelper()
	mc := &clusterv1beta1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "hand-" + strings.TrimPrefix(namespace, "clusters-")},
		Spec:       clusterv1beta1.MemberClusterSpec{Identity: identity, HeartbeatPeriodSeconds: 1},
	}
	Expect(hubClient.Create(ctx, mc)).To(Succeed())
	return mc
}

func expectReadyToJoin(ctx context.Context, name string) {
	GinkgoHelper()
	Eventually(func() metav1.ConditionStatus {
		return expect.Condition(getMember(ctx, name).Status.Conditions, clusterv1beta1.ConditionReadyToJoin).Status
	}).Should(Equal(metav1.ConditionTrue))
}

// asUser is a client of the hub for another user.
func asUser(name string, groups ...string) client.Client {
	GinkgoHelper()
	config := hub.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: append(groups, "system:authenticated")}
	return expect.Client(config, scheme)
}

var _ = Describe("Joining", func() {
	var namespace string

	BeforeEach(func(ctx SpecContext) { namespace = makeNamespace(ctx) })

	DescribeTable("grants rights only to the identity of the MemberCluster",
		func(ctx SpecContext, identity rbacv1.Subject, user string, groups ...string) {
			startGateway(gatewayOptions{})
			name := makeMember(ctx, namespace, identity).Name
			expectReadyToJoin(ctx, name)
			key := client.ObjectKey{Namespace: clusterv1beta1.MemberNamespace(name), Name: name}
			imc := &clusterv1beta1.InternalMemberCluster{}
			own := asUser(user, groups...)
			Eventually(func() error { return own.Get(ctx, key, imc) }).Should(Succeed())
			imc.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: metav1.Now()}}
			Expect(own.Status().Update(ctx, imc)).To(Succeed())
			stranger := asUser("stranger", "strangers")
			Expect(apierrors.IsForbidden(stranger.Get(ctx, key, imc))).To(BeTrue())
			Expect(apierrors.IsForbidden(stranger.Status().Update(ctx, imc))).To(BeTrue())
		},
		Entry("a user, like a cloud identity", rbacv1.Subject{Kind: "User", Name: "principal", Namespace: "fleet-system", APIGroup: rbacv1.GroupName}, "principal"),
		Entry("a group", rbacv1.Subject{Kind: "Group", Name: "agents"}, "any-agent", "agents"),
		Entry("an account in any namespace", rbacv1.Subject{Kind: "ServiceAccount", Name: "member-agent-sa", Namespace: "fleet-system"},
			"system:serviceaccount:fleet-system:member-agent-sa", "system:serviceaccounts"),
	)

	DescribeTable("shows only Joined and Healthy in the agent's conditions, because clients compare the whole list",
		func(ctx SpecContext, report func(tunnel metav1.Condition, agent *clusterv1beta1.AgentStatus, status *clusterv1beta1.InternalMemberClusterStatus)) {
			startGateway(gatewayOptions{})
			mc := makeMember(ctx, namespace, rbacv1.Subject{Kind: "User", Name: "principal", APIGroup: rbacv1.GroupName})
			expectReadyToJoin(ctx, mc.Name)
			says := func(kind, reason string) metav1.Condition {
				return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.Now(), ObservedGeneration: 1}
			}
			joined, healthy := says("Joined", "InternalMemberClusterJoined"), says("Healthy", "InternalMemberClusterHealthy")
			imc, own := &clusterv1beta1.InternalMemberCluster{}, asUser("principal")
			key := client.ObjectKey{Namespace: clusterv1beta1.MemberNamespace(mc.Name), Name: mc.Name}
			Eventually(func() error { return own.Get(ctx, key, imc) }).Should(Succeed())
			agent := clusterv1beta1.AgentStatus{Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: metav1.Now(), Conditions: []metav1.Condition{joined, healthy}}
			report(says("TunnelConnected", clusterv1beta1.ReasonTunnelViaHub), &agent, &imc.Status)
			imc.Status.AgentStatus = []clusterv1beta1.AgentStatus{agent}
			Expect(own.Status().Update(ctx, imc)).To(Succeed())

			want := []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent, Conditions: []metav1.Condition{joined, healthy}}}
			ignored := cmp.Options{cmpopts.IgnoreTypes(metav1.Time{}), cmpopts.IgnoreFields(metav1.Condition{}, "Message")}
			Eventually(func(g Gomega) {
				shown := getMember(ctx, mc.Name).Status
				g.Expect(cmp.Diff(want, shown.AgentStatus, ignored)).To(BeEmpty(), "-want +got")
				g.Expect(expect.Condition(shown.Conditions, "TunnelConnected").Reason).To(Equal(clusterv1beta1.ReasonTunnelViaHub))
				g.Expect(expect.Condition(shown.Conditions, "Joined").Status).To(Equal(metav1.ConditionTrue))
			}).Should(Succeed())
		},
		Entry("an agent of this version", func(tunnel metav1.Condition, _ *clusterv1beta1.AgentStatus, status *clusterv1beta1.InternalMemberClusterStatus) {
			status.Conditions = []metav1.Condition{tunnel}
		}),
		Entry("an agent of the previous version", func(tunnel metav1.Condition, agent *clusterv1beta1.AgentStatus, _ *clusterv1beta1.InternalMemberClusterStatus) {
			agent.Conditions = append(agent.Conditions, tunnel)
		}),
	)

	It("grants the right to the tunnel in the member's namespace, and on the whole hub only to agents of the previous version", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		name := makeMember(ctx, namespace, rbacv1.Subject{Kind: "User", Name: "principal", APIGroup: rbacv1.GroupName}).Name
		expectReadyToJoin(ctx, name)
		own, home := asUser("principal"), clusterv1beta1.MemberNamespace(name)
		// The ClusterRole and its binding exist both or not at all.
		onHub := func(ctx context.Context) int {
			n := 0
			for _, object := range []client.Object{&rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}} {
				if hubClient.Get(ctx, client.ObjectKey{Name: membership.ClusterRoleName(name)}, object) == nil {
					n++
				}
			}
			return n
		}
		may := func(ctx context.Context) []bool {
			return []bool{mayTunnel(ctx, own, home, name), mayTunnel(ctx, own, "", name)}
		}
		began := time.Now()
		reports := func(second int, right string) {
			GinkgoHelper()
			at := metav1.NewTime(began.Add(time.Duration(second) * time.Second))
			Eventually(func() error {
				imc := &clusterv1beta1.InternalMemberCluster{}
				if err := own.Get(ctx, client.ObjectKey{Namespace: home, Name: name}, imc); err != nil {
					return err
				}
				imc.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: metav1.Now()}}
				if imc.Status.Properties == nil {
					imc.Status.Properties = map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{}
				}
				imc.Status.Properties[clusterv1beta1.PropertyAgentVersion] = clusterv1beta1.PropertyValue{Value: "v1", ObservationTime: at}
				if right != "" {
					imc.Status.Properties[clusterv1beta1.PropertyTunnelRight] = clusterv1beta1.PropertyValue{Value: right, ObservationTime: at}
				}
				return own.Status().Update(ctx, imc)
			}).Should(Succeed())
		}
		Expect(onHub(ctx)).To(BeZero())
		Eventually(may).WithContext(ctx).Should(Equal([]bool{true, false}))

		By("reporting like an agent that tries without the cluster rights")
		reports(1, clusterv1beta1.TunnelRightEither)
		Consistently(onHub).WithContext(ctx).Should(BeZero())
		By("reporting like an agent of the previous version")
		reports(2, "")
		Eventually(onHub).WithContext(ctx).Should(Equal(2))
		Eventually(may).WithContext(ctx).Should(Equal([]bool{true, true}))
		Expect(mayTunnel(ctx, own, "", "another")).To(BeFalse())
		By("replacing it by one that has not tried without the rights yet")
		reports(3, clusterv1beta1.TunnelRightEither)
		Consistently(onHub).WithContext(ctx).Should(Equal(2))
		By("reporting that it works without the rights")
		reports(4, clusterv1beta1.TunnelRightNamespace)
		Eventually(onHub).WithContext(ctx).Should(BeZero())
		Eventually(may).WithContext(ctx).Should(Equal([]bool{true, false}))
		By("rolling the agent back to the previous version, which keeps unknown properties")
		reports(5, "")
		Eventually(onHub).WithContext(ctx).Should(Equal(2))
	})

	It("reports an invalid identity, and continues when it is corrected", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		mc := makeMember(ctx, namespace, rbacv1.Subject{Kind: "ServiceAccount", Name: "agent"})
		Eventually(func() string {
			return expect.Condition(getMember(ctx, mc.Name).Status.Conditions, clusterv1beta1.ConditionReadyToJoin).Reason
		}).Should(Equal(membership.ReasonIdentityInvalid))
		base := getMember(ctx, mc.Name)
		changed := base.DeepCopy()
		changed.Spec.Identity.Namespace = namespace
		Expect(hubClient.Patch(ctx, changed, client.MergeFrom(&base))).To(Succeed())
		expectReadyToJoin(ctx, mc.Name)
	})

	It("creates ordered events, owned objects, and the documented columns", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		a := startAgent(agentOptions{namespace: makeAgentNamespace(ctx), clientID: namespace, bootstrap: enroll.Given(registrationValues(ctx, namespace))})
		name := expectEnrolled(ctx, a)
		expectJoined(ctx, name)
		mc := getMember(ctx, name)
		var imc clusterv1beta1.InternalMemberCluster
		Expect(hubClient.Get(ctx, client.ObjectKey{Namespace: clusterv1beta1.MemberNamespace(name), Name: name}, &imc)).To(Succeed())
		Expect(imc.OwnerReferences).To(ConsistOf(And(HaveField("Kind", "MemberCluster"), HaveField("UID", mc.UID), HaveField("Controller", ptr.To(true)))))
		Expect(imc.Status.AgentStatus).To(HaveLen(1))
		Expect(imc.Status.AgentStatus[0].Conditions).To(ConsistOf(HaveField("Type", "Joined"), HaveField("Type", "Healthy")))

		By("listing the events by time")
		Eventually(func(g Gomega) {
			var events corev1.EventList
			g.Expect(hubClient.List(ctx, &events, client.InNamespace("default"))).To(Succeed())
			at := map[string]time.Time{}
			for _, event := range events.Items {
				if event.InvolvedObject.Name == name {
					at[event.Reason] = event.EventTime.Time
				}
			}
			order := []string{"NamespaceCreated", "RoleCreated", "RoleBindingCreated", "InternalMemberClusterCreated", "MemberClusterReadyToJoin", "MemberClusterJoined"}
			for i := 1; i < len(order); i++ {
				g.Expect(at).To(HaveKey(order[i]))
				g.Expect(at[order[i]]).NotTo(BeTemporally("<", at[order[i-1]]), "%s before %s", order[i], order[i-1])
			}
		}).Should(Succeed())

		By("requesting tables, like kubectl")
		Expect(expect.Columns(ctx, hub.Config(), "/apis/cluster.kubernetes-fleet.io/v1beta1/memberclusters/"+name)).To(ContainElements("Name", "Joined", "Age", "Node-Count"))
		Expect(expect.Cells(ctx, hub.Config(), "/apis/cluster.kubernetes-fleet.io/v1beta1/memberclusters/"+name)).To(And(
			HaveKeyWithValue("Joined", "True"), HaveKeyWithValue("Agent-Version", version.Get())))
		Expect(expect.Columns(ctx, hub.Config(), "/apis/fleet.cattle.io/v1alpha1/namespaces/"+namespace+"/clusters")).To(
			Equal([]string{"Name", "Bundles-Ready", "Nodes-Ready", "Sample-Node", "Last-Seen", "Status"}))
		Eventually(func() map[string]string {
			return expect.Cells(ctx, hub.Config(), "/apis/fleet.cattle.io/v1alpha1/namespaces/"+namespace+"/clusters/"+name)
		}).Should(And(
			HaveKeyWithValue("Name", name), HaveKeyWithValue("Bundles-Ready", "0/0"), HaveKeyWithValue("Nodes-Ready", "2/2"),
			HaveKeyWithValue("Sample-Node", Not(BeElementOf("", "<nil>"))), HaveKeyWithValue("Last-Seen", Not(BeElementOf("", "<nil>", "<unknown>")))))
	})

	It("waits for a MemberCluster with the agent's identity, and follows its token file", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		Expect(hubClient.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cloud"}})).To(Succeed())
		file := filepath.Join(GinkgoT().TempDir(), "token")
		refresh := func() string {
			request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](600)}}
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cloud"}}
			Expect(hubClient.SubResource("token").Create(ctx, account, request)).To(Succeed())
			Expect(os.WriteFile(file, []byte(request.Status.Token), 0o600)).To(Succeed())
			return request.Status.Token
		}
		refresh()
		name := "hand-" + strings.TrimPrefix(namespace, "clusters-")
		identity := enroll.NewExternal(name, &rest.Config{
			Host: hub.URL, TLSClientConfig: rest.TLSClientConfig{CAData: hub.CABundle}, BearerTokenFile: file,
		}, clock.RealClock{})
		running, stop := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- identity.Run(running) }()
		DeferCleanup(func() {
			stop()
			Expect(<-done).To(Succeed())
		})
		Eventually(func() string { return refusal.ReasonOf(identity.Ready()) }).Should(Equal(enroll.RegistrationPending))

		makeMember(ctx, namespace, rbacv1.Subject{Kind: "ServiceAccount", Namespace: namespace, Name: "cloud"})
		Eventually(identity.Ready).Should(Succeed())
		config, err := identity.HubConfig(ctx)
		Expect(err).NotTo(HaveOccurred())
		a := &agent{ended: make(chan struct{})}
		a.running.Go(func() {
			defer GinkgoRecover()
			_ = a.runHeartbeat(running, memberClient, config, name)
		})
		DeferCleanup(func() {
			stop()
			a.running.Wait()
		})
		expectJoined(ctx, name)

		second := refresh()
		Expect(identity.Token(ctx)).To(Equal(second), "the tunnel uses the new one at once")
	})
})

var _ = Describe("A member that has joined", func() {
	var namespace, name string
	var a *agent

	join := func(ctx SpecContext, o gatewayOptions) {
		GinkgoHelper()
		namespace = makeNamespace(ctx)
		startGateway(o)
		a = startAgent(agentOptions{namespace: makeAgentNamespace(ctx), clientID: namespace, bootstrap: enroll.Given(registrationValues(ctx, namespace))})
		name = expectEnrolled(ctx, a)
		expectJoined(ctx, name)
		setHeartbeatPeriod(ctx, name, 1)
	}

	It("is Unknown and tainted without heartbeats, and recovers with its agent", func(ctx SpecContext) {
		join(ctx, gatewayOptions{silence: 4 * time.Second})
		Consistently(func() metav1.ConditionStatus {
			return expect.Condition(getMember(ctx, name).Status.Conditions, clusterv1beta1.ConditionJoined).Status
		}).WithTimeout(6*time.Second).Should(Equal(metav1.ConditionTrue), "only its Lease is renewed")
		a.end()
		var lease coordinationv1.Lease
		Expect(hubClient.Get(ctx, client.ObjectKey{Namespace: clusterv1beta1.MemberNamespace(name), Name: clusterv1beta1.AgentLease}, &lease)).To(Succeed())
		unreachable := And(HaveField("Key", clusterv1beta1.TaintUnreachable), HaveField("Effect", corev1.TaintEffectNoSchedule))
		Eventually(func(g Gomega) {
			mc := getMember(ctx, name)
			joined := expect.Condition(mc.Status.Conditions, clusterv1beta1.ConditionJoined)
			g.Expect(joined.Status).To(Equal(metav1.ConditionUnknown))
			g.Expect(joined.Message).To(ContainSubstring("sends no heartbeat"))
			// Times of conditions are whole seconds.
			g.Expect(joined.LastTransitionTime.Time).To(BeTemporally(">", lease.Spec.RenewTime.Add(3*time.Second)), "it had the full time")
			g.Expect(mc.Spec.Taints).To(ContainElement(unreachable))
		}).Should(Succeed())
		Eventually(func() ([]corev1.Event, error) {
			var events corev1.EventList
			err := hubClient.List(ctx, &events, client.InNamespace("default"))
			return events.Items, err
		}).Should(ContainElement(And(HaveField("InvolvedObject.Name", name), HaveField("Type", corev1.EventTypeWarning),
			HaveField("Reason", clusterv1beta1.EventMemberClusterJoinStateUnknown), HaveField("Message", ContainSubstring("sends no heartbeat")))))
		again := startAgent(agentOptions{namespace: a.namespace, clientID: namespace})
		Expect(expectEnrolled(ctx, again)).To(Equal(name))
		expectJoined(ctx, name)
		Eventually(func() []clusterv1beta1.Taint { return getMember(ctx, name).Spec.Taints }).ShouldNot(ContainElement(unreachable))
	})

	It("renews its Lease each period and writes nothing else", func(ctx SpecContext) {
		join(ctx, gatewayOptions{})
		var lease coordinationv1.Lease
		renewed := func() time.Time {
			Expect(hubClient.Get(ctx, client.ObjectKey{Namespace: clusterv1beta1.MemberNamespace(name), Name: clusterv1beta1.AgentLease}, &lease)).To(Succeed())
			return ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}).Time
		}
		first := time.Time{}
		Eventually(func() time.Time { first = renewed(); return first }).ShouldNot(BeZero())
		Eventually(renewed).Should(BeTemporally(">", first))
		var version string
		Eventually(func(g Gomega) {
			version = getMember(ctx, name).ResourceVersion
			g.Consistently(func() string { return getMember(ctx, name).ResourceVersion }).WithTimeout(3 * time.Second).Should(Equal(version))
		}).Should(Succeed())
		Expect(renewed()).To(BeTemporally(">", first.Add(2*time.Second)))
	})

	It("shows the member's report, and follows it", func(ctx SpecContext) {
		installClaims(ctx)
		join(ctx, gatewayOptions{})
		// Changes are reported at once, not with the next heartbeat.
		setHeartbeatPeriod(ctx, name, 600)
		claim := makeClaim(ctx, "platform-"+namespace, "bare-metal")
		property := func() string {
			return getMember(ctx, name).Status.Properties[clusterv1beta1.PropertyName("platform-"+namespace)].Value
		}
		Eventually(property).Should(Equal("bare-metal"))
		changeClaim(ctx, claim, "cloud")
		Eventually(property).Should(Equal("cloud"))
		mc := getMember(ctx, name)
		Expect(mc.Status.Properties[clusterv1beta1.PropertyEntrypoint].Value).To(Equal(member.URL))
		Expect(mc.Status.Properties[clusterv1beta1.PropertyCertificateAuthority].Value).NotTo(BeEmpty())
		Expect(mc.Status.Properties).To(HaveKeyWithValue(clusterv1beta1.PropertyEntrypoint, HaveField("ObservationTime", Not(BeZero()))))
		deleteClaim(ctx, claim)
		Eventually(func() map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue {
			return getMember(ctx, name).Status.Properties
		}).
			ShouldNot(HaveKey(clusterv1beta1.PropertyName("platform-" + namespace)))
	})

	It("reports its namespaces and their changes if enabled, until an agent without this option replaces it", func(ctx SpecContext) {
		namespace = makeNamespace(ctx)
		startGateway(gatewayOptions{})
		a = startAgent(agentOptions{
			namespace: makeAgentNamespace(ctx), clientID: namespace, bootstrap: enroll.Given(registrationValues(ctx, namespace)), collects: true,
		})
		name = expectEnrolled(ctx, a)
		expectJoined(ctx, name)
		told := func(g Gomega) map[string]string {
			mc := getMember(ctx, name)
			collected := expect.Condition(mc.Status.Conditions, "NamespaceCollectionSucceeded")
			g.Expect(collected.Status).To(Equal(metav1.ConditionTrue))
			g.Expect(collected.Reason).To(Equal("Succeeded"))
			g.Expect(collected.ObservedGeneration).To(Equal(mc.Generation))
			return mc.Status.Namespaces
		}
		Eventually(told).Should(And(HaveKeyWithValue("default", ""), HaveKeyWithValue("kube-system", ""), HaveKeyWithValue(a.namespace, "")))

		By("creating and deleting one between two heartbeats")
		made := makeAgentNamespace(ctx)
		Eventually(told).Should(HaveKeyWithValue(made, ""))
		Expect(memberClient.CoreV1().Namespaces().Delete(ctx, made, metav1.DeleteOptions{})).To(Succeed())
		Eventually(told).ShouldNot(HaveKey(made))
		mc := getMember(ctx, name)
		Expect(mc.Status.AgentStatusOf(clusterv1beta1.MemberAgent).Conditions).To(
			ConsistOf(HaveField("Type", "Joined"), HaveField("Type", "Healthy")), "clients compare all of them")

		By("running an agent that does not report them, like the previous version")
		a.end()
		again := startAgent(agentOptions{namespace: a.namespace, clientID: namespace})
		Expect(expectEnrolled(ctx, again)).To(Equal(name))
		Eventually(func(g Gomega) {
			mc := getMember(ctx, name)
			g.Expect(mc.Status.Namespaces).To(BeEmpty())
			g.Expect(expect.Condition(mc.Status.Conditions, "NamespaceCollectionSucceeded")).To(BeZero())
		}).Should(Succeed())
	})

	It("is published with the access through the gateway beside foreign entries, and is withdrawn with the member", func(ctx SpecContext) {
		join(ctx, gatewayOptions{})
		profile := &multiclusterv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1beta1.SystemNamespace, Name: name}}
		key := client.ObjectKeyFromObject(profile)
		ours := And(HaveField("Name", "cluster-gateway"), HaveField("Cluster.Server",
			hub.URL+"/apis/cluster.core.oam.dev/v1alpha1/clustergateways/"+name+"/proxy"))
		Eventually(func(g Gomega) {
			g.Expect(hubClient.Get(ctx, key, profile)).To(Succeed())
			g.Expect(profile.Status.AccessProviders).To(ConsistOf(ours))
			g.Expect(profile.Status.Version.Kubernetes).To(HavePrefix("v1."))
			g.Expect(expect.Condition(profile.Status.Conditions, multiclusterv1alpha1.ConditionControlPlaneHealthy).Status).To(Equal(metav1.ConditionTrue))
		}).Should(Succeed())
		Expect(profile.Labels).To(HaveKeyWithValue("x-k8s.io/cluster-manager", "fleetgate"))
		Eventually(func(g Gomega) {
			g.Expect(hubClient.Get(ctx, key, profile)).To(Succeed())
			g.Expect(expect.Condition(profile.Status.Conditions, multiclusterv1alpha1.ConditionJoined).Status).To(Equal(metav1.ConditionTrue))
			g.Expect(profile.Status.Properties).To(ContainElement(And(HaveField("Name", "k8s.io/k8s-version"), HaveField("Value", HavePrefix("v1.")))))
			g.Expect(profile.Status.Properties).NotTo(ContainElement(HaveField("Name", "kubernetes-fleet.io/node-count")), "it changes often")
		}).Should(Succeed())

		By("copying the member's labels, which selectors of profiles use")
		relabel := func(patch string) {
			mc := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
			Expect(hubClient.Patch(ctx, mc, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":`+patch+`}}`)))).To(Succeed())
		}
		found := func(selector client.MatchingLabels) func() (int, error) {
			return func() (int, error) {
				var list multiclusterv1alpha1.ClusterProfileList
				err := hubClient.List(ctx, &list, selector)
				return len(list.Items), err
			}
		}
		relabel(`{"tier":"edge-of-` + name + `"}`)
		Eventually(found(client.MatchingLabels{"tier": "edge-of-" + name})).Should(Equal(1))
		relabel(`{"tier":null}`)
		Eventually(found(client.MatchingLabels{"tier": "edge-of-" + name})).Should(BeZero())
		Expect(hubClient.Get(ctx, key, profile)).To(Succeed())

		By("adding foreign entries, and removing ours")
		profile.Status.AccessProviders = []multiclusterv1alpha1.AccessProviderStatus{{Name: "theirs"}}
		Expect(hubClient.Status().Update(ctx, profile)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(hubClient.Get(ctx, key, profile)).To(Succeed())
			g.Expect(profile.Status.AccessProviders).To(ConsistOf(HaveField("Name", "theirs"), ours))
		}).Should(Succeed())
		mc := getMember(ctx, name)
		Expect(hubClient.Delete(ctx, &mc)).To(Succeed())
		expectGone(ctx, profile)
		expectGone(ctx, &mc)
	})
})
