// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/program"
)

// manifestCondition is a condition of one object in the status of a Work to member-1, as
// "status/reason".
func manifestCondition(work, object, kind string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		w := &placementv1beta1.Work{}
		if err := hub.Get(ctx, client.ObjectKey{Namespace: clusterv1beta1.MemberNamespace("member-1"), Name: work}, w); err != nil {
			return "", client.IgnoreNotFound(err)
		}
		for _, m := range w.Status.ManifestConditions {
			if c := meta.FindStatusCondition(m.Conditions, kind); m.Identifier.Name == object && c != nil {
				return fmt.Sprintf("%s/%s", c.Status, c.Reason), nil
			}
		}
		return "", nil
	}
}

// uidsOfJob collects the UIDs that a Job of member-1 has had, as long as the returned function is
// called.
func uidsOfJob(key client.ObjectKey) func(context.Context) ([]types.UID, error) {
	var seen []types.UID
	return func(ctx context.Context) ([]types.UID, error) {
		job := &batchv1.Job{}
		err := member1.Get(ctx, key, job)
		if err == nil && (len(seen) == 0 || seen[len(seen)-1] != job.UID) {
			seen = append(seen, job.UID)
		}
		return seen, client.IgnoreNotFound(err)
	}
}

// gone reports whether an object does not exist on member-1.
func gone(object client.Object) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		err := member1.Get(ctx, client.ObjectKeyFromObject(object), object)
		return err != nil, client.IgnoreNotFound(err)
	}
}

