// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	multiclusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/multicluster/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/helmchart/oci"
	"fleetgate.io/fleetgate/pkg/placement/selection"
	"fleetgate.io/fleetgate/pkg/webhook/validation"
)

// Values of --authorize-authors.
const (
	authorizeOn  = "on"
	authorizeOff = "off"
)

// Values of --placement-tenancy.
const (
	tenancyOff         = "off"
	tenancyClusterSets = "cluster-sets"
)

// Placement configures what may be placed and by whom.
type Placement struct {
	// ConfigMapEnvelopes treats annotated ConfigMaps as envelopes.
	ConfigMapEnvelopes bool
	// HelmCharts renders annotated ConfigMaps and Secrets.
	HelmCharts bool
	// HelmChartRegistries are the registries that charts may be fetched from.
	HelmChartRegistries []string
	// HelmChartCredentials is the file with their credentials.
	HelmChartCredentials string
	// AuthorizeAuthors is whether the authors of placements and overrides are checked.
	AuthorizeAuthors string
	// Tenancy limits the members of ResourcePlacements.
	Tenancy string
	// StandardDecisions publishes the decisions of all placements, not only of annotated ones.
	StandardDecisions bool
	// StrictEnvelopes rejects envelopes with an object that cannot be placed from them.
	StrictEnvelopes bool
	// ManifestLimit is the maximum size of the manifests of a ManifestWork in bytes.
	ManifestLimit int
	// SnapshotInterval is the minimum age of the latest resource snapshot before the next one.
	SnapshotInterval time.Duration
	// CollectionDuration is the delay of a resource snapshot after the first change.
	CollectionDuration time.Duration
	// SkippedAPIs, AllowedAPIs and SkippedNamespaces leave kinds and namespaces out of all placements.
	SkippedAPIs, AllowedAPIs, SkippedNamespaces string
}

func newPlacement() Placement {
	return Placement{AuthorizeAuthors: authorizeOn, Tenancy: tenancyOff, ManifestLimit: validation.DefaultManifestLimit}
}

// AddFlags binds the options to a command line.
func (o *Placement) AddFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.ConfigMapEnvelopes, "configmap-envelopes", o.ConfigMapEnvelopes, "Treat ConfigMaps with the annotation "+placementv1beta1.ConfigMapEnvelopeAnnotation+"=true as envelopes, as KubeFleet did in 2023. Their content is not checked: anyone who may write ConfigMaps in a placed namespace decides what members get.")
	flags.BoolVar(&o.HelmCharts, "helm-charts", o.HelmCharts, "Render the Helm charts in ConfigMaps and Secrets with the annotation "+placementv1beta1.HelmChartAnnotation+", for each member that they are placed on. Setting the annotation needs the verb "+placementv1beta1.RenderVerb+" on the object.")
	flags.StringSliceVar(&o.HelmChartRegistries, "helm-chart-registries", o.HelmChartRegistries, "With --helm-charts: OCI registries that charts may be fetched from, optionally with a repository prefix (ghcr.io/acme/charts). A registry that starts with http:// is contacted without TLS. If unset, no chart is fetched.")
	flags.StringVar(&o.HelmChartCredentials, "helm-chart-credentials", o.HelmChartCredentials, "With --helm-chart-registries: file with credentials for private registries, in the format of helm registry login and of a Secret of type kubernetes.io/dockerconfigjson. The file can be replaced at any time.")
	flags.StringVar(&o.AuthorizeAuthors, "authorize-authors", o.AuthorizeAuthors, "on: the author of a placement must be allowed to get, list or "+placementv1beta1.PlaceVerb+" what it selects, the author of an override must be allowed to update the object, and the author of a ManifestWorkReplicaSet must be allowed to create what is in its template. off: authors are not checked. Anyone who may write placements in a namespace can then place everything in it.")
	flags.StringVar(&o.Tenancy, "placement-tenancy", o.Tenancy, "off: ResourcePlacements can place on all members. cluster-sets: a ResourcePlacement places only on members of ManagedClusterSets that are bound to its namespace; needs registration in --ocm.")
	flags.BoolVar(&o.StandardDecisions, "standard-decisions", o.StandardDecisions, "Publish the members of every ClusterResourcePlacement and ResourcePlacement as PlacementDecisions of "+multiclusterv1alpha1.GroupName+" that name ClusterProfiles; needs clusterprofile in --apis. If false, only placements with the annotation "+multiclusterv1alpha1.AnnotationStandardDecisions+"=true get them.")
	flags.BoolVar(&o.StrictEnvelopes, "strict-envelopes", o.StrictEnvelopes, "Reject an envelope that contains an object that cannot be placed from it: an object of another namespace, a cluster-scoped object in a ResourceEnvelope, or an object with generateName and no name. If false, the author gets a warning, and placements report why the object is not placed.")
	flags.IntVar(&o.ManifestLimit, "manifest-limit", o.ManifestLimit, "Maximum size in bytes of all manifests of a ManifestWork, or of the template of a ManifestWorkReplicaSet.")
	flags.DurationVar(&o.SnapshotInterval, "resource-snapshot-creation-minimum-interval", o.SnapshotInterval, "Minimum age of the latest resource snapshot of a placement before changes create another one. If 0, there is no minimum age.")
	flags.DurationVar(&o.CollectionDuration, "resource-changes-collection-duration", o.CollectionDuration, "Time to collect changes of the selected resources, from the first change, before a resource snapshot is created. If 0, a snapshot is created at once.")
	flags.StringVar(&o.SkippedAPIs, "skipped-propagating-apis", o.SkippedAPIs, "Kinds that are never placed, in KubeFleet's format: entries end with a semicolon and are group, group/version or group/version/Kind,Kind; v1/Kind for the core group. Members lose placed objects of these kinds.")
	flags.StringVar(&o.AllowedAPIs, "allowed-propagating-apis", o.AllowedAPIs, "The only kinds that are placed, in the same format, besides Namespaces and envelopes. Cannot be combined with --skipped-propagating-apis. If unset, all kinds are placed.")
	flags.StringVar(&o.SkippedNamespaces, "skipped-propagating-namespaces", o.SkippedNamespaces, "Namespaces that are never placed, with their content, separated by semicolons or commas. A placement that selects one reports it in its status.")
}

