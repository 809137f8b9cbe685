// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement"
	"fleetgate.io/fleetgate/pkg/placement/snapshot"
)

// askAuthors restarts the gateway with the author check until the spec ends.
func askAuthors(alter ...func(*placement.Options)) {
	GinkgoHelper()
	gateway.stop()
	gateway = startGateway(append(alter, func(o *placement.Options) { o.CheckAuthors = true })...)
	DeferCleanup(func() {
		gateway.stop()
		gateway = startGateway()
	})
}

// said is the message of a placement's condition, or "" if it is not set.
func said(ctx context.Context, name, condition string) (string, error) {
	crp, err := statusOf(ctx, name)
	if err != nil {
		return "", err
	}
	c := meta.FindStatusCondition(crp.Status.Conditions, condition)
	if c == nil || c.Status != metav1.ConditionTrue {
		return "", nil
	}
	return c.Message, nil
}

func kindsOn(ctx context.Context, member, placement string) ([]string, error) {
	work, err := workOf(ctx, member, placement)
	if err != nil {
		return nil, err
	}
	return kindsIn(work), nil
}

var _ = Describe("A placement with an author check", func() {
	const secret = "Secret/late"
	annotate := func(ctx context.Context, name, may string) {
		GinkgoHelper()
		crp, err := statusOf(ctx, name)
		Expect(err).NotTo(HaveOccurred())
		patch := client.MergeFrom(crp.DeepCopy())
		meta := fmt.Sprintf(`{"author":"ada","may":{%s}}`, may)
		crp.Annotations = map[string]string{placementv1beta1.AuthorMayAnnotation: meta}
		Expect(hub.Patch(ctx, crp, patch)).To(Succeed())
	}

	It("does not deliver a kind that was added later, and reports it until an author is allowed", func(ctx SpecContext) {
		askAuthors()
		shop(ctx, "la-shop")
		joinAll(ctx, "la", nil)
		crp := placementOf("la", "la-shop")
		crp.Annotations = map[string]string{placementv1beta1.AuthorMayAnnotation: `{"author":"ada","may":{"":["namespaces/la-shop"],"la-shop":["configmaps","deployments.apps","services"]}}`}
		create(ctx, crp)
		Eventually(kindsOn).WithContext(ctx).WithArguments("la-1", "la").WithTimeout(soon).WithPolling(often).Should(ConsistOf("Namespace/la-shop", "ConfigMap/settings", "Service/web", "Deployment/web"))
		expectAvailable(ctx, "la", "0")

		create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "la-shop", Name: "late"}})
		Eventually(said).WithContext(ctx).WithArguments("la", placementv1beta1.ConditionResourcesWithheld).WithTimeout(soon).WithPolling(often).Should(And(
			ContainSubstring(`Selected and not placed: secrets in namespace "la-shop"`), ContainSubstring(`"ada"`), ContainSubstring("fleetgate.io/author-may=ask")))
		By("delivering what the check covers")
		changeSettings(ctx, "la-shop", "green")
		Eventually(workSays(ctx, "la-1", "la", "green")).WithTimeout(soon).WithPolling(often).Should(BeTrue())
		Expect(kindsOn(ctx, "la-1", "la")).NotTo(ContainElement(secret))

		By("repeating the check")
		annotate(ctx, "la", `"":["namespaces/la-shop"],"la-shop":["*"]`)
		Eventually(kindsOn).WithContext(ctx).WithArguments("la-1", "la").WithTimeout(soon).WithPolling(often).Should(ContainElement(secret))
		Eventually(said).WithContext(ctx).WithArguments("la", placementv1beta1.ConditionResourcesWithheld).WithTimeout(soon).WithPolling(often).Should(BeEmpty())

		By("an unreadable check, which covers nothing")
		crp, err := statusOf(ctx, "la")
		Expect(err).NotTo(HaveOccurred())
		patch := client.MergeFrom(crp.DeepCopy())
		crp.Annotations[placementv1beta1.AuthorMayAnnotation] = "everything"
		Expect(hub.Patch(ctx, crp, patch)).To(Succeed())
		suspended := placementv1beta1.ConditionRemovalSuspended
		Eventually(said).WithContext(ctx).WithArguments("la", suspended).WithTimeout(soon).WithPolling(often).Should(ContainSubstring(placementv1beta1.ConfirmRemovalAnnotation + "="))
		Expect(kindsOn(ctx, "la-1", "la")).To(ContainElement(secret), "the selectors are unchanged")

		By("confirming the removal")
		message, err := said(ctx, "la", suspended)
		Expect(err).NotTo(HaveOccurred())
		_, token, _ := strings.Cut(message, placementv1beta1.ConfirmRemovalAnnotation+"=")
		crp, err = statusOf(ctx, "la")
		Expect(err).NotTo(HaveOccurred())
		patch = client.MergeFrom(crp.DeepCopy())
		crp.Annotations[placementv1beta1.ConfirmRemovalAnnotation] = token
		Expect(hub.Patch(ctx, crp, patch)).To(Succeed())
		Eventually(kindsOn).WithContext(ctx).WithArguments("la-1", "la").WithTimeout(soon).WithPolling(often).Should(BeEmpty())
	})

	It("is reported if it is older than the check, and keeps its resources", func(ctx SpecContext) {
		shop(ctx, "lb-shop")
		joinAll(ctx, "lb", nil)
		place(ctx, "lb", "lb-shop", nil)
		expectAvailable(ctx, "lb", "0")
		askAuthors()
		Eventually(said).WithContext(ctx).WithArguments("lb", placementv1beta1.ConditionAuthorCheckSkipped).WithTimeout(soon).WithPolling(often).Should(ContainSubstring("were not checked"))
		create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "lb-shop", Name: "late"}})
		Eventually(kindsOn).WithContext(ctx).WithArguments("lb-1", "lb").WithTimeout(soon).WithPolling(often).Should(ContainElement(secret))

		By("running the check")
		annotate(ctx, "lb", `"":["*"]`)
		Eventually(said).WithContext(ctx).WithArguments("lb", placementv1beta1.ConditionAuthorCheckSkipped).WithTimeout(soon).WithPolling(often).Should(BeEmpty())
		Expect(kindsOn(ctx, "lb-1", "lb")).To(ContainElement(secret))
	})
})

