// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	eventsv1ac "k8s.io/client-go/applyconfigurations/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/cluster/agent/enroll"
	"fleetgate.io/fleetgate/pkg/cluster/agent/hubevents"
	"fleetgate.io/fleetgate/pkg/cluster/hub/membership"
	"fleetgate.io/fleetgate/test/support/expect"
)

// eventsMade counts the events, because each has its own name.
var eventsMade atomic.Int32

// eventOf is an event that an agent can create.
func eventOf(namespace string, alter ...func(*eventsv1.Event)) *eventsv1.Event {
	event := &eventsv1.Event{
		ObjectMeta: named(namespace, clusterv1beta1.AgentEventName(int(eventsMade.Add(1))%clusterv1beta1.MaxAgentEvents)),
		EventTime:  metav1.NowMicro(), Action: "Apply", Reason: "Applied", Type: corev1.EventTypeNormal,
		ReportingController: "fleetgate.io/agent", ReportingInstance: "agent-0", Note: "a note",
		Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: "x"},
	}
	for _, change := range alter {
		change(event)
	}
	return event
}

// recorderOf is the event recorder of an agent's controllers.
func recorderOf(config *rest.Config) events.EventRecorder {
	GinkgoHelper()
	manager, err := ctrl.NewManager(config, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	Expect(err).NotTo(HaveOccurred())
	agents, err := hubevents.Of(manager)
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- agents.Start(ctx) }()
	DeferCleanup(func() {
		cancel()
		Eventually(done).Should(Receive(BeNil()))
	})
	return agents.GetEventRecorder("fleetgate.io/agent")
}

// secretOf is a Secret that an agent can create.
func secretOf(namespace string, alter ...func(*corev1.Secret)) *corev1.Secret {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, GenerateName: "token-",
			Labels: map[string]string{authenticationv1beta1.LabelManagedServiceAccount: authenticationv1beta1.LabelManagedServiceAccountValue},
		},
		Data: map[string][]byte{authenticationv1beta1.SecretKeyToken: []byte("t"), authenticationv1beta1.SecretKeyCA: []byte("c")},
	}
	for _, change := range alter {
		change(secret)
	}
	return secret
}

// seen is the FlowSchema that the API server matched to the last request of a client.
type seen struct{ uid atomic.Pointer[string] }

func (s *seen) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err == nil {
			s.uid.Store(ptr.To(response.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID)))
		}
		return response, err
	})
}

