// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package replicasets_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
)

// bed is the environment of one spec: a namespace and clusters.
type bed struct {
	namespace string
	clusters  []string
}

// newBed creates a namespace, and one for each cluster. The names of clusters sort like their
// numbers.
func newBed(ctx context.Context, clusters int) *bed {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "team-"}}
	Expect(hubClient.Create(ctx, namespace)).To(Succeed())
	b := &bed{namespace: namespace.Name}
	for i := range clusters {
		name := fmt.Sprintf("%s-c%d", namespace.Name, i+1)
		createNamespace(ctx, name)
		b.clusters = append(b.clusters, name)
	}
	bindSetOfAll(ctx, hubClient, b.namespace)
	return b
}

func createNamespace(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(hubClient.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
}

// place creates a Placement with one decision group per list.
func (b *bed) place(ctx context.Context, name string, groups ...[]string) {
	GinkgoHelper()
	placement := &ocmclusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}
	Expect(hubClient.Create(ctx, placement)).To(Succeed())
	for i, clusters := range groups {
		decision := &ocmclusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
			Namespace: b.namespace, Name: fmt.Sprintf("%s-decision-%d", name, i+1),
			Labels: map[string]string{
				ocmclusterv1beta1.PlacementLabel: name, ocmclusterv1beta1.DecisionGroupIndexLabel: fmt.Sprint(i), ocmclusterv1beta1.DecisionGroupNameLabel: fmt.Sprintf("group-%d", i),
			},
		}}
		Expect(hubClient.Create(ctx, decision)).To(Succeed())
		b.decide(ctx, decision.Name, clusters...)
	}
	b.sum(ctx, name)
}

// decide sets a decision for these clusters.
func (b *bed) decide(ctx context.Context, name string, clusters ...string) {
	GinkgoHelper()
	decision := &ocmclusterv1beta1.PlacementDecision{}
	Expect(hubClient.Get(ctx, client.ObjectKey{Namespace: b.namespace, Name: name}, decision)).To(Succeed())
	decision.Status.Decisions = []ocmclusterv1beta1.ClusterDecision{}
	for _, cluster := range clusters {
		makeCluster(ctx, hubClient, cluster, nil)
		decision.Status.Decisions = append(decision.Status.Decisions, ocmclusterv1beta1.ClusterDecision{ClusterName: cluster})
	}
	Expect(hubClient.Status().Update(ctx, decision)).To(Succeed())
}

// name renames a decision's group.
func (b *bed) name(ctx context.Context, decision, group string) {
	GinkgoHelper()
	object := &ocmclusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: decision}}
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, ocmclusterv1beta1.DecisionGroupNameLabel, group)
	Expect(hubClient.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
}

// sum sets the Placement's status from its decisions.
func (b *bed) sum(ctx context.Context, name string) {
	GinkgoHelper()
	list := &ocmclusterv1beta1.PlacementDecisionList{}
	Expect(hubClient.List(ctx, list, client.InNamespace(b.namespace), client.MatchingLabels{ocmclusterv1beta1.PlacementLabel: name})).To(Succeed())
	placement := &ocmclusterv1beta1.Placement{}
	Expect(hubClient.Get(ctx, client.ObjectKey{Namespace: b.namespace, Name: name}, placement)).To(Succeed())
	placement.Status = ocmclusterv1beta1.PlacementStatus{}
	for i, decision := range list.Items {
		placement.Status.NumberOfSelectedClusters += int32(len(decision.Status.Decisions))
		placement.Status.DecisionGroups = append(placement.Status.DecisionGroups, ocmclusterv1beta1.DecisionGroupStatus{DecisionGroupIndex: int32(i)})
	}
	Expect(hubClient.Status().Update(ctx, placement)).To(Succeed())
}

// set creates a ManifestWorkReplicaSet for Placements.
func (b *bed) set(ctx context.Context, name string, refs ...workv1alpha1.LocalPlacementReference) *workv1alpha1.ManifestWorkReplicaSet {
	GinkgoHelper()
	set := &workv1alpha1.ManifestWorkReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name, Labels: map[string]string{"team": "a"}},
		Spec:       workv1alpha1.ManifestWorkReplicaSetSpec{PlacementRefs: refs, ManifestWorkTemplate: template("blue")},
	}
	Expect(hubClient.Create(ctx, set)).To(Succeed())
	return set
}

