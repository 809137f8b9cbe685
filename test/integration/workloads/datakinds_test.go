// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

var _ = Describe("Data on a change of placement", func() {
	It("retains the claim, its volume and its namespace on a member that is no longer selected, and adopts them again", func(ctx SpecContext) {
		uids := dataPlace(ctx, "r43-move", "")

		By("moving the placement to the other member")
		dataMove(ctx, "r43-move", "member-2")
		Eventually(deletionWorks("member-1", "r43-move")).WithContext(ctx).Should(BeEmpty())
		Expect(deletionGone(member1, dataDeployment("r43-move"))(ctx)).To(BeTrue(), "a Deployment holds no data")
		Expect(deletionGone(member1, deletionConfigMap("r43-move", "settings"))(ctx)).To(BeTrue())
		for i, object := range dataKept("r43-move") {
			Expect(member1.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
			Expect(object.GetUID()).To(Equal(uids[i]))
			Expect(object.GetDeletionTimestamp()).To(BeNil())
			Expect(object.GetOwnerReferences()).To(BeEmpty())
			Expect(object.GetAnnotations()).To(HaveKey(placementv1beta1.RetainedAnnotation))
		}
		Eventually(func(ctx context.Context) string {
			return kubectl(ctx, running.Hub, "get", "events", "-n", "fleet-member-member-1", "-o", `jsonpath={range .items[?(@.reason=="Retained")]}{.message}{"\n"}{end}`)
		}).WithContext(ctx).Should(And(ContainSubstring("PersistentVolumeClaim r43-move/data"), ContainSubstring("PersistentVolume r43-move")))
		Eventually(dataRetained("r43-move")).WithContext(ctx).WithTimeout(2 * time.Minute).Should(And(
			HavePrefix("1 members retain objects"), ContainSubstring(`"member-1" has `), ContainSubstring("PersistentVolumeClaim r43-move/data")))

		By("moving it back")
		dataMove(ctx, "r43-move", "member-1")
		waitAvailable(ctx, "r43-move")
		for i, object := range dataKept("r43-move") {
			Eventually(func(g Gomega, ctx context.Context) {
				g.Expect(member1.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
				g.Expect(object.GetOwnerReferences()).To(HaveLen(1))
				g.Expect(object.GetUID()).To(Equal(uids[i]))
				g.Expect(object.GetAnnotations()).NotTo(HaveKey(placementv1beta1.RetainedAnnotation))
			}).WithContext(ctx).Should(Succeed())
		}
		// Now the other member is no longer selected.
		Eventually(dataRetained("r43-move")).WithContext(ctx).WithTimeout(2 * time.Minute).Should(And(
			ContainSubstring(`"member-2" has `), Not(ContainSubstring("member-1"))))

		By("deleting the placement")
		kubectl(ctx, running.Hub, "delete", "clusterresourceplacement", "r43-move")
		Eventually(deletionWorks("member-1", "r43-move")).WithContext(ctx).Should(BeEmpty())
		for _, object := range dataKept("r43-move") {
			Eventually(deletionGone(member1, object)).WithContext(ctx).Should(BeTrue(), "the placement created it, and a user deleted the placement")
		}
	})

	It("deletes the claim, its volume and its namespace when the placement is deleted", func(ctx SpecContext) {
		dataPlace(ctx, "r43-delete", "")
		kubectl(ctx, running.Hub, "delete", "clusterresourceplacement", "r43-delete")
		for _, object := range dataKept("r43-delete") {
			Eventually(deletionGone(member1, object)).WithContext(ctx).Should(BeTrue())
		}
	})

	It("deletes a claim that leaves the selection", func(ctx SpecContext) {
		dataPlace(ctx, "r43-remove", "")
		kubectl(ctx, running.Hub, "delete", "persistentvolumeclaim", "data", "-n", "r43-remove", "--wait=false")
		Eventually(deletionGone(member1, dataClaim("r43-remove"))).WithContext(ctx).Should(BeTrue())
	})

	It("deletes data on a member that is no longer selected if its author says so", func(ctx SpecContext) {
		dataPlace(ctx, "r43-policy", "fleetgate.io/delete-policy: Delete")
		dataMove(ctx, "r43-policy", "member-2")
		for _, object := range dataKept("r43-policy") {
			Eventually(deletionGone(member1, object)).WithContext(ctx).Should(BeTrue())
		}
	})

	It("deletes data on a member that is no longer selected if the placement's delete strategy says so", func(ctx SpecContext) {
		dataPlace(ctx, "r43-strategy", "")
		kubectl(ctx, running.Hub, "patch", "clusterresourceplacement", "r43-strategy", "--type=merge", "-p",
			`{"spec":{"strategy":{"deleteStrategy":{"propagationPolicy":"Delete"}}}}`)
		dataMove(ctx, "r43-strategy", "member-2")
		for _, object := range dataKept("r43-strategy") {
			Eventually(deletionGone(member1, object)).WithContext(ctx).Should(BeTrue())
		}
	})
})

// dataPlace places a namespace with a claim, its volume, a Deployment and a ConfigMap on member-1. It
// returns the UIDs that dataKept's objects have there.
func dataPlace(ctx context.Context, name, annotation string) []types.UID {
	GinkgoHelper()
	cleanUp(name)
	DeferCleanup(func(ctx SpecContext) {
		for _, c := range []client.Client{hub, member1, member2} {
			for _, object := range dataKept(name) {
				Expect(client.IgnoreNotFound(c.Delete(ctx, object))).To(Succeed())
			}
		}
	})
	for _, text := range []string{
		`{apiVersion: v1, kind: Namespace, metadata: {name: NAME, annotations: {NOTE}}}`,
		`{apiVersion: v1, kind: PersistentVolume, metadata: {name: NAME, annotations: {NOTE}}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce],
			persistentVolumeReclaimPolicy: Retain, storageClassName: manual-NAME, hostPath: {path: /tmp/NAME}}}`,
		`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {namespace: NAME, name: data, annotations: {NOTE}}, spec: {storageClassName: manual-NAME,
			accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: NAME, name: settings}}`,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: NAME, name: web}, spec: {replicas: 1, selector: {matchLabels: {app: web}},
			template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "registry.example.org/web:1"}]}}}}`,
		`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacement, metadata: {name: NAME}, spec: {policy: {placementType: PickFixed, clusterNames: [member-1]},
			resourceSelectors: [{group: "", version: v1, kind: Namespace, name: NAME}, {group: "", version: v1, kind: PersistentVolume, name: NAME}],
			strategy: {rollingUpdate: {unavailablePeriodSeconds: 1}}}}`,
	} {
		deletionApply(ctx, strings.NewReplacer("NAME", name, "NOTE", annotation).Replace(text))
	}
	waitAvailable(ctx, name)
	kept := dataKept(name)
	uids := make([]types.UID, 0, len(kept))
	for _, object := range kept {
		Expect(member1.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		uids = append(uids, object.GetUID())
	}
	return uids
}

// dataMove selects another member for a placement.
func dataMove(ctx context.Context, name, member string) {
	GinkgoHelper()
	kubectl(ctx, running.Hub, "patch", "clusterresourceplacement", name, "--type=merge", "-p", `{"spec":{"policy":{"clusterNames":["`+member+`"]}}}`)
}

// dataKept are the objects of dataPlace that hold data.
func dataKept(name string) []client.Object {
	return []client.Object{dataClaim(name), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}, deletionNamespace(name)}
}

func dataClaim(namespace string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "data"}}
}

func dataDeployment(namespace string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
}

// dataRetained is the message about objects that members retain since a placement no longer selects them.
func dataRetained(name string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		crp, err := placement(ctx, name)
		if c := meta.FindStatusCondition(crp.Status.Conditions, placementv1beta1.ConditionDataRetained); c != nil {
			return c.Message, err
		}
		return "", err
	}
}
