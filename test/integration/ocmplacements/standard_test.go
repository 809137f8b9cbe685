// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ocmplacements_test

import (
	"context"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/apis/crds"
	multiclusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/multicluster/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement"
	"fleetgate.io/fleetgate/pkg/placement/dispatch"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
	"fleetgate.io/fleetgate/test/support/onehub"
	"fleetgate.io/fleetgate/test/support/program"
)

const fleetSystem = "fleet-system"

// reader is the client of these specs.
var reader client.Client

// serveStandard installs the CRDs of placements and of the standard on the hub.
func serveStandard(ctx context.Context) {
	GinkgoHelper()
	kinds := build.Scheme(scheme.AddToScheme, clusterv1beta1.AddToScheme, placementv1beta1.AddToScheme, multiclusterv1alpha1.AddToScheme, ocmclusterv1beta1.AddToScheme)
	reader = expect.Client(hub.Config(), kinds)
	definitions, err := crds.ForHub(clusterv1beta1.GroupVersion.Group, placementv1beta1.GroupName, multiclusterv1alpha1.GroupName)
	onehub.Serve(hub, definitions, err)
	Expect(client.IgnoreAlreadyExists(hubClient.Create(ctx, build.Namespace(fleetSystem)))).To(Succeed())
	out, err := program.Kubectl(ctx, hub, "", "apply", "--filename", "../../support/fleet/gateway-rbac.yaml")
	Expect(err).NotTo(HaveOccurred(), out)
}

// publish runs the controllers for decisions and members' placements with the gateway's rights
// until the returned function is called.
func publish(all bool) (stop func()) {
	GinkgoHelper()
	running := expect.Started(func(ctx context.Context) (func(context.Context) error, error) {
		account, err := hub.ConfigFor("fleetgate:gateway")
		if err != nil {
			return nil, err
		}
		skip := true
		mgr, err := ctrl.NewManager(build.Unlimited(account), ctrl.Options{
			Scheme: reader.Scheme(), Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &skip},
			Cache: cache.Options{ByObject: dispatch.CacheOptions()},
		})
		if err != nil {
			return nil, err
		}
		if err := placement.SetupWithManager(ctx, mgr, placement.Options{Clock: clock.RealClock{}}); err != nil {
			return nil, err
		}
		return mgr.Start, placement.SetupStandardDecisions(ctx, mgr, placement.StandardOptions{Fleet: true, All: all, OCM: true, Namespace: fleetSystem, Workers: 4})
	})
	DeferCleanup(running.Stop)
	return running.Stop
}

// profile publishes a cluster as a cluster manager does.
func profile(ctx context.Context, name, manager string) *multiclusterv1alpha1.ClusterProfile {
	GinkgoHelper()
	p := &multiclusterv1alpha1.ClusterProfile{ObjectMeta: build.In(fleetSystem, name)}
	p.Spec.ClusterManager.Name = manager
	expect.CreatedForSpec(ctx, reader, p)
	return p
}

// published returns the objects of a decision, by index.
func published(ctx context.Context, namespace, key string) []multiclusterv1alpha1.PlacementDecision {
	GinkgoHelper()
	var list multiclusterv1alpha1.PlacementDecisionList
	Expect(reader.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{multiclusterv1alpha1.LabelDecisionKey: key})).To(Succeed())
	slices.SortFunc(list.Items, func(a, b multiclusterv1alpha1.PlacementDecision) int {
		return len(a.Name)*1000 + int(a.Name[len(a.Name)-1]) - len(b.Name)*1000 - int(b.Name[len(b.Name)-1])
	})
	return list.Items
}

// told returns the clusters of a decision as a reader of the standard gets them; nil if there is no
// decision.
func told(ctx context.Context, namespace, key string) func() []string {
	return func() []string {
		objects := published(ctx, namespace, key)
		if len(objects) == 0 {
			return nil
		}
		names := []string{}
		for i, object := range objects {
			Expect(object.Labels).To(HaveKeyWithValue(multiclusterv1alpha1.LabelDecisionIndex, fmt.Sprint(i)))
			Expect(object.SchedulerName).To(Equal("fleetgate"))
			for _, decision := range object.Decisions {
				Expect(decision.ClusterProfileRef.Namespace).To(Equal(fleetSystem))
				names = append(names, decision.ClusterProfileRef.Name)
			}
		}
		return names
	}
}