var _ = Describe("A snapshot of another author", func() {
	// tiered is an administrator's placement of a whole shop on the members of one tier.
	tiered := func(name string) *placementv1beta1.ClusterResourcePlacement {
		crp := placementOf(name, name+"-shop")
		crp.Annotations = map[string]string{placementv1beta1.AuthorMayAnnotation: `{"author":"admin","may":{"":["*"]}}`}
		choose(crp, "first")
		return crp
	}
	// moves changes the placement to the members of the second tier, as a user who is only allowed to
	// deliver the settings.
	moves := func(ctx context.Context, name string) {
		GinkgoHelper()
		crp, err := statusOf(ctx, name)
		Expect(err).NotTo(HaveOccurred())
		patch := client.MergeFrom(crp.DeepCopy())
		crp.Annotations[placementv1beta1.AuthorMayAnnotation] = fmt.Sprintf(`{"author":"ada","may":{"":["namespaces/%[1]s-shop"],"%[1]s-shop":["configmaps"]}}`, name)
		choose(crp, "second")
		Expect(hub.Patch(ctx, crp, patch)).To(Succeed())
	}
	// unsent waits until the second member should get something, and nothing was sent.
	unsent := func(ctx context.Context, name string) {
		GinkgoHelper()
		Eventually(func(g Gomega) {
			bindings, err := bindingsOf(ctx, name)
			g.Expect(err).NotTo(HaveOccurred())
			b := bindings[name+"-2"]
			g.Expect(b.Spec.ResourceSnapshotName).To(Equal(name + "-0-snapshot"))
			g.Expect(b.Status.Conditions).To(ContainElement(And(HaveField("Type", placementv1beta1.ConditionWorkSynchronized), HaveField("Status", metav1.ConditionFalse),
				HaveField("Message", ContainSubstring(`user "ada", who last changed the placement, is not known to be allowed`)))))
		}).WithTimeout(soon).WithPolling(often).Should(Succeed())
		_, err := workOf(ctx, name+"-2", name)
		Expect(err).To(MatchError(ContainSubstring("not found")))
	}

	It("is not rolled out by an author without rights to its contents", func(ctx SpecContext) {
		askAuthors()
		shop(ctx, "lx-shop")
		joinAll(ctx, "lx", tier("first"), tier("second"))
		stagedBy(ctx, "lx", stageOf("all", "lx", ""))
		crp := tiered("lx")
		externally(&crp.Spec)
		create(ctx, crp)
		runOf(ctx, "lx-first", "lx", "", placementv1beta1.UpdateRunRun)
		Eventually(kindsOn).WithContext(ctx).WithArguments("lx-1", "lx").WithTimeout(soon).WithPolling(often).Should(ContainElement("Deployment/web"))

		moves(ctx, "lx")
		back := runOf(ctx, "lx-back", "lx", "0", placementv1beta1.UpdateRunRun)
		unsent(ctx, "lx")

		By("rolling out the current selection")
		Expect(hub.Delete(ctx, back)).To(Succeed())
		runOf(ctx, "lx-now", "lx", "", placementv1beta1.UpdateRunRun)
		Eventually(kindsOn).WithContext(ctx).WithArguments("lx-2", "lx").WithTimeout(soon).WithPolling(often).Should(ConsistOf("Namespace/lx-shop", "ConfigMap/settings"))
	})

	It("waits for the next snapshot, and is not sent to other members meanwhile", func(ctx SpecContext) {
		askAuthors(func(o *placement.Options) { o.SnapshotIntervals = snapshot.Intervals{Least: time.Hour} })
		shop(ctx, "ly-shop")
		joinAll(ctx, "ly", tier("first"), tier("second"))
		create(ctx, tiered("ly"))
		Eventually(kindsOn).WithContext(ctx).WithArguments("ly-1", "ly").WithTimeout(soon).WithPolling(often).Should(ContainElement("Deployment/web"))
		moves(ctx, "ly")
		unsent(ctx, "ly")

		By("repeating the check as a user with the rights")
		crp, err := statusOf(ctx, "ly")
		Expect(err).NotTo(HaveOccurred())
		patch := client.MergeFrom(crp.DeepCopy())
		crp.Annotations[placementv1beta1.AuthorMayAnnotation] = `{"author":"admin","may":{"":["*"]}}`
		Expect(hub.Patch(ctx, crp, patch)).To(Succeed())
		Eventually(kindsOn).WithContext(ctx).WithArguments("ly-2", "ly").WithTimeout(soon).WithPolling(often).Should(ContainElement("Deployment/web"))
	})
})

