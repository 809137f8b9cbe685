// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

const (
	soon  = 60 * time.Second
	often = 50 * time.Millisecond
)

// fleetLabel separates the members of one spec from those of others.
const fleetLabel = "example.com/spec"

// shop creates a namespace with contents.
func shop(ctx context.Context, name string) {
	GinkgoHelper()
	labels := map[string]string{"app": "web"}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "settings"}, Data: map[string]string{"colour": "<red> & blue"}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "web"}, Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, Selector: labels, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}}}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "web"}, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}}},
		}},
	} {
		Expect(hub.Create(ctx, object)).To(Succeed())
	}
	DeferCleanup(clearIfFailed, name)
}

// clearIfFailed removes the namespace of a failed spec, so that a second attempt starts like the first.
// Namespaces of other specs are removed with the hub.
func clearIfFailed(ctx context.Context, name string) {
	if !CurrentSpecReport().Failed() {
		return
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	Expect(client.IgnoreNotFound(hub.Delete(ctx, namespace))).To(Succeed())
	Eventually(func() error { return hub.Get(ctx, client.ObjectKeyFromObject(namespace), namespace) }).WithTimeout(soon).Should(
		MatchError(ContainSubstring("not found")))
}

// makeNamespace creates a namespace, unless another spec did. It stays unless the spec fails, because
// deleting contents takes long.
func makeNamespace(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(client.IgnoreAlreadyExists(hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))).To(Succeed())
	DeferCleanup(clearIfFailed, name)
}

// place creates a placement of a namespace on all members labelled with the spec's name.
func place(ctx context.Context, name, namespace string, change func(*placementv1beta1.PlacementSpec)) *placementv1beta1.ClusterResourcePlacement {
	GinkgoHelper()
	crp := placementOf(name, namespace)
	if change != nil {
		change(&crp.Spec)
	}
	Expect(hub.Create(ctx, crp)).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		Expect(client.IgnoreNotFound(hub.Delete(ctx, crp))).To(Succeed())
		Eventually(leftOf).WithContext(ctx).WithArguments(name).WithTimeout(soon).WithPolling(often).Should(BeEmpty())
	})
	return crp
}

func placementOf(name, namespace string) *placementv1beta1.ClusterResourcePlacement {
	crp := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name}}
	crp.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: namespace}}
	crp.Spec.Policy = &placementv1beta1.PlacementPolicy{
		PlacementType: placementv1beta1.PickAll,
		Affinity: &placementv1beta1.Affinity{ClusterAffinity: &placementv1beta1.ClusterAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{
				{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{fleetLabel: name}}},
			}},
		}},
	}
	return crp
}

// create creates an object, and deletes it after the spec.
func create(ctx context.Context, o client.Object) {
	GinkgoHelper()
	Expect(hub.Create(ctx, o)).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		Expect(client.IgnoreNotFound(hub.Delete(ctx, o))).To(Succeed())
		Eventually(func() error { return hub.Get(ctx, client.ObjectKeyFromObject(o), o) }).WithTimeout(soon).Should(
			MatchError(ContainSubstring("not found")))
	})
}

// leftOf names the remaining objects of a placement, and releases its Works in any namespace.
func leftOf(ctx context.Context, name string) ([]string, error) {
	mine := client.MatchingLabels{placementv1beta1.ParentPlacementLabel: name}
	var left []string
	var works placementv1beta1.WorkList
	if err := hub.List(ctx, &works, mine); err != nil {
		return nil, err
	}
	for i := range works.Items {
		// The Works of a member that left are deleted with its namespace, which is not part of
		// placement.
		member, _ := clusterv1beta1.MemberOfNamespace(works.Items[i].Namespace)
		if err := hub.Get(ctx, client.ObjectKey{Name: member}, &clusterv1beta1.MemberCluster{}); apierrors.IsNotFound(err) {
			continue
		}
		left = append(left, "work "+works.Items[i].Name)
		if works.Items[i].DeletionTimestamp != nil {
			_ = handle(ctx, &works.Items[i])
		}
	}
	for _, list := range []client.ObjectList{
		&placementv1beta1.ClusterResourceBindingList{}, &placementv1beta1.ClusterResourceSnapshotList{}, &placementv1beta1.ClusterSchedulingPolicySnapshotList{},
	} {
		if err := hub.List(ctx, list, mine); err != nil {
			return nil, err
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			left = append(left, fmt.Sprintf("%T %s", item, item.(client.Object).GetName()))
		}
	}
	crp := &placementv1beta1.ClusterResourcePlacement{}
	err := hub.Get(ctx, types.NamespacedName{Name: name}, crp)
	if err == nil {
		left = append(left, "placement")
	}
	return left, client.IgnoreNotFound(err)
}

