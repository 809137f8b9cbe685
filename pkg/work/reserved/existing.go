// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package reserved

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// Existing says why an agent with works.onlyLabelledNamespaces writes nothing into a namespace of the
// member, or nothing. A namespace is open if it has the label, or if a work of either family created
// it, which may have left it there since. The accounts of any other may have many rights, and a Pod in
// it can run as each of them.
func Existing(namespace metav1.Object) string {
	annotations := namespace.GetAnnotations()
	_, takenOver := annotations[placementv1beta1.TakenOverAnnotation]
	_, retained := annotations[placementv1beta1.RetainedAnnotation]
	created := !takenOver && (retained || slices.ContainsFunc(namespace.GetOwnerReferences(), isRecord))
	if created || namespace.GetLabels()[placementv1beta1.EnterLabel] == "true" {
		return ""
	}
	return fmt.Sprintf("Namespace %q was not created by the fleet, and the agent runs with works.onlyLabelledNamespaces. To allow writes into it, "+
		"run on the member: kubectl label namespace %s %s=true", namespace.GetName(), namespace.GetName(), placementv1beta1.EnterLabel)
}

// isRecord reports whether an owner is the record of a work.
func isRecord(owner metav1.OwnerReference) bool {
	version, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && (version.Group == placementv1beta1.GroupName && owner.Kind == "AppliedWork" ||
		version.Group == workv1.GroupName && owner.Kind == "AppliedManifestWork")
}