// template returns a template with a ConfigMap of a colour.
func template(colour string) workv1.ManifestWorkSpec {
	raw := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"settings"},"data":{"colour":%q}}`, colour)
	return workv1.ManifestWorkSpec{Workload: workv1.ManifestsTemplate{Manifests: []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(raw)}}}}}
}

func everywhere(placement string) workv1alpha1.LocalPlacementReference {
	return workv1alpha1.LocalPlacementReference{Name: placement}
}

// some returns a reference to a Placement with limited concurrency.
func some(placement string, concurrency int32, change func(*clusterv1alpha1.RolloutProgressiveConfig)) workv1alpha1.LocalPlacementReference {
	progressive := &clusterv1alpha1.RolloutProgressiveConfig{MaxConcurrency: intstr.FromInt32(concurrency)}
	if change != nil {
		change(progressive)
	}
	return workv1alpha1.LocalPlacementReference{Name: placement, RolloutStrategy: clusterv1alpha1.RolloutStrategy{
		Type: clusterv1alpha1.RolloutProgressive, Progressive: progressive,
	}}
}

func update(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet, change func(*workv1alpha1.ManifestWorkReplicaSet)) {
	GinkgoHelper()
	Eventually(func() error {
		if err := hubClient.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		change(set)
		return hubClient.Update(ctx, set)
	}).Should(Succeed())
}

// worksOf lists the ManifestWorks of a set by label.
func worksOf(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet) []workv1.ManifestWork {
	GinkgoHelper()
	list := &workv1.ManifestWorkList{}
	Expect(hubClient.List(ctx, list, client.MatchingLabels{workv1alpha1.ReplicaSetLabel: set.Namespace + "." + set.Name})).To(Succeed())
	return list.Items
}

// colours returns the colours of a set's clusters, as cluster=colour.
func colours(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet) func() []string {
	return func() []string {
		all := []string{}
		for _, work := range worksOf(ctx, set) {
			_, colour, _ := strings.Cut(string(work.Spec.Workload.Manifests[0].Raw), `"colour":"`)
			colour, _, _ = strings.Cut(colour, `"`)
			all = append(all, work.Namespace+"="+colour)
		}
		slices.Sort(all)
		return all
	}
}

// have returns the same for clusters of one colour.
func have(colour string, clusters ...string) []string {
	all := []string{}
	for _, cluster := range clusters {
		all = append(all, cluster+"="+colour)
	}
	return all
}

// workIn returns the only ManifestWork of a set in a cluster's namespace.
func workIn(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet, cluster string) *workv1.ManifestWork {
	GinkgoHelper()
	var found []workv1.ManifestWork
	for _, work := range worksOf(ctx, set) {
		if work.Namespace == cluster {
			found = append(found, work)
		}
	}
	Expect(found).To(HaveLen(1))
	return &found[0]
}

const (
	yes = metav1.ConditionTrue
	no  = metav1.ConditionFalse
)

// report sets the status of a cluster's ManifestWork, as its agent does.
func report(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet, cluster string, conditions map[string]metav1.ConditionStatus) {
	GinkgoHelper()
	Eventually(func() error {
		work := workIn(ctx, set, cluster)
		for kind, status := range conditions {
			meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: "Spec", ObservedGeneration: work.Generation})
		}
		return hubClient.Status().Update(ctx, work)
	}).Should(Succeed())
}

// applyIn reports that a cluster has applied all its ManifestWorks.
func applyIn(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet, cluster string) {
	GinkgoHelper()
	for _, work := range worksOf(ctx, set) {
		if work.Namespace != cluster {
			continue
		}
		meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{Type: workv1.ConditionApplied, Status: yes, Reason: "Spec", ObservedGeneration: work.Generation})
		Expect(hubClient.Status().Update(ctx, &work)).To(Succeed())
	}
}

// done reports success in clusters.
func done(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet, clusters ...string) {
	GinkgoHelper()
	for _, cluster := range clusters {
		report(ctx, set, cluster, map[string]metav1.ConditionStatus{workv1.ConditionApplied: yes, workv1.ConditionAvailable: yes})
	}
}

// said returns the conditions of a set for its generation, as type status reason.
func said(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet) func(Gomega) []string {
	return func(g Gomega) []string {
		now := &workv1alpha1.ManifestWorkReplicaSet{}
		g.Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(set), now)).To(Succeed())
		var all []string
		for _, c := range now.Status.Conditions {
			if c.ObservedGeneration == now.Generation {
				all = append(all, fmt.Sprintf("%s %s %s", c.Type, c.Status, c.Reason))
			}
		}
		return all
	}
}

func message(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet, kind string) func(Gomega) string {
	return func(g Gomega) string {
		now := &workv1alpha1.ManifestWorkReplicaSet{}
		g.Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(set), now)).To(Succeed())
		if condition := meta.FindStatusCondition(now.Status.Conditions, kind); condition != nil {
			return condition.Message
		}
		return ""
	}
}

func summary(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet) func(Gomega) workv1alpha1.ManifestWorkReplicaSetSummary {
	return func(g Gomega) workv1alpha1.ManifestWorkReplicaSetSummary {
		now := &workv1alpha1.ManifestWorkReplicaSet{}
		g.Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(set), now)).To(Succeed())
		return now.Status.Summary
	}
}

func gone(ctx context.Context, object client.Object) func() bool {
	return func() bool {
		return apierrors.IsNotFound(hubClient.Get(ctx, client.ObjectKeyFromObject(object), object))
	}
}

const (
	verified    = "PlacementVerified True AsExpected"
	rolledOut   = "PlacementRolledOut True Complete"
	progressing = "PlacementRolledOut False Progressing"
	applied     = "ManifestworkApplied True AsExpected"
	notApplied  = "ManifestworkApplied False NotAsExpected"
)
