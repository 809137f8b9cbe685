// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of Azure's first fleets.
const GroupName = "fleet.azure.com"

// GroupVersion is the only version of the group.
var GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

// AddToScheme registers the kinds of this package with a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&MemberCluster{}, &MemberClusterList{},
		&InternalMemberCluster{}, &InternalMemberClusterList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
