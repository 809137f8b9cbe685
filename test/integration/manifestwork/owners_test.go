// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/apis/crds"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/work/agent/manifestwork"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
)

func orphaning(option workv1.DeleteOption) workv1.ManifestWorkSpec {
	return workv1.ManifestWorkSpec{DeleteOption: &option}
}

func selectively(namespace, name string) workv1.DeleteOption {
	return workv1.DeleteOption{PropagationPolicy: "SelectivelyOrphan", SelectivelyOrphan: &workv1.SelectivelyOrphan{
		OrphaningRules: []workv1.OrphaningRule{{Resource: "configmaps", Namespace: namespace, Name: name}}}}
}

var _ = Describe("An object of a ManifestWork", func() {
	It("is shared with others and removed with the last", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "shared-one", workv1.ManifestWorkSpec{}, build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(conditions(ctx, "shared-one")).Should(beDone())
		createWork(ctx, "shared-two", workv1.ManifestWorkSpec{}, build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(conditions(ctx, "shared-two")).Should(beDone())
		Eventually(owners(ctx, ns, "a")).Should(ConsistOf(recordName("shared-one"), recordName("shared-two")))

		updateWork(ctx, "shared-two", func(work *workv1.ManifestWork) {
			work.Spec.Workload.Manifests = manifests(build.ConfigMapText(ns, "b"))
		})
		Eventually(owners(ctx, ns, "a")).Should(ConsistOf(recordName("shared-one")))
		removeWork(ctx, "shared-one")
		Expect(expect.Data(ctx, memberClient, ns, "a")()).To(BeNil())
	})

	It("is removed although an owner that is no work remains", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "no-obstacle", workv1.ManifestWorkSpec{}, build.ConfigMapText(ns, "b", "x", "1"))
		Eventually(conditions(ctx, "no-obstacle")).Should(beDone())
		theirs := foreignConfigMap(ctx, ns, nil)
		object := expect.ConfigMap(ctx, memberClient, ns, "b")
		object.OwnerReferences = append(object.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: theirs.Name, UID: theirs.UID})
		Expect(memberClient.Update(ctx, object)).To(Succeed())
		updateWork(ctx, "no-obstacle", func(work *workv1.ManifestWork) {
			work.Spec.Workload.Manifests = manifests(build.ConfigMapText(ns, "b", "x", "2"))
		})
		Eventually(expect.Data(ctx, memberClient, ns, "b")).Should(Equal(map[string]string{"x": "2"}))
		Expect(owners(ctx, ns, "b")()).To(ConsistOf("a", recordName("no-obstacle")))
		removeWork(ctx, "no-obstacle")
		Expect(expect.Data(ctx, memberClient, ns, "b")()).To(BeNil())
	})

	It("stays without owners with policy Orphan", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "orphan", orphaning(workv1.DeleteOption{PropagationPolicy: "Orphan"}), build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(conditions(ctx, "orphan")).Should(beDone())
		Expect(owners(ctx, ns, "a")()).To(BeEmpty())
		removeWork(ctx, "orphan")
		Expect(expect.Data(ctx, memberClient, ns, "a")()).To(Equal(map[string]string{"x": "1"}))
		Expect(record(ctx, "orphan")).To(BeNil())
	})

	It("loses its owner reference while it is orphaned and regains it afterwards", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "selective", workv1.ManifestWorkSpec{}, build.ConfigMapText(ns, "a", "x", "1"), build.ConfigMapText(ns, "b", "x", "1"))
		Eventually(conditions(ctx, "selective")).Should(beDone())
		set := func(option *workv1.DeleteOption) {
			updateWork(ctx, "selective", func(work *workv1.ManifestWork) { work.Spec.DeleteOption = option })
		}
		one := selectively(ns, "a")
		set(&one)
		Eventually(owners(ctx, ns, "a")).Should(BeEmpty())
		Expect(owners(ctx, ns, "b")()).To(HaveLen(1))
		Eventually(ledger(ctx, "selective")).Should(HaveExactElements("b"))
		set(nil)
		Eventually(owners(ctx, ns, "a")).Should(HaveLen(1))
		Eventually(ledger(ctx, "selective")).Should(HaveExactElements("a", "b"))
		set(&one)
		Eventually(owners(ctx, ns, "a")).Should(BeEmpty())

		By("leaving the work")
		updateWork(ctx, "selective", func(work *workv1.ManifestWork) {
			work.Spec.Workload.Manifests = manifests(build.ConfigMapText(ns, "b", "x", "1"))
		})
		Eventually(conditions(ctx, "selective")).Should(beDone())
		removeWork(ctx, "selective")
		Expect(expect.Data(ctx, memberClient, ns, "a")()).NotTo(BeNil())
		Expect(expect.Data(ctx, memberClient, ns, "b")()).To(BeNil())
	})

	It("stays although the orphaning rule was set only with the deletion", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "late-orphan", workv1.ManifestWorkSpec{}, build.ConfigMapText(ns, "a", "x", "1"), build.ConfigMapText(ns, "b", "x", "1"))
		Eventually(conditions(ctx, "late-orphan")).Should(beDone())
		agent.Stop()
		updateWork(ctx, "late-orphan", func(work *workv1.ManifestWork) {
			one := selectively(ns, "a")
			work.Spec.DeleteOption = &one
		})
		Expect(hubClient.Delete(ctx, getWork(ctx, "late-orphan"))).To(Succeed())
		agent = startAgent(agentOptions{})
		removeWork(ctx, "late-orphan")
		Expect(owners(ctx, ns, "a")()).To(BeEmpty())
		Expect(expect.Data(ctx, memberClient, ns, "b")()).To(BeNil())
	})
})

