// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
)

// GroupVersion is the version that is stored and served.
var GroupVersion = schema.GroupVersion{Group: clusterv1.GroupName, Version: "v1beta2"}

// AddToScheme registers the kinds of this package with a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&ManagedClusterSet{}, &ManagedClusterSetList{},
		&ManagedClusterSetBinding{}, &ManagedClusterSetBindingList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