var _ = Describe("Completion and availability", func() {
	It("does not run a completed Job again that its TTL removed", func(ctx SpecContext) {
		cleanUp("r07")
		applyFile(ctx, running.Hub, "07-job-ttl.yaml")
		key := client.ObjectKey{Namespace: "r07", Name: "migrate"}
		seen := uidsOfJob(key)
		Eventually(seen).WithContext(ctx).Should(HaveLen(1))
		Eventually(gone(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})).WithContext(ctx).Should(BeTrue())
		Eventually(manifestCondition("r07-work", "migrate", placementv1beta1.ConditionAvailable)).WithContext(ctx).Should(Equal("True/Completed"))

		By("applying the Work again")
		Expect(hub.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "r07", Name: "later"}})).To(Succeed())
		later := manifestCondition("r07-work", "later", placementv1beta1.ConditionApplied)
		Eventually(func(g Gomega, ctx context.Context) {
			g.Expect(later(ctx)).To(HavePrefix("True/"))
			g.Expect(seen(ctx)).To(HaveLen(1))
		}).WithContext(ctx).Should(Succeed())
		waitAvailable(ctx, "r07")
		Expect(seen(ctx)).To(HaveLen(1))
	}, SpecTimeout(4*time.Minute))

	It("sees how a Job ended that its TTL removes at once", func(ctx SpecContext) {
		cleanUp("short-job")
		onHub(ctx, "apply", `
apiVersion: v1
kind: Namespace
metadata: {name: short-job}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ResourceEnvelope
metadata: {namespace: short-job, name: jobs}
data:
  migrate.yaml:
    apiVersion: batch/v1
    kind: Job
    metadata: {namespace: short-job, name: migrate}
    spec:
      ttlSecondsAfterFinished: 0
      template:
        spec:
          restartPolicy: Never
          containers: [{name: run, image: "example.org/migrate:1"}]
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: short-job}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: short-job}]
`)
		waitAvailable(ctx, "short-job")
		Eventually(gone(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "short-job", Name: "migrate"}})).WithContext(ctx).Should(BeTrue())
		Eventually(func(g Gomega, ctx context.Context) {
			works := &placementv1beta1.WorkList{}
			g.Expect(hub.List(ctx, works, client.InNamespace(clusterv1beta1.MemberNamespace("member-1")),
				client.MatchingLabels{placementv1beta1.ParentPlacementLabel: "short-job"})).To(Succeed())
			var found []string
			for _, work := range works.Items {
				for _, m := range work.Status.ManifestConditions {
					if c := meta.FindStatusCondition(m.Conditions, placementv1beta1.ConditionAvailable); m.Identifier.Name == "migrate" && c != nil {
						found = append(found, c.Reason+": "+c.Message)
					}
				}
			}
			g.Expect(found).To(ConsistOf(HavePrefix("Completed: The Job is complete")))
		}).WithContext(ctx).Should(Succeed())
	}, SpecTimeout(4*time.Minute))

	It("does not run a completed Job again that a user removed", func(ctx SpecContext) {
		cleanUp("done-job")
		onHub(ctx, "apply", `
apiVersion: v1
kind: Namespace
metadata: {name: done-job}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ResourceEnvelope
metadata: {namespace: done-job, name: jobs}
data:
  migrate.yaml:
    apiVersion: batch/v1
    kind: Job
    metadata: {namespace: done-job, name: migrate}
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: run, image: "example.org/migrate:1"}]
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: done-job}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: done-job}]
  strategy: {rollingUpdate: {unavailablePeriodSeconds: 1}}
`)
		key := client.ObjectKey{Namespace: "done-job", Name: "migrate"}
		seen := uidsOfJob(key)
		Eventually(func(g Gomega, ctx context.Context) {
			job := &batchv1.Job{}
			g.Expect(member1.Get(ctx, key, job)).To(Succeed())
			g.Expect(job.Status.Succeeded).To(BeEquivalentTo(1))
			g.Expect(seen(ctx)).To(HaveLen(1))
		}).WithContext(ctx).Should(Succeed())
		waitAvailable(ctx, "done-job")
		kubectl(ctx, running.Members[0].Cluster, "delete", "job", "migrate", "-n", "done-job")

		By("applying the Work again")
		envelope := &placementv1beta1.ResourceEnvelope{}
		Expect(hub.Get(ctx, client.ObjectKey{Namespace: "done-job", Name: "jobs"}, envelope)).To(Succeed())
		envelope.Data["later.yaml"] = placementv1beta1.EnvelopedObject{RawExtension: runtime.RawExtension{
			Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"done-job","name":"later"}}`)}}
		Expect(hub.Update(ctx, envelope)).To(Succeed())
		Eventually(func(ctx context.Context) error {
			return member1.Get(ctx, client.ObjectKey{Namespace: "done-job", Name: "later"}, &corev1.ConfigMap{})
		}).WithContext(ctx).Should(Succeed())
		Consistently(seen).WithContext(ctx).WithTimeout(2 * time.Second).Should(HaveLen(1))

		By("running it again when its spec changes")
		manifest := envelope.Data["migrate.yaml"]
		manifest.Raw = []byte(strings.Replace(string(manifest.Raw), "migrate:1", "migrate:2", 1))
		envelope.Data["migrate.yaml"] = manifest
		Expect(hub.Update(ctx, envelope)).To(Succeed())
		Eventually(seen).WithContext(ctx).Should(HaveLen(2))
	}, SpecTimeout(4*time.Minute))

	It("is Available with a StatefulSet whose update strategy is OnDelete after an update", func(ctx SpecContext) {
		cleanUp("r09")
		applyFile(ctx, running.Hub, "09-ondelete.yaml")
		waitAvailable(ctx, "r09")
		kubectl(ctx, running.Hub, "patch", "statefulset", "vault", "-n", "r09", "--type=json",
			`-p=[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"example.org/vault:2"}]`)
		for _, member := range []client.Client{member1, member2} {
			Eventually(func(g Gomega, ctx context.Context) {
				set := &appsv1.StatefulSet{}
				g.Expect(member.Get(ctx, client.ObjectKey{Namespace: "r09", Name: "vault"}, set)).To(Succeed())
				g.Expect(set.Spec.Template.Spec.Containers[0].Image).To(Equal("example.org/vault:2"))
			}).WithContext(ctx).Should(Succeed())
		}
		for _, m := range running.Members {
			kubectl(ctx, m.Cluster, "delete", "pods", "-n", "r09", "-l", "app=vault")
		}
		waitAvailable(ctx, "r09")
	}, SpecTimeout(4*time.Minute))

	It("sends an envelope whose name has 68 characters", func(ctx SpecContext) {
		cleanUp("r20")
		applyFile(ctx, running.Hub, "20-long-envelope.yaml")
		waitAvailable(ctx, "r20")
		Expect(member1.Get(ctx, client.ObjectKey{Namespace: "r20", Name: "quota"}, &corev1.ResourceQuota{})).To(Succeed())
	}, SpecTimeout(4*time.Minute))

	It("applies objects as soon as their namespace exists on the member", func(ctx SpecContext) {
		cleanUp("late")
		onHub(ctx, "apply", `
apiVersion: v1
kind: Namespace
metadata: {name: late}
---
apiVersion: v1
kind: ConfigMap
metadata: {namespace: late, name: a}
data: {a: "1"}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ResourcePlacement
metadata: {namespace: late, name: late}
spec:
  resourceSelectors: [{group: "", version: v1, kind: ConfigMap, name: a}]
`)
		Eventually(manifestCondition("late.late-work", "a", placementv1beta1.ConditionApplied)).WithContext(ctx).Should(HavePrefix("False/"))
		// By then the next retry is more than ten seconds later.
		Consistently(manifestCondition("late.late-work", "a", placementv1beta1.ConditionApplied)).WithContext(ctx).
			WithTimeout(20 * time.Second).WithPolling(time.Second).Should(HavePrefix("False/"))
		DeferCleanup(func(ctx SpecContext) {
			kubectl(ctx, running.Members[0].Cluster, "delete", "namespace", "late", "--wait=false")
		})
		kubectl(ctx, running.Members[0].Cluster, "create", "namespace", "late")
		Eventually(func(ctx context.Context) error {
			return member1.Get(ctx, client.ObjectKey{Namespace: "late", Name: "a"}, &corev1.ConfigMap{})
		}).WithContext(ctx).WithTimeout(5 * time.Second).Should(Succeed())
	}, SpecTimeout(4*time.Minute))

	It("applies 4,000 small ConfigMaps", Label("matrix"), func(ctx SpecContext) {
		cleanUp("many")
		var text strings.Builder
		text.WriteString("apiVersion: v1\nkind: Namespace\nmetadata: {name: many}\n")
		for i := range 4000 {
			fmt.Fprintf(&text, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: many, name: small-%04d}\ndata: {a: \"1\"}\n", i)
		}
		onHub(ctx, "create", text.String())
		onHub(ctx, "apply", `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: many}
spec:
  policy: {placementType: PickFixed, clusterNames: [member-1]}
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: many}]
`)
		Eventually(condition("many", placementv1beta1.ConditionAvailable)).WithContext(ctx).WithTimeout(6 * time.Minute).Should(HavePrefix("True/"))
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
		Expect(member1.List(ctx, list, client.InNamespace("many"))).To(Succeed())
		Expect(len(list.Items)).To(BeNumerically(">=", 4000))
	}, SpecTimeout(12*time.Minute), Label("large"))
})

// onHub has kubectl read manifests and "apply" them, or "create" their objects, which is faster when
// there are many.
func onHub(ctx context.Context, verb, manifests string) {
	GinkgoHelper()
	output, err := program.Kubectl(ctx, running.Hub, manifests, verb, "-f", "-")
	Expect(err).NotTo(HaveOccurred(), output)
}
