// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "fleetgate.io/fleetgate/pkg/apis/config/v1alpha1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
)

// enterWithLabelOnly restarts the agent with works.onlyLabelledNamespaces until the spec ends.
func enterWithLabelOnly(ctx context.Context) {
	GinkgoHelper()
	configuration, err := env.ConfigFlag(GinkgoT().TempDir(), configv1alpha1.AgentKind, "works: {onlyLabelledNamespaces: true}")
	Expect(err).NotTo(HaveOccurred())
	before := running.AgentArgs
	running.AgentArgs = append(slices.Clone(before), configuration)
	DeferCleanup(func(ctx context.Context) {
		running.AgentArgs = before
		Expect(running.RemakeAgent(ctx, running.Members[0])).To(Succeed())
	})
	Expect(running.RemakeAgent(ctx, running.Members[0])).To(Succeed())
}

// privileged is a Deployment whose Pods run as an account of its namespace.
func privileged(namespace string) *appsv1.Deployment {
	labels := map[string]string{"app": "shell"}
	return &appsv1.Deployment{ObjectMeta: build.In(namespace, "shell"), Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			ServiceAccountName: namespace, Containers: []corev1.Container{{Name: "shell", Image: "shell"}}}},
	}}
}

// placeNamespace places a namespace of the hub until the spec ends.
func placeNamespace(ctx context.Context, name string, change func(*placementv1beta1.PlacementSpec)) {
	GinkgoHelper()
	crp := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: build.Named(name)}
	crp.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: name}}
	change(&crp.Spec)
	expect.CreatedForSpec(ctx, hub, crp)
}

// failures are the reasons and messages of what a placement failed to apply.
func failures(ctx context.Context, placement string) func() ([]string, error) {
	return func() ([]string, error) {
		crp := &placementv1beta1.ClusterResourcePlacement{}
		err := hub.Get(ctx, client.ObjectKey{Name: placement}, crp)
		var all []string
		for _, status := range crp.Status.PlacementStatuses {
			for _, failed := range status.FailedPlacements {
				all = append(all, failed.Kind+" "+failed.Condition.Reason+": "+failed.Condition.Message)
			}
		}
		return all, err
	}
}

var _ = Describe("A namespace that existed on the member", func() {
	const name, remedy = "istio-system", "kubectl label namespace istio-system fleetgate.io/enter=true"
	onMember := func(ctx context.Context) error {
		return member.Get(ctx, client.ObjectKey{Namespace: name, Name: "shell"}, &appsv1.Deployment{})
	}

	BeforeEach(func(ctx SpecContext) {
		Expect(member.Create(ctx, build.Namespace(name))).To(Succeed())
		DeferCleanup(func(ctx context.Context) { expect.Removed(ctx, member, build.Namespace(name)) })
		enterWithLabelOnly(ctx)
	})

	It("is not entered by a user of the hub who created a namespace of its name, until it has the label", func(ctx SpecContext) {
		expect.CreatedForSpec(ctx, hub, build.Namespace(name))
		Expect(hub.Create(ctx, privileged(name))).To(Succeed())
		placeNamespace(ctx, name, func(*placementv1beta1.PlacementSpec) {})
		Eventually(failures(ctx, name)).Should(ConsistOf(
			And(HavePrefix("Namespace Reserved: "), ContainSubstring(remedy)), And(HavePrefix("Deployment Reserved: "), ContainSubstring(remedy))))
		Expect(onMember(ctx)).To(Satisfy(apierrors.IsNotFound))
		namespace := build.Namespace(name)
		Expect(member.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)).To(Succeed())
		Expect(namespace.OwnerReferences).To(BeEmpty())

		By("labelling it on the member")
		Expect(member.Patch(ctx, namespace, expect.MergePatch(`{"metadata":{"labels":{"fleetgate.io/enter":"true"}}}`))).To(Succeed())
		Eventually(onMember).WithContext(ctx).Should(Succeed())
		Eventually(failures(ctx, name)).ShouldNot(ContainElement(ContainSubstring(" Reserved: ")))
	})

	It("is not entered by a ManifestWork, which enters a namespace that it created", func(ctx SpecContext) {
		const own = "created-by-work"
		work := &workv1.ManifestWork{ObjectMeta: build.In(memberName, "enters")}
		for _, raw := range expect.Raw(build.ConfigMapText(name, "a", "x", "1"),
			`{apiVersion: v1, kind: Namespace, metadata: {name: `+own+`}}`, build.ConfigMapText(own, "a", "x", "1")) {
			work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, workv1.Manifest{RawExtension: raw})
		}
		expect.CreatedForSpec(ctx, hub, work)
		applied := func(g Gomega) []string {
			g.Expect(hub.Get(ctx, client.ObjectKeyFromObject(work), work)).To(Succeed())
			var all []string
			for _, manifest := range work.Status.ResourceStatus.Manifests {
				if c := meta.FindStatusCondition(manifest.Conditions, workv1.ConditionApplied); c != nil {
					all = append(all, string(c.Status)+" "+c.Message)
				}
			}
			return all
		}
		Eventually(applied).Should(HaveExactElements(And(HavePrefix("False "), ContainSubstring(remedy)), HavePrefix("True "), HavePrefix("True ")))
		Expect(member.Get(ctx, client.ObjectKey{Namespace: own, Name: "a"}, &corev1.ConfigMap{})).To(Succeed())
		Expect(member.Get(ctx, client.ObjectKey{Namespace: name, Name: "a"}, &corev1.ConfigMap{})).To(Satisfy(apierrors.IsNotFound))
	})
})