// choose selects the spec's members of a tier.
func choose(crp *placementv1beta1.ClusterResourcePlacement, value string) {
	terms := crp.Spec.Policy.Affinity.ClusterAffinity.RequiredDuringSchedulingIgnoredDuringExecution.ClusterSelectorTerms
	terms[0].LabelSelector.MatchLabels["tier"] = value
}

var _ = Describe("A handwritten snapshot of a namespace", func() {
	// bind creates the snapshot and the binding of a placement in namespace lc-shop.
	bind := func(ctx context.Context, name, manifest string) client.ObjectKey {
		GinkgoHelper()
		labels := map[string]string{placementv1beta1.ParentPlacementLabel: name, placementv1beta1.ResourceIndexLabel: "0", placementv1beta1.IsLatestSnapshotLabel: "true"}
		taken := &placementv1beta1.ResourceSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: "lc-shop", Name: name + "-0-snapshot", Labels: labels, Annotations: map[string]string{
			placementv1beta1.ResourceHashAnnotation: "h", placementv1beta1.NumberOfResourceSnapshotsAnnotation: "1", placementv1beta1.NumberOfEnvelopedObjectsAnnotation: "0"}}}
		taken.Spec.SelectedResources = []placementv1beta1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(manifest)}}}
		create(ctx, taken)
		b := &placementv1beta1.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "lc-shop", Name: name, Labels: map[string]string{placementv1beta1.ParentPlacementLabel: name}}}
		b.Spec.State, b.Spec.TargetCluster, b.Spec.ResourceSnapshotName = placementv1beta1.BindingBound, "lc-1", taken.Name
		b.Spec.SchedulingPolicySnapshotName = name + "-0"
		b.Spec.ClusterDecision = placementv1beta1.ClusterDecision{ClusterName: "lc-1", Selected: true, Reason: "by hand"}
		create(ctx, b)
		return types.NamespacedName{Namespace: clusterv1beta1.MemberNamespace("lc-1"), Name: placementv1beta1.WorkName("lc-shop", name)}
	}

	It("delivers only objects of that namespace", func(ctx SpecContext) {
		shop(ctx, "lc-shop")
		joinAll(ctx, "lc", nil)
		for name, tc := range map[string]struct{ manifest, why string }{
			"lc-admin": {`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"me"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"}}`,
				`ClusterRoleBinding (rbac.authorization.k8s.io/v1) "me" is of namespace "", not "lc-shop"`},
			"lc-disguised": {`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"me","namespace":"lc-shop"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"}}`,
				`ClusterRoleBinding (rbac.authorization.k8s.io/v1) "me" is of the whole cluster`},
			"lc-elsewhere": {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"kube-system"}}`, `ConfigMap (v1) "c" is of namespace "kube-system", not "lc-shop"`},
			"lc-enveloped": {`{"apiVersion":"placement.kubernetes-fleet.io/v1beta1","kind":"ClusterResourceEnvelope","metadata":{"name":"e"},"data":{"a":{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"all"}}}}`,
				`ClusterRole (rbac.authorization.k8s.io/v1) "all" is of namespace "", not "lc-shop"`},
			"lc-unknown": {`{"apiVersion":"example.org/v1","kind":"Unknown","metadata":{"name":"u","namespace":"lc-shop"}}`, `no longer serves the kind of Unknown (example.org/v1) "u"`},
		} {
			work := bind(ctx, name, tc.manifest)
			Eventually(func(g Gomega) {
				b := &placementv1beta1.ResourceBinding{}
				g.Expect(hub.Get(ctx, client.ObjectKey{Namespace: "lc-shop", Name: name}, b)).To(Succeed())
				g.Expect(b.Status.Conditions).To(ContainElement(And(HaveField("Type", placementv1beta1.ConditionWorkSynchronized), HaveField("Status", metav1.ConditionFalse), HaveField("Message", ContainSubstring(tc.why)))))
			}).WithTimeout(soon).WithPolling(often).Should(Succeed())
			Expect(hub.Get(ctx, work, &placementv1beta1.Work{})).To(MatchError(ContainSubstring("not found")))
		}
	})
})
