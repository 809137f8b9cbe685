// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// staysHeadless returns an error if the manifest no longer has the clusterIP None of its Service. An API
// server accepts such a write and keeps None, so the Service would stay headless on this member and not on
// members that get it later. The error is that of an immutable field.
func (e *Engine) staysHeadless(it Item, live *unstructured.Unstructured) error {
	service := schema.GroupKind{Kind: "Service"}
	if live == nil || it.object.GroupVersionKind().GroupKind() != service || clusterIP(live) != corev1.ClusterIPNone || clusterIP(it.object) != "" {
		return nil
	}
	if !e.appliedHeadless(it, live) {
		return nil // Another client made it headless.
	}
	switch kind, _, _ := unstructured.NestedString(it.object.Object, "spec", "type"); corev1.ServiceType(kind) {
	case "", corev1.ServiceTypeClusterIP:
	default:
		return nil // The API server changes it, or refuses it.
	}
	return apierrors.NewInvalid(service, live.GetName(), field.ErrorList{field.Invalid(field.NewPath("spec", "clusterIP"), corev1.ClusterIPNone,
		"cannot be changed: an API server keeps a headless Service headless")})
}

// appliedHeadless is true if the last applied manifest of the Service had clusterIP None.
func (e *Engine) appliedHeadless(it Item, live *unstructured.Unstructured) bool {
	var before corev1.Service
	err := untrusted.UnmarshalJSON(e.lastApplied(it, live), untrusted.Object, &before)
	return err == nil && before.Spec.ClusterIP == corev1.ClusterIPNone
}

func clusterIP(service *unstructured.Unstructured) string {
	ip, _, _ := unstructured.NestedString(service.Object, "spec", "clusterIP")
	return ip
}
