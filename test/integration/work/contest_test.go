// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"context"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/agent/apply"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

var _ = Describe("A controller on the member that reverts corrections", Label("matrix"), func() {
	It("is named in the status and one event while corrections are delayed", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "war", nil, build.ConfigMapText(ns, "a", "x", "ours"), build.ConfigMapText(ns, "b", "x", "ours"))
		Eventually(reported(ctx, "war")).Should(beDone())
		enemy := startRival(ctx, ns, "a")

		Eventually(conditionOf(ctx, "war", placementv1beta1.ConditionContested)).Should(Equal("True/CorrectionsReverted"))
		Expect(message(ctx, "war", 0, placementv1beta1.ConditionContested)).To(And(
			ContainSubstring(`"rival"`), ContainSubstring("/data/x")))
		Expect(expect.Said(manifestOf(ctx, "war", 1).Conditions, placementv1beta1.ConditionContested)).To(BeEmpty(), "the other object is not contested")
		Expect(expect.Data(ctx, memberClient, ns, "b")()).To(Equal(map[string]string{"x": "ours"}))

		Consistently(enemy.reverts.Load).WithTimeout(time.Until(enemy.started.Add(time.Minute))).
			Should(BeNumerically("<=", 10), "corrections in the first minute")
		Expect(enemy.reverts.Load()).To(BeNumerically(">", 3), "the agent continues")
		Expect(contestsTold(ctx, "war")).To(Equal(1))

		By("applying a manifest that changed at once")
		changeWork(ctx, "war", build.ConfigMapText(ns, "a", "y", "new"), build.ConfigMapText(ns, "b", "x", "ours"))
		Eventually(expect.Data(ctx, memberClient, ns, "a")).Should(HaveKeyWithValue("y", "new"))
		Eventually(conditionOf(ctx, "war", placementv1beta1.ConditionContested)).Should(BeEmpty())
	})

	It("is reported when it deletes the object", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "deletions", nil, build.ConfigMapText(ns, "a", "x", "ours"))
		for range 3 {
			Eventually(reported(ctx, "deletions")).Should(beDone())
			object := expect.ConfigMap(ctx, memberClient, ns, "a")
			Expect(memberClient.Delete(ctx, object)).To(Succeed())
			Eventually(func() bool {
				now := &corev1.ConfigMap{}
				return memberClient.Get(ctx, client.ObjectKeyFromObject(object), now) == nil && now.UID != object.UID
			}).Should(BeTrue())
		}
		Eventually(conditionOf(ctx, "deletions", placementv1beta1.ConditionContested)).Should(Equal("True/CorrectionsReverted"))
		Expect(message(ctx, "deletions", 0, placementv1beta1.ConditionContested)).To(ContainSubstring("Another client deletes the object"))
	})
})

// rival reverts each correction of a ConfigMap.
type rival struct {
	started time.Time
	reverts atomic.Int32
}

func startRival(ctx SpecContext, namespace, name string) *rival {
	GinkgoHelper()
	clientset, err := kubernetes.NewForConfig(build.Unlimited(member.Config()))
	Expect(err).NotTo(HaveOccurred())
	watched, err := clientset.CoreV1().ConfigMaps(namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	Expect(err).NotTo(HaveOccurred())
	r := &rival{started: time.Now()}
	fight, end := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range watched.ResultChan() {
			object, ok := event.Object.(*corev1.ConfigMap)
			if !ok || object.Data["x"] != "ours" {
				continue
			}
			r.reverts.Add(1)
			_ = memberClient.Patch(fight, object, expect.MergePatch(`{"data":{"x":"theirs"}}`), client.FieldOwner("rival"))
		}
	}()
	r.reverts.Store(-1) // the first event is no correction
	DeferCleanup(func() {
		end()
		watched.Stop()
		Eventually(done).Should(BeClosed())
	})
	return r
}

// contestsTold counts the events about a contest of a Work.
func contestsTold(ctx context.Context, work string) int {
	GinkgoHelper()
	list := &eventsv1.EventList{}
	Expect(hubClient.List(ctx, list, client.InNamespace(hubNamespace))).To(Succeed())
	count := 0
	for i := range list.Items {
		event := &list.Items[i]
		if event.Regarding.Name == work && event.Reason == apply.EventContested {
			count++
			Expect(event.Note).To(ContainSubstring(`"rival"`))
		}
	}
	return count
}
