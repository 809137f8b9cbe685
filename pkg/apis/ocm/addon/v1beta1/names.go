// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"

// What only v1alpha1 has fields for.
const (
	// InstallNamespaceAnnotation on a ManagedClusterAddOn is spec.installNamespace of v1alpha1.
	InstallNamespaceAnnotation = addonv1alpha1.GroupName + "/v1alpha1-install-namespace"
	// NoDefaultConfig is the name of a default configuration that does not exist: the add-on has
	// configurations of this kind, and none is the default.
	NoDefaultConfig = "__reserved_no_default__"
	// FieldsAnnotation has the other fields of v1alpha1 (JSON). The conversion writes and removes it.
	FieldsAnnotation = "fleetgate.io/v1alpha1-fields"
	// IncompleteLabel is on an object whose fields of v1alpha1 exceed the limit for annotations. It
	// cannot be written in this version.
	IncompleteLabel = "fleetgate.io/v1alpha1-incomplete"
)
