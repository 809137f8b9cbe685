// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"maps"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	"fleetgate.io/fleetgate/pkg/kube/hash"
	"fleetgate.io/fleetgate/pkg/kube/naming"
)

// hashLength is the part of a hash that distinguishes the ManifestWorks of a namespace: 40 bits.
const hashLength = 10

// labelValue is the value of workv1alpha1.ReplicaSetLabel on a set's ManifestWorks.
func labelValue(set *workv1alpha1.ManifestWorkReplicaSet) string {
	return set.Namespace + "." + set.Name
}

// labelFits is true if it is a valid label value.
func labelFits(set *workv1alpha1.ManifestWorkReplicaSet) bool {
	return len(validation.IsValidLabelValue(labelValue(set))) == 0
}

// setOf is the set of a ManifestWork. A namespace has no dot in its name.
func setOf(work client.Object) (types.NamespacedName, bool) {
	namespace, name, ok := strings.Cut(work.GetLabels()[workv1alpha1.ReplicaSetLabel], ".")
	return types.NamespacedName{Namespace: namespace, Name: name}, ok && namespace != "" && name != ""
}

// desiredName is the name of a set's ManifestWork for a cluster of a Placement. It is
// deterministic, so that an interrupted controller creates no second one.
func desiredName(set *workv1alpha1.ManifestWorkReplicaSet, placement, cluster string) string {
	return set.Name + "-" + hash.Of(strings.Join([]string{set.Namespace, set.Name, placement, cluster}, "/"))[:hashLength]
}

// desiredLabels are the set's own labels, and those that identify the set.
func desiredLabels(set *workv1alpha1.ManifestWorkReplicaSet, placement string) map[string]string {
	labels := maps.Clone(set.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[workv1alpha1.ReplicaSetLabel] = labelValue(set)
	labels[workv1alpha1.PlacementNameLabel] = naming.LabelValue(placement)
	return labels
}

func desiredWork(set *workv1alpha1.ManifestWorkReplicaSet, placement, cluster string, now time.Time) *workv1.ManifestWork {
	return &workv1.ManifestWork{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster, Name: desiredName(set, placement, cluster), Labels: desiredLabels(set, placement),
			Annotations: map[string]string{workv1alpha1.GivenAtAnnotation: now.UTC().Format(time.RFC3339)},
		},
		Spec: *set.Spec.ManifestWorkTemplate.DeepCopy(),
	}
}

// hasLabels is true if a ManifestWork has all desired labels.
func hasLabels(work *workv1.ManifestWork, labels map[string]string) bool {
	for key, value := range labels {
		if have, ok := work.Labels[key]; !ok || have != value {
			return false
		}
	}
	return true
}
