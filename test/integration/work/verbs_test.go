// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

func manifests(texts ...string) []placementv1beta1.Manifest {
	GinkgoHelper()
	list := make([]placementv1beta1.Manifest, 0, len(texts))
	for _, raw := range expect.Raw(texts...) {
		list = append(list, placementv1beta1.Manifest{RawExtension: raw})
	}
	return list
}

// createWork creates a Work as the hub does.
func createWork(ctx context.Context, name string, strategy *placementv1beta1.ApplyStrategy, texts ...string) *placementv1beta1.Work {
	GinkgoHelper()
	work := &placementv1beta1.Work{
		ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: name},
		Spec: placementv1beta1.WorkSpec{
			ApplyStrategy: strategy,
			Workload:      placementv1beta1.WorkloadTemplate{Manifests: manifests(texts...)},
		},
	}
	Expect(hubClient.Create(ctx, work)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { removeWork(ctx, name) })
	return work
}

// changeWork replaces the manifests of a Work.
func changeWork(ctx context.Context, name string, texts ...string) {
	GinkgoHelper()
	updateWork(ctx, name, func(work *placementv1beta1.Work) {
		work.Spec.Workload.Manifests = manifests(texts...)
	})
}

func updateWork(ctx context.Context, name string, change func(*placementv1beta1.Work)) {
	GinkgoHelper()
	Eventually(func() error {
		work := &placementv1beta1.Work{}
		if err := hubClient.Get(ctx, workKey(name), work); err != nil {
			return err
		}
		change(work)
		return hubClient.Update(ctx, work)
	}).Should(Succeed())
}

func removeWork(ctx context.Context, name string) {
	GinkgoHelper()
	work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: name}}
	Expect(client.IgnoreNotFound(hubClient.Delete(ctx, work))).To(Succeed())
	Eventually(expect.Gone(ctx, hubClient, work)).Should(BeTrue(), "Work %s is gone", name)
}

// collect removes a Work and its objects of a kind that is new on the member. It acts as the
// member's garbage collector for foreground deletions, which needs up to 30 seconds to discover the
// kind.
func collect(ctx context.Context, work, apiVersion, kind, namespace, name string) {
	GinkgoHelper()
	Expect(client.IgnoreNotFound(hubClient.Delete(ctx, &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: work}}))).To(Succeed())
	Eventually(func(g Gomega) {
		object, err := expect.Found(ctx, memberClient, apiVersion, kind, namespace, name)
		if apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) {
			return
		}
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(object.GetDeletionTimestamp()).NotTo(BeNil())
		g.Expect(client.IgnoreNotFound(memberClient.Patch(ctx, object, expect.MergePatch(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
	}).Should(Succeed())
	removeWork(ctx, work)
}

func workKey(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: hubNamespace, Name: name}
}

func getWork(ctx context.Context, name string) *placementv1beta1.Work {
	GinkgoHelper()
	work := &placementv1beta1.Work{}
	Expect(hubClient.Get(ctx, workKey(name), work)).To(Succeed())
	return work
}

func getRecord(ctx context.Context, name string) *placementv1beta1.AppliedWork {
	GinkgoHelper()
	record := &placementv1beta1.AppliedWork{}
	Expect(memberClient.Get(ctx, client.ObjectKey{Name: name}, record)).To(Succeed())
	return record
}

// ledger returns the names in the ledger of a Work.
func ledger(ctx context.Context, work string) func() []string {
	return func() []string {
		var names []string
		for _, applied := range getRecord(ctx, work).Status.AppliedResources {
			names = append(names, applied.Name)
		}
		return names
	}
}

// outcome is the status of a Work or manifest, for comparisons.
type outcome struct {
	Applied, Available string // "<status>/<reason>", empty if the condition is absent
}

func outcomeOf(conditions []metav1.Condition) outcome {
	return outcome{
		Applied:   expect.Said(conditions, placementv1beta1.ConditionApplied),
		Available: expect.Said(conditions, placementv1beta1.ConditionAvailable),
	}
}

// reported returns the outcome of a Work for its latest generation.
func reported(ctx context.Context, name string) func(Gomega) outcome {
	return func(g Gomega) outcome {
		work := &placementv1beta1.Work{}
		g.Expect(hubClient.Get(ctx, workKey(name), work)).To(Succeed())
		for _, c := range work.Status.Conditions {
			g.Expect(c.ObservedGeneration).To(Equal(work.Generation), c.Type)
		}
		return outcomeOf(work.Status.Conditions)
	}
}

// reportedOf returns the outcomes of a Work's manifests.
func reportedOf(ctx context.Context, name string) func(Gomega) []outcome {
	return func(g Gomega) []outcome {
		work := &placementv1beta1.Work{}
		g.Expect(hubClient.Get(ctx, workKey(name), work)).To(Succeed())
		var outcomes []outcome
		for _, m := range work.Status.ManifestConditions {
			outcomes = append(outcomes, outcomeOf(m.Conditions))
		}
		return outcomes
	}
}

// message returns the message of a condition of one manifest.
func message(ctx context.Context, work string, place int, name string) string {
	GinkgoHelper()
	manifests := getWork(ctx, work).Status.ManifestConditions
	Expect(len(manifests)).To(BeNumerically(">", place))
	c := apimeta.FindStatusCondition(manifests[place].Conditions, name)
	Expect(c).NotTo(BeNil())
	return c.Message
}

func beDone() gomegatypes.GomegaMatcher {
	return Equal(outcome{Applied: "True/AllManifestsApplied", Available: "True/AllManifestsAvailable"})
}

func beRefused() gomegatypes.GomegaMatcher {
	return Equal(outcome{Applied: "False/SomeManifestsAreNotApplied"})
}

func applied() outcome { return outcome{Applied: "True/Applied", Available: "True/Available"} }

func refused(reason string) outcome { return outcome{Applied: "False/" + reason} }

// foreignConfigMap creates ConfigMap a as another client.
func foreignConfigMap(ctx context.Context, namespace string, data ...string) *corev1.ConfigMap {
	GinkgoHelper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}, Data: map[string]string{}}
	for i := 0; i+1 < len(data); i += 2 {
		object.Data[data[i]] = data[i+1]
	}
	Expect(memberClient.Create(ctx, object)).To(Succeed())
	return object
}

