// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package annotations gives ManagedClusterAddOns the annotations of their ManagedCluster that are
// about add-ons.
package annotations

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
)

// Copy gives an add-on the annotations of its cluster, and removes those that it got before and the
// cluster has no longer. Annotations that others wrote on the add-on stay, unless the cluster has
// the same ones.
func Copy(addOn, cluster metav1.Object) {
	desired := maps.Clone(addOn.GetAnnotations())
	if desired == nil {
		desired = map[string]string{}
	}
	for copied := range strings.SplitSeq(desired[addonv1alpha1.CopiedAnnotation], ",") {
		if strings.HasPrefix(copied, addonv1alpha1.AnnotationPrefix) {
			delete(desired, copied)
		}
	}
	delete(desired, addonv1alpha1.CopiedAnnotation)
	var keys []string
	for key, value := range cluster.GetAnnotations() {
		if strings.HasPrefix(key, addonv1alpha1.AnnotationPrefix) {
			desired[key] = value
			keys = append(keys, key)
		}
	}
	if len(keys) > 0 {
		slices.Sort(keys)
		desired[addonv1alpha1.CopiedAnnotation] = strings.Join(keys, ",")
	}
	if len(desired) == 0 {
		desired = nil
	}
	addOn.SetAnnotations(desired)
}

// Differ reports whether the annotations that add-ons get differ between two states of a
// cluster.
func Differ(before, after metav1.Object) bool {
	return !maps.Equal(ofAddOns(before), ofAddOns(after))
}

func ofAddOns(cluster metav1.Object) map[string]string {
	all := maps.Clone(cluster.GetAnnotations())
	maps.DeleteFunc(all, func(key, _ string) bool { return !strings.HasPrefix(key, addonv1alpha1.AnnotationPrefix) })
	return all
}
