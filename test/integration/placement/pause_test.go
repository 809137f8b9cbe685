// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/webhook/policies"
	"fleetgate.io/fleetgate/test/support/mutation"
)

// warnings stores the warnings of an API server.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

// take returns and clears them.
func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	texts := w.texts
	w.texts = nil
	return texts
}

// startedOn is a member's condition RolloutStarted in the placement's status.
func startedOn(ctx context.Context, placement, member string) func() (string, error) {
	return saidOf(ctx, placement, member, placementv1beta1.ConditionRolloutStarted)
}

// saidOf is a member's condition in the placement's status, with its message.
func saidOf(ctx context.Context, placement, member, condition string) func() (string, error) {
	return func() (string, error) {
		crp, err := statusOf(ctx, placement)
		for _, s := range crp.Status.PlacementStatuses {
			for _, c := range s.Conditions {
				if s.ClusterName == member && c.Type == condition {
					return string(c.Status) + " " + c.Message, err
				}
			}
		}
		return "", err
	}
}

var _ = Describe("Pausing", func() {
	pauseMember := func(ctx context.Context, name, value string) {
		GinkgoHelper()
		edit(ctx, name, func(m *clusterv1beta1.MemberCluster) {
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, "fleetgate.io/paused", value)
		})
	}

	It("a placement keeps its members unchanged until it resumes", func(ctx SpecContext) {
		shop(ctx, "xa-shop")
		joinAll(ctx, "xa", nil, nil)
		place(ctx, "xa", "xa-shop", nil)
		expectAvailable(ctx, "xa", "0")
		annotate(ctx, "xa", "fleetgate.io/paused", "true")
		changeSettings(ctx, "xa-shop", "green")
		for _, member := range []string{"xa-1", "xa-2"} {
			Eventually(startedOn(ctx, "xa", member)).WithTimeout(soon).WithPolling(often).Should(HavePrefix("False The placement is paused"))
			Expect(workSays(ctx, member, "xa", "red")()).To(BeTrue())
		}
		annotate(ctx, "xa", "fleetgate.io/paused", "false")
		expectAvailable(ctx, "xa", "1")
	})

	It("a member lets the others continue, and keeps resources that should be removed", func(ctx SpecContext) {
		shop(ctx, "xb-shop")
		joinAll(ctx, "xb", nil, nil)
		crp := place(ctx, "xb", "xb-shop", nil)
		expectAvailable(ctx, "xb", "0")
		pauseMember(ctx, "xb-1", "true")
		changeSettings(ctx, "xb-shop", "green")
		Eventually(workSays(ctx, "xb-2", "xb", "green")).WithTimeout(soon).WithPolling(often).Should(BeTrue())
		Eventually(startedOn(ctx, "xb", "xb-1")).WithTimeout(soon).WithPolling(often).Should(HavePrefix(`False Member "xb-1" is paused`))
		Expect(workSays(ctx, "xb-1", "xb", "red")()).To(BeTrue())

		By("deleting the placement, which removes it from the other member")
		Expect(hub.Delete(ctx, crp)).To(Succeed())
		Eventually(func() error { _, err := workOf(ctx, "xb-2", "xb"); return err }).WithTimeout(soon).WithPolling(often).Should(MatchError(ContainSubstring("not found")))
		work, err := workOf(ctx, "xb-1", "xb")
		Expect(err).NotTo(HaveOccurred())
		Expect(work.DeletionTimestamp).To(BeNil())
		pauseMember(ctx, "xb-1", "false")
		Eventually(func() error { _, err := workOf(ctx, "xb-1", "xb"); return err }).WithTimeout(soon).WithPolling(often).Should(MatchError(ContainSubstring("not found")))
	})
})

