// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// join creates a joined and healthy member for one spec.
func join(ctx context.Context, name string, labels map[string]string) {
	GinkgoHelper()
	member := makeMember(ctx, name, labels)
	DeferCleanup(func(ctx context.Context) { Expect(client.IgnoreNotFound(hub.Delete(ctx, member))).To(Succeed()) })
}

func makeMember(ctx context.Context, name string, labels map[string]string) *clusterv1beta1.MemberCluster {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterv1beta1.MemberNamespace(name)}}
	if err := hub.Create(ctx, namespace); !apierrors.IsAlreadyExists(err) {
		Expect(err).NotTo(HaveOccurred())
	}
	member := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	member.Spec.Identity = rbacv1.Subject{Kind: "ServiceAccount", Name: "agent", Namespace: namespace.Name}
	Expect(hub.Create(ctx, member)).To(Succeed())
	heartbeat(ctx, member)
	return member
}

func heartbeat(ctx context.Context, member *clusterv1beta1.MemberCluster) {
	GinkgoHelper()
	now := metav1.Now()
	condition := func(kind string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Test", LastTransitionTime: now}
	}
	member.Status.AgentStatus = []clusterv1beta1.AgentStatus{{
		Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: now,
		Conditions: []metav1.Condition{condition(clusterv1beta1.ConditionJoined), condition(clusterv1beta1.ConditionHealthy)},
	}}
	Expect(hub.Status().Update(ctx, member)).To(Succeed())
}

// agent simulates a member's agent: it reports every Work as applied and available, and removes the
// finalizer of deleted ones. apply changes a Work before.
func agent(name string, apply ...func(*placementv1beta1.Work)) (stop func()) {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		defer GinkgoRecover()
		for ctx.Err() == nil {
			serve(ctx, clusterv1beta1.MemberNamespace(name), func(work *placementv1beta1.Work) {
				for _, change := range apply {
					change(work)
				}
			}, func(map[client.ObjectKey]bool) {})
		}
	})
	var once sync.Once
	stop = func() { once.Do(func() { cancel(); running.Wait() }) }
	DeferCleanup(stop)
	return stop
}

// serve handles the Works of a namespace until its watch ends; a slow watch is closed. apply is called
// for each Work first, and there for all existing Works at the start, because deletions between two
// watches are not reported.
func serve(ctx context.Context, namespace string, apply func(*placementv1beta1.Work), there func(map[client.ObjectKey]bool)) {
	var works placementv1beta1.WorkList
	if err := hub.List(ctx, &works, client.InNamespace(namespace)); err != nil {
		return
	}
	known := map[client.ObjectKey]bool{}
	for i := range works.Items {
		known[client.ObjectKeyFromObject(&works.Items[i])] = true
	}
	there(known)
	for i := range works.Items {
		apply(&works.Items[i])
		// After a conflict, the other write triggers the Work again.
		_ = handle(ctx, &works.Items[i])
	}
	watcher, err := hub.Watch(ctx, &placementv1beta1.WorkList{}, client.InNamespace(namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: works.ResourceVersion}})
	if err != nil {
		return
	}
	defer watcher.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case event, open := <-watcher.ResultChan():
			if !open {
				return
			}
			if work, ok := event.Object.(*placementv1beta1.Work); ok && event.Type != watch.Deleted {
				apply(work)
				_ = handle(ctx, work)
			}
		}
	}
}

func handle(ctx context.Context, work *placementv1beta1.Work) error {
	if work.DeletionTimestamp != nil {
		controllerutil.RemoveFinalizer(work, placementv1beta1.WorkCleanupFinalizer)
		return hub.Update(ctx, work)
	}
	if controllerutil.AddFinalizer(work, placementv1beta1.WorkCleanupFinalizer) {
		return hub.Update(ctx, work)
	}
	available := placementv1beta1.ReasonAllManifestsAvailable
	if c := meta.FindStatusCondition(work.Status.Conditions, placementv1beta1.ConditionAvailable); c != nil && c.Reason == placementv1beta1.ReasonWorkNotTrackable {
		available = c.Reason
	}
	if !settle(work, placementv1beta1.ReasonAllManifestsApplied, available) {
		return nil
	}
	return hub.Status().Update(ctx, work)
}

// settle sets both conditions to True with these reasons.
func settle(work *placementv1beta1.Work, applied, available string) bool {
	changed := false
	for kind, reason := range map[string]string{placementv1beta1.ConditionApplied: applied, placementv1beta1.ConditionAvailable: available} {
		changed = meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: reason, ObservedGeneration: work.Generation,
		}) || changed
	}
	return changed
}

func workOf(ctx context.Context, member, placement string) (*placementv1beta1.Work, error) {
	work := &placementv1beta1.Work{}
	err := hub.Get(ctx, types.NamespacedName{Namespace: clusterv1beta1.MemberNamespace(member), Name: placement + "-work"}, work)
	return work, err
}