func statusOf(ctx context.Context, name string) (*placementv1beta1.ClusterResourcePlacement, error) {
	crp := &placementv1beta1.ClusterResourcePlacement{}
	return crp, hub.Get(ctx, types.NamespacedName{Name: name}, crp)
}

// summary is the placement's conditions as "Type=Status/Reason", without those of an older generation.
func summary(ctx context.Context, name string) ([]string, error) {
	crp, err := statusOf(ctx, name)
	if err != nil {
		return nil, err
	}
	return brief(crp.Status.Conditions, "ClusterResourcePlacement", crp.Generation), nil
}

func brief(conditions []metav1.Condition, prefix string, generation int64) []string {
	var all []string
	for _, c := range conditions {
		if c.ObservedGeneration == generation {
			all = append(all, fmt.Sprintf("%s=%s/%s", strings.TrimPrefix(c.Type, prefix), c.Status, c.Reason))
		}
	}
	return all
}

var allTrue = []string{
	"Scheduled=True/SchedulingPolicyFulfilled", "RolloutStarted=True/RolloutStarted", "Overridden=True/NoOverrideSpecified",
	"WorkSynchronized=True/WorkSynchronized", "Applied=True/ApplySucceeded", "Available=True/ResourceAvailable",
}

// memberTrue is the same for a member.
var memberTrue = []string{
	"Scheduled=True/Scheduled", "RolloutStarted=True/RolloutStarted", "Overridden=True/NoOverrideSpecified",
	"WorkSynchronized=True/AllWorkSynced", "Applied=True/AllWorkHaveBeenApplied", "Available=True/AllWorkAreAvailable",
}

func expectAvailable(ctx context.Context, name, index string) {
	GinkgoHelper()
	Eventually(summary).WithContext(ctx).WithArguments(name).WithTimeout(soon).WithPolling(often).Should(Equal(allTrue))
	Eventually(func(g Gomega) {
		crp, err := statusOf(ctx, name)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(crp.Status.ObservedResourceIndex).To(Equal(index))
		g.Expect(brief(crp.Status.Conditions, "ClusterResourcePlacement", crp.Generation)).To(Equal(allTrue))
	}).WithTimeout(soon).WithPolling(often).Should(Succeed())
}

func kindsIn(work *placementv1beta1.Work) []string {
	var kinds []string
	for _, m := range work.Spec.Workload.Manifests {
		var object metav1.PartialObjectMetadata
		Expect(json.Unmarshal(m.Raw, &object)).To(Succeed())
		kinds = append(kinds, object.Kind+"/"+object.Name)
	}
	return kinds
}

func bindingsOf(ctx context.Context, name string) (map[string]placementv1beta1.ClusterResourceBinding, error) {
	var list placementv1beta1.ClusterResourceBindingList
	if err := hub.List(ctx, &list, client.MatchingLabels{placementv1beta1.ParentPlacementLabel: name}); err != nil {
		return nil, err
	}
	byMember := map[string]placementv1beta1.ClusterResourceBinding{}
	for _, b := range list.Items {
		byMember[b.Spec.TargetCluster] = b
	}
	return byMember, nil
}

func changeSettings(ctx context.Context, namespace, colour string) {
	GinkgoHelper()
	settings := &corev1.ConfigMap{}
	Expect(hub.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "settings"}, settings)).To(Succeed())
	settings.Data["colour"] = colour
	Expect(hub.Update(ctx, settings)).To(Succeed())
}

func workSays(ctx context.Context, member, placement, text string) func() (bool, error) {
	return func() (bool, error) {
		work, err := workOf(ctx, member, placement)
		if err != nil {
			return false, client.IgnoreNotFound(err)
		}
		for _, m := range work.Spec.Workload.Manifests {
			if strings.Contains(string(m.Raw), text) {
				return true, nil
			}
		}
		return false, nil
	}
}