var _ = Describe("An object that moves from one ManifestWork to another", func() {
	It("is not deleted in between, in either order of reconciles", func(ctx SpecContext) {
		const pairs = 10
		ns := expect.FreshNamespace(ctx, memberClient)
		name := func(what string, n int) string { return fmt.Sprintf("%s-%d", what, n) }
		before := map[string]types.UID{}
		for n := range pairs {
			createWork(ctx, name("heir-from", n), workv1.ManifestWorkSpec{}, build.ConfigMapText(ns, name("c", n), "x", "1"))
		}
		for n := range pairs {
			Eventually(conditions(ctx, name("heir-from", n))).Should(beDone())
			before[name("c", n)] = expect.ConfigMap(ctx, memberClient, ns, name("c", n)).UID
		}
		agent.Stop()
		for n := range pairs {
			createWork(ctx, name("heir-to", n), workv1.ManifestWorkSpec{}, build.ConfigMapText(ns, name("c", n), "x", "2"))
			if n%2 == 0 {
				Expect(hubClient.Delete(ctx, getWork(ctx, name("heir-from", n)))).To(Succeed())
				continue
			}
			updateWork(ctx, name("heir-from", n), func(work *workv1.ManifestWork) {
				work.Spec.Workload.Manifests = manifests(build.ConfigMapText(ns, name("other", n)))
			})
		}
		agent = startAgent(agentOptions{})
		for n := range pairs {
			Eventually(conditions(ctx, name("heir-to", n))).Should(beDone())
			Eventually(owners(ctx, ns, name("c", n))).Should(HaveExactElements(recordName(name("heir-to", n))))
			object := expect.ConfigMap(ctx, memberClient, ns, name("c", n))
			Expect(object.UID).To(Equal(before[object.Name]))
			Expect(object.Data).To(HaveKeyWithValue("x", "2"))
		}
	})

	It("is removed if the other ManifestWork only reads or orphans it", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "no-heir", workv1.ManifestWorkSpec{}, build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(conditions(ctx, "no-heir")).Should(beDone())
		createWork(ctx, "onlooker", strategy(ns, workv1.UpdateStrategy{Type: workv1.UpdateStrategyReadOnly}), build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(conditions(ctx, "onlooker")).Should(beDone())
		removeWork(ctx, "no-heir")
		Expect(expect.Data(ctx, memberClient, ns, "a")()).To(BeNil())
	})
})

