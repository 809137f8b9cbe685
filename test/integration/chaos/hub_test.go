// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/build"
)

const (
	widgetGroup = "chaos.example.org"
	// widgetVersion is the storage version: requests in it need no conversion.
	widgetVersion = "v1"
	envelopeName  = "pack"
	sideLabel     = "chaos.example.org/side"
	regionLabel   = "region"

	regional = "regional"
	sliced   = "sliced"

	// retainedAnnotation says on a member why an object stays (docs/concepts/deletion.md).
	retainedAnnotation = "fleetgate.io/retained"
)

// retry makes a request until it succeeds.
func retry(ctx context.Context, do func(ctx context.Context) error) {
	GinkgoHelper()
	Eventually(do).WithContext(ctx).Should(Succeed())
}

// write creates an object, or changes what is there.
func write[T client.Object](ctx context.Context, on client.Client, at T, change func(T)) {
	GinkgoHelper()
	retry(ctx, func(ctx context.Context) error {
		err := on.Get(ctx, client.ObjectKeyFromObject(at), at)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		change(at)
		if err != nil {
			at.SetResourceVersion("")
			return on.Create(ctx, at)
		}
		return on.Update(ctx, at)
	})
}

// erase requests a deletion.
func erase(ctx context.Context, on client.Client, object client.Object) {
	GinkgoHelper()
	retry(ctx, func(ctx context.Context) error { return client.IgnoreNotFound(on.Delete(ctx, object)) })
}

// exists returns false if an object is gone.
func exists(ctx context.Context, object client.Object) (bool, error) {
	err := hub.Get(ctx, client.ObjectKeyFromObject(object), object)
	return !apierrors.IsNotFound(err), client.IgnoreNotFound(err)
}

// manifest is an object of the pool with a value.
func manifest(o object, s source) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": o.kind}}
	switch o.kind {
	case "ConfigMap":
		u.Object["data"] = map[string]any{"value": strconv.Itoa(s.value)}
	case "Widget":
		u.SetAPIVersion(widgetGroup + "/" + widgetVersion)
		u.Object["spec"] = map[string]any{"value": int64(s.value)}
	case "PersistentVolumeClaim":
		u.Object["spec"] = map[string]any{"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}}}
	}
	u.SetNamespace(o.namespace)
	u.SetName(o.name)
	labels := map[string]string{}
	if s.value != anyValue {
		labels[valueLabel] = strconv.Itoa(s.value)
	}
	if s.side != "" {
		labels[sideLabel] = s.side
	}
	u.SetLabels(labels)
	return u
}

// writeSource writes an object to the hub, or the envelope that contains it.
func (m *model) writeSource(ctx context.Context, o object) {
	GinkgoHelper()
	if s := m.sources[o]; !s.enveloped {
		u := manifest(o, s)
		write(ctx, hub, u.DeepCopy(), func(at *unstructured.Unstructured) {
			at.SetLabels(u.GetLabels())
			for _, field := range []string{"data", "spec"} {
				if value, has := u.Object[field]; has && o.kind != "PersistentVolumeClaim" || at.GetUID() == "" && has {
					at.Object[field] = value
				}
			}
		})
		return
	}
	m.writeEnvelope(ctx, o.namespace)
}

// writeEnvelope writes the ResourceEnvelope of a namespace, or deletes an empty one.
func (m *model) writeEnvelope(ctx context.Context, namespace string) {
	GinkgoHelper()
	envelope := &placementv1beta1.ResourceEnvelope{ObjectMeta: build.In(namespace, envelopeName)}
	data := map[string]placementv1beta1.EnvelopedObject{}
	for o, s := range m.sources {
		if o.namespace == namespace && s.enveloped {
			raw, err := json.Marshal(manifest(o, s))
			Expect(err).NotTo(HaveOccurred())
			data[o.name+".yaml"] = placementv1beta1.EnvelopedObject{RawExtension: runtime.RawExtension{Raw: raw}}
		}
	}
	if len(data) == 0 {
		erase(ctx, hub, envelope)
		return
	}
	write(ctx, hub, envelope, func(at *placementv1beta1.ResourceEnvelope) { at.Data = data })
}

// eraseSource deletes an object from the hub that the model has no longer.
func (m *model) eraseSource(ctx context.Context, o object, enveloped bool) {
	GinkgoHelper()
	if enveloped {
		m.writeEnvelope(ctx, o.namespace)
		return
	}
	erase(ctx, hub, manifest(o, source{}))
}

// object is the placement on the hub.
func (p *placement) object() placementv1beta1.PlacementObject {
	if p.side != "" {
		return &placementv1beta1.ResourcePlacement{ObjectMeta: build.In(p.namespace, p.String())}
	}
	return &placementv1beta1.ClusterResourcePlacement{ObjectMeta: build.Named(p.String())}
}

// write writes the placement to the hub.
func (p *placement) write(ctx context.Context) {
	GinkgoHelper()
	write(ctx, hub, p.object(), func(at placementv1beta1.PlacementObject) {
		if at.GetUID() == "" {
			at.GetSpec().ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: p.namespace}}
			if p.side != "" {
				at.GetSpec().ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "ConfigMap",
					LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{sideLabel: p.side}}}}
			}
		}
		p.writePolicy(at.GetSpec())
	})
}