var _ = Describe("Deleting a placement of many members", func() {
	It("needs a confirmation", func(ctx SpecContext) {
		shop(ctx, "xc-shop")
		joinAll(ctx, "xc", nil, nil)
		crp := place(ctx, "xc", "xc-shop", nil)
		expectAvailable(ctx, "xc", "0")
		warned := &warnings{}
		config := rest.CopyConfig(hubConf)
		config.WarningHandler = warned
		user, err := client.New(config, client.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "xc-shop"}}
		try := func(object client.Object) func() error {
			return func() error { return user.Delete(ctx, object, client.DryRunAll) }
		}
		ofPlacement := ContainSubstring("deleting ClusterResourcePlacement xc takes what it placed off 2 members; annotate it fleetgate.io/confirm-delete=true first")
		ofNamespace := ContainSubstring("placement xc selects namespace xc-shop: deleting it takes all that is in it off the members; annotate it fleetgate.io/confirm-delete=true first")

		By("warning")
		install(ctx, policies.ConfirmDeleteWarn.Of(policies.Parameters{ConfirmDeleteMembers: 1}))
		Eventually(func() ([]string, error) { err := try(crp)(); return warned.take(), err }).WithTimeout(soon).WithPolling(often).Should(ContainElement(ofPlacement))
		Eventually(func() ([]string, error) { err := try(namespace)(); return warned.take(), err }).WithTimeout(soon).WithPolling(often).Should(ContainElement(ofNamespace))

		By("rejecting")
		install(ctx, policies.ConfirmDeleteDeny.Of(policies.Parameters{ConfirmDeleteMembers: 1}))
		Eventually(try(crp)).WithTimeout(soon).WithPolling(often).Should(MatchError(ofPlacement))
		Eventually(try(namespace)).WithTimeout(soon).WithPolling(often).Should(MatchError(ofNamespace))
		Expect(try(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}})()).NotTo(MatchError(ContainSubstring("confirm-delete")))

		By("confirming")
		annotate(ctx, "xc", policies.ConfirmDeleteAnnotation, "true")
		Expect(hub.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)).To(Succeed())
		before := namespace.DeepCopy()
		metav1.SetMetaDataAnnotation(&namespace.ObjectMeta, policies.ConfirmDeleteAnnotation, "true")
		Expect(hub.Patch(ctx, namespace, client.MergeFrom(before))).To(Succeed())
		Eventually(try(crp)).WithTimeout(soon).WithPolling(often).Should(Succeed())
		Eventually(try(namespace)).WithTimeout(soon).WithPolling(often).Should(Succeed())

		By("deleting a placement within the limit, which needs no confirmation")
		annotate(ctx, "xc", policies.ConfirmDeleteAnnotation, "no")
		Eventually(try(crp)).WithTimeout(soon).WithPolling(often).Should(MatchError(ofPlacement))
		install(ctx, policies.ConfirmDeleteDeny.Of(policies.Parameters{ConfirmDeleteMembers: 2}))
		Eventually(try(crp)).WithTimeout(soon).WithPolling(often).Should(Succeed())
		warned.take()
	})
})

var _ = Describe("Deleting a placement with --cascade=orphan", func() {
	It("is rejected unless its delete strategy keeps what it placed", func(ctx SpecContext) {
		shop(ctx, "xd-shop")
		crp := place(ctx, "xd", "xd-shop", nil)
		install(ctx, policies.Orphans())
		try := func() error {
			return hub.Delete(ctx, crp, client.DryRunAll, client.PropagationPolicy(metav1.DeletePropagationOrphan))
		}
		Eventually(try).WithTimeout(soon).WithPolling(often).Should(MatchError(ContainSubstring(
			"deleting ClusterResourcePlacement xd takes what it placed off its members, also with --cascade=orphan; to keep it there, set spec.strategy.deleteStrategy.propagationPolicy to Abandon first")))
		Expect(hub.Delete(ctx, crp, client.DryRunAll)).To(Succeed())
		Expect(hub.Patch(ctx, crp, client.RawPatch(types.MergePatchType, []byte(`{"spec": {"strategy": {"deleteStrategy": {"propagationPolicy": "Abandon"}}}}`)))).To(Succeed())
		Eventually(try).WithTimeout(soon).WithPolling(often).Should(Succeed())
	})
})

// install applies policies as --install does, and deletes them after the spec.
func install(ctx context.Context, objects []client.Object) {
	GinkgoHelper()
	for _, object := range mutation.Left(objects) {
		have := object.DeepCopyObject().(client.Object)
		if err := hub.Get(ctx, client.ObjectKeyFromObject(object), have); apierrors.IsNotFound(err) {
			create(ctx, object)
			continue
		}
		// Kubernetes' own controller writes the status of policies concurrently.
		Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			if err := hub.Get(ctx, client.ObjectKeyFromObject(object), have); err != nil {
				return err
			}
			object.SetResourceVersion(have.GetResourceVersion())
			return hub.Update(ctx, object)
		})).To(Succeed())
	}
}