var _ = Describe("Two hubs", Ordered, func() {
	var second *expect.Running

	// The second hub is the cluster itself, as if a hub were one of its own clusters: another API
	// server, with ManifestWorks, an agent and a URL of its own.
	BeforeAll(func(ctx SpecContext) {
		ours, err := crds.ForHub(workv1.GroupName)
		Expect(err).NotTo(HaveOccurred())
		for _, crd := range ours {
			Expect(client.IgnoreAlreadyExists(memberClient.Create(ctx, crd))).To(Succeed())
		}
		expect.Created(ctx, memberClient, build.Namespace(clusterName))
		role, binding := build.Grant(clusterName, agentUser, agentUser, manifestwork.HubRules())
		expect.Created(ctx, memberClient, role, binding)
		Eventually(func() error { return memberClient.List(ctx, &workv1.ManifestWorkList{}) }).Should(Succeed())
		second = startAgent(agentOptions{of: member, id: "agent-2"})
		DeferCleanup(func() { second.Stop() })
	})

	It("share an object of equally named ManifestWorks, and a deletion on one leaves it to the other", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "both-hubs", workv1.ManifestWorkSpec{}, build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(conditions(ctx, "both-hubs")).Should(beDone())
		atSecond := &workv1.ManifestWork{ObjectMeta: build.In(clusterName, "both-hubs")}
		atSecond.Spec.Workload.Manifests = manifests(build.ConfigMapText(ns, "a", "x", "1"))
		Expect(memberClient.Create(ctx, atSecond)).To(Succeed())
		ofSecond := manifestwork.HubHash(member.Config().Host) + "-both-hubs"
		Eventually(owners(ctx, ns, "a")).Should(ConsistOf(recordName("both-hubs"), ofSecond))
		Expect(records(ctx, "agent-2", "both-hubs")).To(HaveLen(1))
		settled := expect.ConfigMap(ctx, memberClient, ns, "a").ResourceVersion
		Consistently(func() string { return expect.ConfigMap(ctx, memberClient, ns, "a").ResourceVersion }).Should(Equal(settled))
		for _, of := range []string{"agent-2", agentID} {
			for _, noted := range records(ctx, of, "both-hubs") {
				Expect(noted.Status.EvictionStartTime).To(BeNil(), "no agent evicts the records of another")
			}
		}
		removeWork(ctx, "both-hubs")
		Expect(owners(ctx, ns, "a")()).To(HaveExactElements(ofSecond))
		Expect(memberClient.Delete(ctx, atSecond)).To(Succeed())
		Eventually(expect.Gone(ctx, memberClient, atSecond)).Should(BeTrue())
		Expect(expect.Data(ctx, memberClient, ns, "a")()).To(BeNil())
	})
})

