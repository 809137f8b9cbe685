// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placementfleet

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// administrators would make mallory an administrator of the member if the agent applied it.
const administrators = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"mallory"},` +
	`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},` +
	`"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"mallory"}]}`

func settingsIn(namespace string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","namespace":%q},"data":{"colour":"black"}}`, namespace)
}

// mallory has all verbs on placements in one namespace.
func mallory(ctx context.Context, namespace string) client.Client {
	GinkgoHelper()
	create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "placements"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{placementv1beta1.GroupName}, Resources: []string{"*"}, Verbs: []string{"*"}},
	}})
	create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "placements"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "placements"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "mallory"}},
	})
	config, err := running.Hub.ConfigFor("mallory")
	Expect(err).NotTo(HaveOccurred())
	c, err := client.New(config, client.Options{Scheme: hub.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	Eventually(func(ctx context.Context) error {
		return c.List(ctx, &placementv1beta1.ResourceBindingList{}, client.InNamespace(namespace))
	}).WithContext(ctx).Should(Succeed())
	return c
}

// byHand returns what the gateway would create for a placement to member-1.
func byHand(namespace, name, manifest string) (*placementv1beta1.ResourceSnapshot, *placementv1beta1.ResourceBinding) {
	taken := &placementv1beta1.ResourceSnapshot{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name + "-0-snapshot",
		Labels: map[string]string{placementv1beta1.ParentPlacementLabel: name, placementv1beta1.ResourceIndexLabel: "0", placementv1beta1.IsLatestSnapshotLabel: "true"},
		Annotations: map[string]string{
			placementv1beta1.ResourceHashAnnotation: "h", placementv1beta1.NumberOfResourceSnapshotsAnnotation: "1", placementv1beta1.NumberOfEnvelopedObjectsAnnotation: "0",
		},
	}}
	taken.Spec.SelectedResources = []placementv1beta1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(manifest)}}}
	b := &placementv1beta1.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{placementv1beta1.ParentPlacementLabel: name},
	}}
	b.Spec = placementv1beta1.ResourceBindingSpec{
		State: placementv1beta1.BindingBound, TargetCluster: "member-1", ResourceSnapshotName: taken.Name, SchedulingPolicySnapshotName: name + "-0",
		ClusterDecision: placementv1beta1.ClusterDecision{ClusterName: "member-1", Selected: true, Reason: "by hand"},
	}
	return taken, b
}

var _ = Describe("A user with all verbs on placements in a namespace", Serial, func() {
	It("delivers nothing with a self-made snapshot and binding, and nothing of another namespace while the policy is missing", func(ctx SpecContext) {
		const namespace, other = "ma", "ma-other"
		for _, name := range []string{namespace, other} {
			create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
			there := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
			Expect(members["member-1"].Create(ctx, there)).To(Succeed())
			DeferCleanup(func(ctx context.Context) { Expect(members["member-1"].Delete(ctx, there)).To(Succeed()) })
		}
		user := mallory(ctx, namespace)
		write := func(ctx context.Context, object client.Object) error {
			return user.Create(ctx, object.DeepCopyObject().(client.Object))
		}
		tried := map[string]string{"admin": administrators, "elsewhere": settingsIn(other), "inside": settingsIn(namespace)}
		for name, manifest := range tried {
			taken, b := byHand(namespace, name, manifest)
			for _, object := range []client.Object{taken, b} {
				Expect(write(ctx, object)).To(MatchError(ContainSubstring("the gateway makes them of what is placed")), "%s %T", name, object)
			}
		}

		By("deleting the policy, which the gateway restores later")
		for name, manifest := range tried {
			taken, b := byHand(namespace, name, manifest)
			for _, object := range []client.Object{taken, b} {
				Eventually(func(ctx context.Context) error {
					policy := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "fleetgate-deliveries"}}
					if err := client.IgnoreNotFound(hub.Delete(ctx, policy)); err != nil {
						return err
					}
					return write(ctx, object)
				}).WithContext(ctx).Should(Succeed())
				DeferCleanup(func(ctx context.Context) { Expect(client.IgnoreNotFound(hub.Delete(ctx, object))).To(Succeed()) })
			}
		}
		for name, why := range map[string]string{"admin": `"mallory" is of namespace ""`, "elsewhere": `"settings" is of namespace "ma-other"`} {
			Eventually(func(ctx context.Context) ([]metav1.Condition, error) {
				b := &placementv1beta1.ResourceBinding{}
				err := hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, b)
				return b.Status.Conditions, err
			}).WithContext(ctx).Should(ContainElement(And(HaveField("Type", placementv1beta1.ConditionWorkSynchronized),
				HaveField("Status", metav1.ConditionFalse), HaveField("Message", ContainSubstring(why)))))
		}
		// The delivery path works, so what has not arrived by now does not arrive.
		Eventually(colours).WithContext(ctx).WithArguments(namespace).Should(Equal("black - -"))
		Expect(members["member-1"].Get(ctx, client.ObjectKey{Name: "mallory"}, &rbacv1.ClusterRoleBinding{})).To(Satisfy(apierrors.IsNotFound))
		Expect(colours(ctx, other)).To(Equal("- - -"))

		By("the gateway restoring the policy")
		Eventually(func(ctx context.Context) error {
			taken, _ := byHand(namespace, "late", administrators)
			return user.Create(ctx, taken, client.DryRunAll)
		}).WithContext(ctx).Should(MatchError(ContainSubstring("the gateway makes them of what is placed")))
	})
})
