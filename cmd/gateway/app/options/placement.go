// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	configv1alpha1 "fleetgate.io/fleetgate/pkg/apis/config/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/configfile"
	"fleetgate.io/fleetgate/pkg/placement/helmchart/oci"
	"fleetgate.io/fleetgate/pkg/placement/selection"
	"fleetgate.io/fleetgate/pkg/webhook/validation"
)

// Values of placement.tenancy.
const (
	tenancyOff         = "off"
	tenancyClusterSets = "cluster-sets"
)

// Placement configures what may be placed and by whom.
type Placement struct {
	*configv1alpha1.PlacementConfiguration
}

func defaultPlacement() configv1alpha1.PlacementConfiguration {
	return configv1alpha1.PlacementConfiguration{AuthorizeAuthors: true, Tenancy: tenancyOff, ManifestLimit: validation.DefaultManifestLimit}
}

// AddFlags binds the options to a command line.
func (o *Placement) AddFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.HelmCharts, "helm-charts", o.HelmCharts, "Render the Helm charts in ConfigMaps and Secrets with the annotation "+placementv1beta1.HelmChartAnnotation+", for each member that they are placed on. Setting the annotation needs the verb "+placementv1beta1.RenderVerb+" on the object.")
	configfile.Override(flags, "helm-charts", "placement.helmCharts")
}

// Filter leaves kinds and namespaces out of all placements.
func (o *Placement) Filter() (selection.Filter, error) {
	return selection.ParseFilter(o.SkippedAPIs, o.AllowedAPIs, o.SkippedNamespaces)
}

// Validate returns every error at once.
func (o *Placement) Validate() field.ErrorList {
	at := field.NewPath("placement")
	all := configfile.OneOf(at.Child("tenancy"), o.Tenancy, tenancyOff, tenancyClusterSets)
	if _, err := o.Filter(); err != nil {
		all = append(all, field.Forbidden(at, err.Error()))
	}
	if o.ManifestLimit <= 0 {
		all = append(all, field.Invalid(at.Child("manifestLimit"), o.ManifestLimit, "leaves no room for a manifest"))
	}
	for name, given := range map[string]metav1.Duration{
		"snapshotMinimumInterval": o.SnapshotMinimumInterval, "changesCollectionDuration": o.ChangesCollectionDuration,
	} {
		if given.Duration < 0 {
			all = append(all, field.Invalid(at.Child(name), given.Duration.String(), "must not be negative"))
		}
	}
	return append(all, o.validateCharts(at)...)
}

func (o *Placement) validateCharts(at *field.Path) field.ErrorList {
	var all field.ErrorList
	if err := oci.ParseAllowed(o.HelmChartRegistries); err != nil {
		all = append(all, field.Invalid(at.Child("helmChartRegistries"), o.HelmChartRegistries, err.Error()))
	}
	all = append(all, configfile.Without(at.Child("helmChartRegistries"), len(o.HelmChartRegistries) > 0 && !o.HelmCharts, "placement.helmCharts")...)
	credentials := at.Child("helmChartCredentialsFile")
	if o.HelmChartCredentialsFile == "" {
		return all
	}
	all = append(all, configfile.Without(credentials, len(o.HelmChartRegistries) == 0, "placement.helmChartRegistries")...)
	if _, err := oci.ReadCredentials(o.HelmChartCredentialsFile); err != nil {
		all = append(all, field.Invalid(credentials, o.HelmChartCredentialsFile, err.Error()))
	}
	return all
}

// LimitsTenants is true if ResourcePlacements place only on members of sets that are bound to
// their namespaces.
func (o *Placement) LimitsTenants() bool { return o.Tenancy == tenancyClusterSets }

// TrustsAuthors is true if the authors of placements and overrides are not checked.
func (o *Placement) TrustsAuthors() bool { return !o.AuthorizeAuthors }
