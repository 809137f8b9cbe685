// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	configv1alpha1 "fleetgate.io/fleetgate/pkg/apis/config/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/kube/configfile"
)

// Klusterlets configures the registration of clusters with agents of Open Cluster
// Management (OCMRegistration).
type Klusterlets struct {
	*configv1alpha1.KlusterletsConfiguration
}

// Validate returns every error at once.
func (o *Klusterlets) Validate() field.ErrorList {
	at := field.NewPath("klusterlets")
	all := configfile.Together(at.Child("signerCertFile"), "set both or neither of signerCertFile and signerKeyFile", o.SignerCertFile != "", o.SignerKeyFile != "")
	for i, user := range o.AutoApprovedUsers {
		if user == "" {
			all = append(all, field.Required(at.Child("autoApprovedUsers").Index(i), "name a user"))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(o.Labels)) {
		problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(o.Labels[key])...)
		if key == clusterv1.ClusterNameLabel {
			problems = append(problems, "the hub sets it")
		}
		all = append(all, configfile.Invalid(at.Child("labels").Key(key), o.Labels[key], problems...)...)
	}
	return all
}