// Filter leaves kinds and namespaces out of all placements.
func (o *Placement) Filter() (selection.Filter, error) {
	return selection.ParseFilter(o.SkippedAPIs, o.AllowedAPIs, o.SkippedNamespaces)
}

// Validate returns every error at once.
func (o *Placement) Validate() []error {
	all := []error{known("--authorize-authors", []string{o.AuthorizeAuthors}, []string{authorizeOn, authorizeOff}),
		known("--placement-tenancy", []string{o.Tenancy}, []string{tenancyOff, tenancyClusterSets})}
	if _, err := o.Filter(); err != nil {
		all = append(all, err)
	}
	if o.SnapshotInterval < 0 {
		all = append(all, fmt.Errorf("--resource-snapshot-creation-minimum-interval %s is negative", o.SnapshotInterval))
	}
	if o.ManifestLimit <= 0 {
		all = append(all, fmt.Errorf("--manifest-limit %d leaves no room for a manifest", o.ManifestLimit))
	}
	if o.CollectionDuration < 0 {
		all = append(all, fmt.Errorf("--resource-changes-collection-duration %s is negative", o.CollectionDuration))
	}
	if err := oci.ParseAllowed(o.HelmChartRegistries); err != nil {
		all = append(all, fmt.Errorf("--helm-chart-registries: %w", err))
	}
	if len(o.HelmChartRegistries) > 0 && !o.HelmCharts {
		all = append(all, errors.New("--helm-chart-registries has no effect without --helm-charts"))
	}
	if o.HelmChartCredentials == "" {
		return all
	}
	if len(o.HelmChartRegistries) == 0 {
		all = append(all, errors.New("--helm-chart-credentials has no effect without --helm-chart-registries"))
	}
	if _, err := oci.ReadCredentials(o.HelmChartCredentials); err != nil {
		all = append(all, fmt.Errorf("--helm-chart-credentials: %w", err))
	}
	return all
}

// LimitsTenants is true if ResourcePlacements place only on members of sets that are bound to
// their namespaces.
func (o *Placement) LimitsTenants() bool { return o.Tenancy == tenancyClusterSets }

// TrustsAuthors is true if the authors of placements and overrides are not checked.
func (o *Placement) TrustsAuthors() bool { return o.AuthorizeAuthors == authorizeOff }