func (p *placement) writePolicy(spec *placementv1beta1.PlacementSpec) {
	all, soon := intstr.FromString("100%"), 1 // No removal waits for other members.
	spec.Strategy.RollingUpdate = &placementv1beta1.RollingUpdateConfig{MaxUnavailable: &all, UnavailablePeriodSeconds: &soon}
	labels := map[string]string{}
	if p.region != "" {
		labels[regionLabel] = p.region
	}
	spec.Policy = &placementv1beta1.PlacementPolicy{
		PlacementType: placementv1beta1.PickAll,
		Affinity: &placementv1beta1.Affinity{ClusterAffinity: &placementv1beta1.ClusterAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{
				{LabelSelector: &metav1.LabelSelector{MatchLabels: labels, MatchExpressions: []metav1.LabelSelectorRequirement{
					// This matches every member but changes the policy.
					{Key: fmt.Sprintf("nobody-has-%d", p.policies), Operator: metav1.LabelSelectorOpDoesNotExist}}}},
			}},
		}},
	}
	if p.picks {
		n := int32(p.n)
		spec.Policy.PlacementType, spec.Policy.NumberOfClusters = placementv1beta1.PickN, &n
	}
}

// writeRegion writes the region of a member.
func (m *model) writeRegion(ctx context.Context, member string) {
	GinkgoHelper()
	write(ctx, hub, &clusterv1beta1.MemberCluster{ObjectMeta: build.Named(member)}, func(at *clusterv1beta1.MemberCluster) {
		metav1.SetMetaDataLabel(&at.ObjectMeta, regionLabel, m.regions[member])
	})
}

// object is the set on the hub.
func (r *replicaSet) object() *workv1alpha1.ManifestWorkReplicaSet {
	return &workv1alpha1.ManifestWorkReplicaSet{ObjectMeta: build.In(setsNamespace, r.String())}
}

// write writes the set to the hub.
func (r *replicaSet) write(ctx context.Context) {
	GinkgoHelper()
	write(ctx, hub, r.object(), func(at *workv1alpha1.ManifestWorkReplicaSet) {
		var manifests []workv1.Manifest
		for _, name := range slices.Sorted(maps.Keys(r.contents)) {
			raw, err := json.Marshal(manifest(object{"ConfigMap", setsNamespace, name}, source{value: r.contents[name]}))
			Expect(err).NotTo(HaveOccurred())
			manifests = append(manifests, workv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}})
		}
		at.Spec.PlacementRefs = []workv1alpha1.LocalPlacementReference{{Name: r.name}}
		at.Spec.ManifestWorkTemplate = workv1.ManifestWorkSpec{Workload: workv1.ManifestsTemplate{Manifests: manifests}}
	})
}

// writeRegional writes the Placement about which fleetgate decides. Its decision groups are the
// regions, so a relabelled cluster moves from one PlacementDecision to another.
func (m *model) writeRegional(ctx context.Context) {
	GinkgoHelper()
	write(ctx, hub, &ocmclusterv1beta1.Placement{ObjectMeta: build.In(setsNamespace, regional)}, func(at *ocmclusterv1beta1.Placement) {
		at.Spec.Predicates = nil
		if m.region != "" {
			at.Spec.Predicates = []ocmclusterv1beta1.ClusterPredicate{{RequiredClusterSelector: ocmclusterv1beta1.ClusterSelector{LabelSelector: inRegion(m.region)}}}
		}
		at.Spec.Tolerations = []ocmclusterv1beta1.Toleration{{Operator: "Exists"}} // A slow machine moves nothing.
		at.Spec.DecisionStrategy.GroupStrategy.DecisionGroups = nil
		for _, region := range regions {
			at.Spec.DecisionStrategy.GroupStrategy.DecisionGroups = append(at.Spec.DecisionStrategy.GroupStrategy.DecisionGroups, ocmclusterv1beta1.DecisionGroup{
				GroupName: region, GroupClusterSelector: ocmclusterv1beta1.GroupClusterSelector{LabelSelector: inRegion(region)}})
		}
	})
}

// inAnyRegion matches every member.
func inAnyRegion() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: regionLabel, Operator: metav1.LabelSelectorOpExists}}}
}

func inRegion(region string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: map[string]string{regionLabel: region}}
}

// writeSlice writes one PlacementDecision of the Placement about which the spec decides.
func (m *model) writeSlice(ctx context.Context, index int) {
	GinkgoHelper()
	at := &ocmclusterv1beta1.PlacementDecision{ObjectMeta: build.In(setsNamespace, fmt.Sprintf("%s-decision-%d", sliced, index+1))}
	labels := map[string]string{ocmclusterv1beta1.PlacementLabel: sliced, ocmclusterv1beta1.DecisionGroupIndexLabel: "0", ocmclusterv1beta1.DecisionGroupNameLabel: ""}
	write(ctx, hub, at, func(at *ocmclusterv1beta1.PlacementDecision) { at.Labels = labels })
	retry(ctx, func(ctx context.Context) error {
		if err := hub.Get(ctx, client.ObjectKeyFromObject(at), at); err != nil {
			return err
		}
		at.Status.Decisions = []ocmclusterv1beta1.ClusterDecision{}
		for _, member := range m.members {
			if m.slices[index][member] {
				at.Status.Decisions = append(at.Status.Decisions, ocmclusterv1beta1.ClusterDecision{ClusterName: member})
			}
		}
		return hub.Status().Update(ctx, at)
	})
}
