// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
)

// GroupVersion is the version that is stored and served.
var GroupVersion = schema.GroupVersion{Group: workv1.GroupName, Version: "v1alpha1"}

// AddToScheme registers the kinds of this package with a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &ManifestWorkReplicaSet{}, &ManifestWorkReplicaSetList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