var _ = Describe("An agent that creates too many objects", Label("hostile"), func() {
	var name, namespace string
	var agentConfig *rest.Config
	var agentClient client.Client

	BeforeEach(func(ctx SpecContext) {
		in := makeNamespace(ctx)
		startGateway(gatewayOptions{})
		a := startAgent(agentOptions{namespace: makeAgentNamespace(ctx), clientID: in, bootstrap: enroll.Given(registrationValues(ctx, in))})
		name = expectEnrolled(ctx, a)
		expectJoined(ctx, name)
		namespace = clusterv1beta1.MemberNamespace(name)
		var err error
		agentConfig, err = a.enroller.HubConfig(ctx)
		Expect(err).NotTo(HaveOccurred())
		agentClient = expect.Client(agentConfig, scheme)
	})

	expectTooLarge := func(err error, text string) {
		GinkgoHelper()
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "got %v", err)
		Expect(err).To(MatchError(And(ContainSubstring("fleetgate-member-sizes"), ContainSubstring(text))))
	}
	const much = 250 << 10

	It("cannot create an event of 250 KB in any field", func(ctx SpecContext) {
		Expect(agentClient.Create(ctx, eventOf(namespace, func(e *eventsv1.Event) { e.Note = strings.Repeat("n", 1000) }))).To(Succeed())
		for what, alter := range map[string]func(*eventsv1.Event){
			"an annotation": func(e *eventsv1.Event) { e.Annotations = map[string]string{"a": strings.Repeat("n", much)} },
			"many finalizers": func(e *eventsv1.Event) {
				e.Finalizers = slices.Repeat([]string{"example.com/" + strings.Repeat("f", 60)}, much/72)
			},
			"regarding": func(e *eventsv1.Event) { e.Regarding.FieldPath = strings.Repeat("n", much) },
			"related":   func(e *eventsv1.Event) { e.Related = &corev1.ObjectReference{Name: strings.Repeat("n", much)} },
		} {
			By(what)
			expectTooLarge(agentClient.Create(ctx, eventOf(namespace, alter)), "at most 8192 characters")
		}

		By("updating a small event")
		event := eventOf(namespace)
		Expect(agentClient.Create(ctx, event)).To(Succeed())
		expectTooLarge(agentClient.Patch(ctx, event, client.RawPatch(types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"a":"`+strings.Repeat("n", much)+`"}}}`))), "at most 8192 characters")
	})

	It("has no more events on the hub than allowed names", func(ctx SpecContext) {
		refused := func(err error) {
			GinkgoHelper()
			Expect(apierrors.IsForbidden(err)).To(BeTrue(), "got %v", err)
			Expect(err).To(MatchError(And(ContainSubstring("fleetgate-member-sizes"), ContainSubstring("named agent.00 to agent.ff"))))
		}
		config := rest.CopyConfig(agentConfig)
		config.QPS = -1
		hasty := expect.Client(config, scheme)
		for i := range 333 {
			err := hasty.Create(ctx, eventOf(namespace, func(e *eventsv1.Event) { e.Name = clusterv1beta1.AgentEventName(i) }))
			if i < clusterv1beta1.MaxAgentEvents {
				Expect(err).NotTo(HaveOccurred())
			} else {
				refused(err)
			}
		}
		refused(agentClient.Create(ctx, eventOf(namespace, func(e *eventsv1.Event) { e.Name, e.GenerateName = "", "agent-" })))
		refused(agentClient.Create(ctx, eventOf(namespace, func(e *eventsv1.Event) { e.Name = "agent.00.more" })))
		refused(agentClient.Apply(ctx, eventsv1ac.Event("applied", namespace).WithEventTime(metav1.NowMicro()).WithAction("Apply").WithReason("Applied").
			WithType(corev1.EventTypeNormal).WithReportingController("fleetgate.io/agent").WithReportingInstance("agent-0").
			WithRegarding(corev1ac.ObjectReference().WithAPIVersion("v1").WithKind("ConfigMap").WithNamespace(namespace).WithName("x")), client.FieldOwner("agent")))
		made := func() []eventsv1.Event {
			var there eventsv1.EventList
			Expect(hubClient.List(ctx, &there, client.InNamespace(namespace))).To(Succeed())
			return slices.DeleteFunc(there.Items, func(e eventsv1.Event) bool { return e.ReportingController != "fleetgate.io/agent" })
		}
		Expect(made()).To(HaveLen(clusterv1beta1.MaxAgentEvents))

		By("expiring an event, whose name is used again")
		Expect(hubClient.Delete(ctx, &made()[7])).To(Succeed())
		recorder := recorderOf(agentConfig)
		Eventually(func() []eventsv1.Event {
			work := &corev1.ObjectReference{APIVersion: placementv1beta1.GroupVersion.String(), Kind: "Work", Namespace: namespace, Name: "w-" + rand.String(8)}
			recorder.Eventf(work, nil, corev1.EventTypeWarning, "Contested", "Repair", "a note of the agent's own")
			return made()
		}).Should(And(HaveLen(clusterv1beta1.MaxAgentEvents), ContainElement(And(HaveField("Reason", "Contested"), HaveField("Name", HavePrefix("agent."))))))
	})

	It("cannot create a Secret with 250 KB of annotations, or a report of a megabyte", func(ctx SpecContext) {
		Expect(agentClient.Create(ctx, secretOf(namespace))).To(Succeed())
		expectTooLarge(agentClient.Create(ctx, secretOf(namespace, func(s *corev1.Secret) {
			s.Annotations = map[string]string{"a": strings.Repeat("n", much)}
		})), "labels, annotations, finalizers and owners")
		var imc clusterv1beta1.InternalMemberCluster
		Expect(agentClient.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &imc)).To(Succeed())
		reported := imc.DeepCopy()
		reported.Status.Properties = map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{
			"example.com/much": {Value: strings.Repeat("n", 1<<20), ObservationTime: metav1.Now()},
		}
		expectTooLarge(agentClient.Status().Patch(ctx, reported, client.MergeFrom(&imc)), "properties")
		reported = imc.DeepCopy()
		reported.Status.ResourceUsage.Capacity = corev1.ResourceList{corev1.ResourceName("example.com/" + strings.Repeat("n", 1<<20)): resource.MustParse("1")}
		expectTooLarge(agentClient.Status().Patch(ctx, reported, client.MergeFrom(&imc)), "names of its resources")
		reported = imc.DeepCopy()
		reported.Status.Namespaces = map[string]string{strings.Repeat("n", 1<<20): ""}
		expectTooLarge(agentClient.Status().Patch(ctx, reported, client.MergeFrom(&imc)), "its namespaces")
		reported = imc.DeepCopy()
		for range 40 {
			reported.Status.AgentStatus[0].Conditions = append(reported.Status.AgentStatus[0].Conditions, metav1.Condition{
				Type: "T" + rand.String(8), Status: metav1.ConditionTrue, Reason: "R", Message: strings.Repeat("n", 16<<10), LastTransitionTime: metav1.Now(),
			})
		}
		expectTooLarge(agentClient.Status().Patch(ctx, reported, client.MergeFrom(&imc)), "conditions")
	})

	It("cannot create more Secrets than its quota, which the hub restores after changes", func(ctx SpecContext) {
		quota := &corev1.ResourceQuota{ObjectMeta: named(namespace, membership.QuotaName)}
		Eventually(func(g Gomega) {
			g.Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(quota), quota)).To(Succeed())
			g.Expect(quota.Status.Used).To(HaveKey(corev1.ResourceName("count/secrets")))
		}).Should(Succeed())
		most := quota.Spec.Hard["count/secrets"]
		Expect(most.Value()).To(BeEquivalentTo(2000))

		By("lowering the quota to the number of existing Secrets")
		Eventually(func(g Gomega) { // The hub can restore it because of another change of the member.
			g.Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(quota), quota)).To(Succeed())
			quota.Spec.Hard["count/secrets"] = quota.Status.Used["count/secrets"]
			g.Expect(hubClient.Update(ctx, quota)).To(Succeed())
			g.Expect(agentClient.Create(ctx, secretOf(namespace), client.DryRunAll)).To(MatchError(ContainSubstring("exceeded quota: " + membership.QuotaName)))
		}).Should(Succeed())
		setHeartbeatPeriod(ctx, name, 59)
		Eventually(func(g Gomega) {
			g.Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(quota), quota)).To(Succeed())
			g.Expect(quota.Spec.Hard["count/secrets"]).To(Equal(most))
		}).Should(Succeed())
	})

	It("has its own priority level for all its requests, and nobody else uses it", func(ctx SpecContext) {
		level := &flowcontrolv1.PriorityLevelConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "agents-" + namespace},
			Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
				Type: flowcontrolv1.PriorityLevelEnablementLimited,
				Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
					NominalConcurrencyShares: ptr.To[int32](20),
					LimitResponse: flowcontrolv1.LimitResponse{
						Type: flowcontrolv1.LimitResponseTypeQueue, Queuing: &flowcontrolv1.QueuingConfiguration{Queues: 16, HandSize: 4, QueueLengthLimit: 50},
					},
				},
			},
		}
		Expect(hubClient.Create(ctx, level)).To(Succeed())
		startGateway(gatewayOptions{level: level.Name})
		requests, leases := &flowcontrolv1.FlowSchema{}, &flowcontrolv1.FlowSchema{}
		Eventually(func(g Gomega) {
			g.Expect(hubClient.Get(ctx, client.ObjectKey{Name: membership.FlowSchemaAgents}, requests)).To(Succeed())
			g.Expect(hubClient.Get(ctx, client.ObjectKey{Name: membership.FlowSchemaLeases}, leases)).To(Succeed())
		}).Should(Succeed())
		Expect(metav1.IsControlledBy(requests, level) || requests.OwnerReferences[0].UID == level.UID).To(BeTrue(), "its level owns it")

		agentSeen, otherSeen := &seen{}, &seen{}
		config := rest.CopyConfig(agentConfig)
		config.Wrap(agentSeen.wrap)
		agents := expect.Client(config, scheme)
		account := &corev1.ServiceAccount{ObjectMeta: named("default", "default")}
		token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](600)}}
		Expect(hubClient.SubResource("token").Create(ctx, account, token)).To(Succeed())
		config = hubConfigWith(token.Status.Token)
		config.Wrap(otherSeen.wrap)
		others := expect.Client(config, scheme)

		matched := func(s *seen, do func() error) types.UID {
			s.uid.Store(nil)
			_ = do() // Whether it is allowed does not matter here.
			if uid := s.uid.Load(); uid != nil {
				return types.UID(*uid)
			}
			return ""
		}
		writes := func(c client.Client, in string) map[string]func() error {
			patch := client.RawPatch(types.MergePatchType, []byte(`{}`))
			return map[string]func() error{
				"event":    func() error { return c.Create(ctx, eventOf(in)) },
				"a Secret": func() error { return c.Create(ctx, secretOf(in)) },
				"a report": func() error {
					return c.Status().Patch(ctx, &clusterv1beta1.InternalMemberCluster{ObjectMeta: named(in, name)}, patch)
				},
				"a Work":        func() error { return c.Patch(ctx, &placementv1beta1.Work{ObjectMeta: named(in, "w")}, patch) },
				"its status":    func() error { return c.Status().Patch(ctx, &placementv1beta1.Work{ObjectMeta: named(in, "w")}, patch) },
				"a token":       func() error { return minting(in, clusterv1beta1.AgentAccount)(ctx, c) },
				"reading Works": func() error { return c.List(ctx, &placementv1beta1.WorkList{}, client.InNamespace(in)) },
			}
		}
		heartbeat := func(c client.Client, in string) func() error {
			return func() error {
				return patching(&coordinationv1.Lease{ObjectMeta: named(in, clusterv1beta1.AgentLease)}, `{}`, "")(ctx, c)
			}
		}
		// The API server notices a FlowSchema with a delay.
		Eventually(func() types.UID { return matched(agentSeen, heartbeat(agents, namespace)) }).Should(Equal(leases.UID))
		for what, do := range writes(agents, namespace) {
			Eventually(func() types.UID { return matched(agentSeen, do) }).Should(Equal(requests.UID), what)
		}
		Expect(matched(otherSeen, heartbeat(others, "default"))).NotTo(BeElementOf(leases.UID, requests.UID, types.UID("")), "another user's Lease")
		for what, do := range writes(others, "default") {
			Expect(matched(otherSeen, do)).NotTo(BeElementOf(leases.UID, requests.UID, types.UID("")), "another user's "+what)
		}

		By("deleting the level, like helm uninstall")
		Expect(hubClient.Delete(ctx, level)).To(Succeed())
		expectGone(ctx, requests)
		expectGone(ctx, leases)
	})
})