var _ = Describe("Eviction", func() {
	It("removes the objects of a ManifestWork that disappeared after the grace period and not before", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "vanished", workv1.ManifestWorkSpec{}, build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(conditions(ctx, "vanished")).Should(beDone())
		agent.Stop()
		work := getWork(ctx, "vanished")
		Expect(hubClient.Patch(ctx, work, expect.MergePatch(`{"metadata":{"finalizers":null}}`))).To(Succeed())
		Expect(hubClient.Delete(ctx, work)).To(Succeed())
		agent = startAgent(agentOptions{})
		Eventually(func() *metav1.Time { return record(ctx, "vanished").Status.EvictionStartTime }).ShouldNot(BeNil())
		Consistently(expect.Data(ctx, memberClient, ns, "a")).ShouldNot(BeNil(), "the grace period is an hour")

		By("stopping it when the ManifestWork exists again")
		createWork(ctx, "vanished", workv1.ManifestWorkSpec{}, build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(func() *metav1.Time { return record(ctx, "vanished").Status.EvictionStartTime }).Should(BeNil())

		By("removing it after the grace period")
		agent.Stop()
		work = getWork(ctx, "vanished")
		Expect(hubClient.Patch(ctx, work, expect.MergePatch(`{"metadata":{"finalizers":null}}`))).To(Succeed())
		Expect(hubClient.Delete(ctx, work)).To(Succeed())
		agent = startAgent(agentOptions{})
		insteadOfTheAgent(agentOptions{grace: time.Second})
		Eventually(expect.Data(ctx, memberClient, ns, "a")).Should(BeNil())
		Eventually(func() *workv1.AppliedManifestWork { return record(ctx, "vanished") }).Should(BeNil())
	})

	It("removes a record without a ManifestWork if it belongs to this agent", func(ctx SpecContext) {
		insteadOfTheAgent(agentOptions{grace: time.Second})
		note := func(work, id string) *workv1.AppliedManifestWork {
			return &workv1.AppliedManifestWork{ObjectMeta: metav1.ObjectMeta{Name: recordName(work)},
				Spec: workv1.AppliedManifestWorkSpec{HubHash: hubHash, AgentID: id, ManifestWorkName: work}}
		}
		ours, others := note("nobodys", agentID), note("of-another-agent", "another")
		expect.Created(ctx, memberClient, others)
		Expect(memberClient.Create(ctx, ours)).To(Succeed())
		Eventually(expect.Gone(ctx, memberClient, ours)).Should(BeTrue())
		Expect(expect.Gone(ctx, memberClient, others)()).To(BeFalse())
	})

	It("does not begin while the hub is unreachable", func(ctx SpecContext) {
		link, err := env.NewLink(strings.TrimPrefix(hub.Config().Host, "https://"))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(link.Close)
		insteadOfTheAgent(agentOptions{grace: time.Second, over: link})
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "hub-away", workv1.ManifestWorkSpec{}, build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(conditions(ctx, "hub-away")).Should(beDone())
		link.Cut()
		DeferCleanup(link.Mend)
		Expect(memberClient.Patch(ctx, expect.ConfigMap(ctx, memberClient, ns, "a"), expect.MergePatch(`{"data":{"x":"2"}}`))).To(Succeed())
		Eventually(expect.Data(ctx, memberClient, ns, "a")).Should(Equal(map[string]string{"x": "1"}), "the object stays up to date")

		By("waiting for the hub's answer even if the work was deleted meanwhile")
		work := getWork(ctx, "hub-away")
		Expect(hubClient.Patch(ctx, work, expect.MergePatch(`{"metadata":{"finalizers":null}}`))).To(Succeed())
		Expect(hubClient.Delete(ctx, work)).To(Succeed())
		Consistently(func(g Gomega) {
			g.Expect(expect.Data(ctx, memberClient, ns, "a")()).NotTo(BeNil())
			g.Expect(record(ctx, "hub-away").Status.EvictionStartTime).To(BeNil())
		}).WithTimeout(5 * time.Second).Should(Succeed())
		link.Mend()
		Eventually(expect.Data(ctx, memberClient, ns, "a")).Should(BeNil())
	})

	It("removes objects that the same agent applied from the hub's former URL", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		insteadOfTheAgent(agentOptions{url: "https://former.example.com"})
		createWork(ctx, "moved", workv1.ManifestWorkSpec{}, build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(conditions(ctx, "moved")).Should(beDone())
		before := expect.ConfigMap(ctx, memberClient, ns, "a")
		insteadOfTheAgent(agentOptions{grace: time.Second})
		Eventually(owners(ctx, ns, "a")).Should(HaveExactElements(recordName("moved")), "the new owner remains")
		Eventually(func() int { return len(records(ctx, agentID, "moved")) }).Should(Equal(1))
		Expect(expect.ConfigMap(ctx, memberClient, ns, "a").UID).To(Equal(before.UID), "the object was not re-created")
	})
})

// records returns the AppliedManifestWorks of an agent for ManifestWorks of a name.
func records(ctx context.Context, id, work string) []workv1.AppliedManifestWork {
	GinkgoHelper()
	list := &workv1.AppliedManifestWorkList{}
	Expect(memberClient.List(ctx, list)).To(Succeed())
	var found []workv1.AppliedManifestWork
	for _, r := range list.Items {
		if r.Spec.AgentID == id && (work == "" || r.Spec.ManifestWorkName == work) {
			found = append(found, r)
		}
	}
	return found
}