// annotate sets the annotation that publishes an object's decision; an empty value removes it.
func annotate(ctx context.Context, object client.Object, value string) {
	GinkgoHelper()
	text := fmt.Sprintf("%q", value)
	if value == "" {
		text = "null"
	}
	Expect(reader.Patch(ctx, object, expect.MergePatch(`{"metadata": {"annotations": {"fleetgate.io/standard-decisions": `+text+`}}}`))).To(Succeed())
}

// member creates a MemberCluster that has joined and sends heartbeats.
func member(ctx context.Context, name string) {
	GinkgoHelper()
	namespace := build.Namespace(clusterv1beta1.MemberNamespace(name))
	Expect(client.IgnoreAlreadyExists(reader.Create(ctx, namespace))).To(Succeed())
	m := &clusterv1beta1.MemberCluster{ObjectMeta: build.Named(name)}
	m.Spec.Identity = rbacv1.Subject{Kind: "ServiceAccount", Name: "agent", Namespace: namespace.Name}
	expect.CreatedForSpec(ctx, reader, m)
	is := func(kind string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Test", LastTransitionTime: metav1.Now()}
	}
	m.Status.AgentStatus = []clusterv1beta1.AgentStatus{{
		Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: metav1.Now(),
		Conditions: []metav1.Condition{is(clusterv1beta1.ConditionJoined), is(clusterv1beta1.ConditionHealthy)},
	}}
	Expect(reader.Status().Update(ctx, m)).To(Succeed())
}

// pick returns a policy for these members.
func pick(members ...string) placementv1beta1.PlacementSpec {
	return placementv1beta1.PlacementSpec{
		ResourceSelectors: []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "ConfigMap", Name: "nothing"}},
		Policy:            &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixed, ClusterNames: members},
	}
}