// manifestOf returns the status of the manifest at an index; empty if there is none.
func manifestOf(ctx context.Context, work string, place int) placementv1beta1.ManifestCondition {
	GinkgoHelper()
	reported := getWork(ctx, work).Status.ManifestConditions
	if len(reported) <= place {
		return placementv1beta1.ManifestCondition{}
	}
	return reported[place]
}

// conditionOf returns a condition of a Work for its latest generation.
func conditionOf(ctx context.Context, name, kind string) func() string {
	return func() string {
		work := getWork(ctx, name)
		c := apimeta.FindStatusCondition(work.Status.Conditions, kind)
		if c == nil || c.ObservedGeneration != work.Generation {
			return ""
		}
		return string(c.Status) + "/" + c.Reason
	}
}

// diffsOf returns the differences of all manifests of a Work.
func diffsOf(ctx context.Context, work string) [][]placementv1beta1.PatchDetail {
	GinkgoHelper()
	var all [][]placementv1beta1.PatchDetail
	for _, m := range getWork(ctx, work).Status.ManifestConditions {
		var fields []placementv1beta1.PatchDetail
		if m.DiffDetails != nil {
			fields = m.DiffDetails.ObservedDiffs
		}
		all = append(all, fields)
	}
	return all
}

// withAnnotation adds an annotation to a JSON manifest.
func withAnnotation(text, key, value string) string {
	GinkgoHelper()
	object := &unstructured.Unstructured{}
	Expect(object.UnmarshalJSON([]byte(text))).To(Succeed())
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	object.SetAnnotations(annotations)
	raw, err := object.MarshalJSON()
	Expect(err).NotTo(HaveOccurred())
	return string(raw)
}

// watchWorks watches the Works of the member on the hub.
func watchWorks(ctx context.Context) (watch.Interface, error) {
	objects, err := dynamic.NewForConfig(build.Unlimited(hub.Config()))
	if err != nil {
		return nil, err
	}
	return objects.Resource(placementv1beta1.GroupVersion.WithResource("works")).Namespace(hubNamespace).Watch(ctx, metav1.ListOptions{})
}

// statusOf returns the status of a condition of a Work; empty if it does not exist.
func statusOf(work *unstructured.Unstructured, kind string) string {
	conditions, _, _ := unstructured.NestedSlice(work.Object, "status", "conditions")
	for _, c := range conditions {
		if fields, ok := c.(map[string]any); ok && fields["type"] == kind {
			text, _ := fields["status"].(string)
			return text
		}
	}
	return ""
}