var _ = Describe("A published PlacementDecision of the standard", Serial, Ordered, func() {
	BeforeAll(func(ctx SpecContext) { serveStandard(ctx) })

	It("names the ClusterProfiles of a Placement's clusters only", func(ctx SpecContext) {
		publish(false)
		b := newBed(ctx, 4)
		profile(ctx, b.name(1), "fleetgate")
		profile(ctx, b.name(3), "somebody")
		second := profile(ctx, b.name(2), "fleetgate")
		p := b.place(ctx, "p", nil)
		Expect(hubClient.Patch(ctx, p, expect.MergePatch(`{"metadata": {"labels": {"multicluster.x-k8s.io/placement-key": "shop"}}}`))).To(Succeed())
		is := told(ctx, b.namespace, "placement-p")
		Eventually(is).Should(Equal(b.names(1, 2)))
		Eventually(func() map[string]string { return published(ctx, b.namespace, "placement-p")[0].Labels }).Should(Equal(map[string]string{
			"multicluster.x-k8s.io/decision-key": "placement-p", "multicluster.x-k8s.io/decision-index": "0", "multicluster.x-k8s.io/placement-key": "shop",
		}))
		Eventually(func(g Gomega) []string {
			var events eventsv1.EventList
			g.Expect(hubClient.List(ctx, &events, client.InNamespace(b.namespace))).To(Succeed())
			var notes []string
			for _, event := range events.Items {
				if event.Reason == "ClustersNotPublished" {
					notes = append(notes, event.Type+" "+event.Note)
				}
			}
			return notes
		}).Should(ContainElement(fmt.Sprintf("Warning Not in PlacementDecisions of multicluster.x-k8s.io: %s, %s without a ClusterProfile of manager fleetgate in namespace fleet-system", b.name(3), b.name(4))))

		By("creating and deleting profiles")
		profile(ctx, b.name(4), "fleetgate")
		Eventually(is).Should(Equal(b.names(1, 2, 4)))
		Expect(reader.Delete(ctx, second)).To(Succeed())
		Eventually(is).Should(Equal(b.names(1, 4)))

		By("changing the decision until it is empty")
		cluster(ctx, b.name(1), taint(clusterv1.TaintEffectNoSelect))
		Eventually(is).Should(Equal(b.names(4)))
		cluster(ctx, b.name(4), taint(clusterv1.TaintEffectNoSelect))
		Eventually(is).Should(Equal([]string{}), "an empty decision is not a deleted one")

		By("deleting the Placement")
		Expect(hubClient.Delete(ctx, p)).To(Succeed())
		Eventually(is).Should(BeNil())
	})

	It("is split into slices of 100, of which one change writes one", func(ctx SpecContext) {
		publish(false)
		b := newBed(ctx, 230)
		for n := range 230 {
			profile(ctx, b.name(n+1), "fleetgate")
		}
		b.place(ctx, "many", nil)
		is := told(ctx, b.namespace, "placement-many")
		Eventually(is).Should(HaveLen(230))
		before := published(ctx, b.namespace, "placement-many")
		Expect(before).To(HaveLen(3))
		cluster(ctx, b.name(1), taint(clusterv1.TaintEffectNoSelect))
		Eventually(is).Should(And(HaveLen(229), Not(ContainElement(b.name(1)))))
		same := 0
		for i, object := range published(ctx, b.namespace, "placement-many") {
			Expect(len(object.Decisions)).To(BeNumerically("<=", 100))
			if object.ResourceVersion == before[i].ResourceVersion {
				same++
			}
		}
		Expect(same).To(Equal(2), "the others were written too")
	})

	It("is restored when a user changes or deletes it, and foreign objects stay", func(ctx SpecContext) {
		publish(false)
		b := newBed(ctx, 1)
		profile(ctx, b.name(1), "fleetgate")
		other := &multiclusterv1alpha1.PlacementDecision{ObjectMeta: build.In(b.namespace, "placement-taken-0"), Decisions: []multiclusterv1alpha1.ClusterDecision{}, SchedulerName: "somebody"}
		expect.Created(ctx, reader, other)
		p := b.place(ctx, "p", nil)
		b.place(ctx, "taken", nil)
		is := told(ctx, b.namespace, "placement-p")
		Eventually(is).Should(Equal(b.names(1)))
		object := func() *multiclusterv1alpha1.PlacementDecision {
			return &published(ctx, b.namespace, "placement-p")[0]
		}
		for what, patch := range map[string]string{
			"clusters": `{"decisions": []}`, "labels": `{"metadata": {"labels": null}}`, "owner": `{"metadata": {"ownerReferences": null}}`, "scheduler": `{"schedulerName": "me"}`,
		} {
			By("changing its " + what)
			was := object()
			Expect(reader.Patch(ctx, was.DeepCopy(), expect.MergePatch(patch))).To(Succeed())
			Eventually(func(g Gomega) {
				now := &multiclusterv1alpha1.PlacementDecision{}
				g.Expect(reader.Get(ctx, client.ObjectKeyFromObject(was), now)).To(Succeed())
				g.Expect(now.Decisions).To(Equal(was.Decisions))
				g.Expect(now.Labels).To(Equal(was.Labels))
				g.Expect(now.OwnerReferences).To(Equal(was.OwnerReferences))
				g.Expect(now.SchedulerName).To(Equal(was.SchedulerName))
			}).Should(Succeed())
		}
		Expect(reader.Delete(ctx, object())).To(Succeed())
		Eventually(is).Should(Equal(b.names(1)))
		annotate(ctx, p, "false")
		Eventually(is).Should(BeNil())
		annotate(ctx, p, "")
		Eventually(is).Should(Equal(b.names(1)))
		left := other.ResourceVersion
		Expect(reader.Get(ctx, client.ObjectKeyFromObject(other), other)).To(Succeed())
		Expect(other.ResourceVersion).To(Equal(left))
	})

	It("exists for members' placements with the annotation, and for all with placement.standardDecisions", func(ctx SpecContext) {
		stop := publish(false)
		namespace := expect.FreshNamespace(ctx, hubClient)
		for _, name := range []string{"std-1", "std-2", "std-3"} {
			member(ctx, name)
			profile(ctx, name, "fleetgate")
		}
		wide := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: build.Named("std-wide"), Spec: pick("std-1", "std-3")}
		narrow := &placementv1beta1.ResourcePlacement{ObjectMeta: build.In(namespace, "narrow"), Spec: pick("std-2")}
		silent := &placementv1beta1.ResourcePlacement{ObjectMeta: build.In(namespace, "silent"), Spec: pick("std-1")}
		wide.Spec.ResourceSelectors[0].Kind = "Namespace"
		for _, object := range []client.Object{wide, narrow, silent} {
			expect.CreatedForSpec(ctx, reader, object)
		}
		annotate(ctx, wide, "true")
		annotate(ctx, narrow, "true")
		ofWide, ofNarrow, ofSilent := told(ctx, fleetSystem, "clusterresourceplacement-std-wide"), told(ctx, namespace, "resourceplacement-narrow"), told(ctx, namespace, "resourceplacement-silent")
		Eventually(ofWide).Should(Equal([]string{"std-1", "std-3"}))
		Eventually(ofNarrow).Should(Equal([]string{"std-2"}))
		Expect(reader.Get(ctx, client.ObjectKeyFromObject(wide), wide)).To(Succeed())
		wide.Spec.Policy.ClusterNames = []string{"std-2", "std-3"}
		Expect(reader.Update(ctx, wide)).To(Succeed())
		Eventually(ofWide).Should(Equal([]string{"std-2", "std-3"}))
		annotate(ctx, narrow, "")
		Eventually(ofNarrow).Should(BeNil())
		Expect(ofSilent()).To(BeNil())

		By("restarting with standardDecisions")
		stop()
		annotate(ctx, wide, "false")
		publish(true)
		Eventually(ofSilent).Should(Equal([]string{"std-1"}))
		Eventually(ofNarrow).Should(Equal([]string{"std-2"}))
		Eventually(ofWide).Should(BeNil())
		Expect(reader.Delete(ctx, silent)).To(Succeed())
		Eventually(ofSilent).Should(BeNil())

		By("removing the others while their finalizer's controller runs")
		for _, object := range []client.Object{wide, narrow, silent} {
			expect.Removed(ctx, reader, object)
		}
	})

	It("is written by the gateway, and the annotation is rejected where nothing is published", func(ctx SpecContext) {
		gateway.Stop()
		DeferCleanup(func() { gateway = start() })
		program.Gateway(ctx, hub, "--apis=fleet,clusterprofile", "--ocm=placement", "--components=controllers", "--leader-elect=false", program.Configuration("placement: {standardDecisions: true}"))
		b := newBed(ctx, 1)
		profile(ctx, b.name(1), "fleetgate")
		b.place(ctx, "p", nil)
		Eventually(told(ctx, b.namespace, "placement-p")).Should(Equal(b.names(1)))
		nobodys := &placementv1beta1.ResourcePlacement{ObjectMeta: build.In(b.namespace, "nobodys"), Spec: pick("nobody")}
		expect.CreatedForSpec(ctx, reader, nobodys)
		Eventually(told(ctx, b.namespace, "resourceplacement-nobodys")).Should(Equal([]string{}))
		Expect(program.Refused(ctx, hub, "--ocm=placement", program.Configuration("placement: {standardDecisions: true}"))).
			To(ContainSubstring("placement.standardDecisions: Forbidden: has no effect without clusterprofile in features.apis"))
	})

	It("cannot have more than 100 clusters, or clusters without a name", func(ctx SpecContext) {
		object := &multiclusterv1alpha1.PlacementDecision{ObjectMeta: build.In("default", "too-many")}
		object.Decisions = make([]multiclusterv1alpha1.ClusterDecision, 101)
		Expect(reader.Create(ctx, object)).To(Satisfy(apierrors.IsInvalid))
		_, err := program.Kubectl(ctx, hub, "{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: PlacementDecision, metadata: {name: x}, decisions: [{clusterProfileRef: {}}]}", "create", "-f", "-")
		Expect(err).To(HaveOccurred())
	})
})
