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
	"fleetgate.io/fleetgate/pkg/webhook/rules"
)

// Whether the authors of placements and overrides are asked.
const (
	authorizeOn  = "on"
	authorizeOff = "off"
)

// Whether something limits where ResourcePlacements may place.
const (
	tenancyOff         = "off"
	tenancyClusterSets = "cluster-sets"
)

// Placement says what may be placed, and of whom.
type Placement struct {
	// ConfigMapEnvelopes takes annotated ConfigMaps for envelopes.
	ConfigMapEnvelopes bool
	// HelmCharts renders annotated ConfigMaps and Secrets.
	HelmCharts bool
	// HelmChartRegistries are those from which charts may be fetched.
	HelmChartRegistries []string
	// HelmChartCredentials is a file with what to prove to them.
	HelmChartCredentials string
	// AuthorizeAuthors says whether the authors of placements and overrides are asked.
	AuthorizeAuthors string
	// Tenancy says what limits where ResourcePlacements may place.
	Tenancy string
	// StandardDecisions publishes all placements' decisions, not only those that ask for it.
	StandardDecisions bool
	// StrictEnvelopes refuses envelopes with an object that cannot be placed from them.
	StrictEnvelopes bool
	// ManifestLimit is how many bytes the manifests of a ManifestWork may have.
	ManifestLimit int
	// SnapshotInterval is how old the latest resource snapshot must be before another follows.
	SnapshotInterval time.Duration
	// CollectionDuration is how long after the first change another follows.
	CollectionDuration time.Duration
	// SkippedAPIs, AllowedAPIs and SkippedNamespaces leave kinds and namespaces out of all placements.
	SkippedAPIs, AllowedAPIs, SkippedNamespaces string
}

func newPlacement() Placement {
	return Placement{AuthorizeAuthors: authorizeOn, Tenancy: tenancyOff, ManifestLimit: rules.DefaultManifestLimit}
}

// AddFlags binds the options to a command line.
func (o *Placement) AddFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.ConfigMapEnvelopes, "configmap-envelopes", o.ConfigMapEnvelopes, "Take ConfigMaps with annotation "+placementv1beta1.ConfigMapEnvelopeAnnotation+"=true for envelopes, as hubs of 2023 did. Nobody checks what is in them: who may write ConfigMaps in a namespace that is placed decides then what members get.")
	flags.BoolVar(&o.HelmCharts, "helm-charts", o.HelmCharts, "Render the Helm charts in ConfigMaps and Secrets with annotation "+placementv1beta1.HelmChartAnnotation+" for each member that they are placed on. Who writes that annotation needs the verb "+placementv1beta1.RenderVerb+" on the object.")
	flags.StringSliceVar(&o.HelmChartRegistries, "helm-chart-registries", o.HelmChartRegistries, "With --helm-charts: OCI registries, with the beginning of the repository if need be (ghcr.io/acme/charts), from which charts may be fetched; one that begins with http:// is asked without TLS. Empty: none.")
	flags.StringVar(&o.HelmChartCredentials, "helm-chart-credentials", o.HelmChartCredentials, "With --helm-chart-registries: file with the credentials of those that are private, as helm registry login writes it and a Secret of type kubernetes.io/dockerconfigjson holds it. It may be replaced at any time.")
	flags.StringVar(&o.AuthorizeAuthors, "authorize-authors", o.AuthorizeAuthors, "on: who writes a placement may get, list or "+placementv1beta1.PlaceVerb+" what it selects, who writes an override may update it, and who writes a ManifestWorkReplicaSet may create what is in its template. off: nobody is asked, and who may write placements in a namespace has all that is in it.")
	flags.StringVar(&o.Tenancy, "placement-tenancy", o.Tenancy, "cluster-sets: a ResourcePlacement places only on members in ManagedClusterSets that are bound to its namespace; needs registration among --ocm. off: on all members.")
	flags.BoolVar(&o.StandardDecisions, "standard-decisions", o.StandardDecisions, "Publish for which members every ClusterResourcePlacement and ResourcePlacement is, as PlacementDecisions of "+multiclusterv1alpha1.GroupName+" that name ClusterProfiles; needs clusterprofile among --apis. Else those with annotation "+multiclusterv1alpha1.AnnotationStandardDecisions+"=true have them.")
	flags.BoolVar(&o.StrictEnvelopes, "strict-envelopes", o.StrictEnvelopes, "Refuse an envelope with an object that cannot be placed from it: one of another namespace, or of none in a ResourceEnvelope, and one with generateName and no name. Else its author is warned, and placements with it say why it is not placed.")
	flags.IntVar(&o.ManifestLimit, "manifest-limit", o.ManifestLimit, "How many bytes the manifests of a ManifestWork, or of a ManifestWorkReplicaSet's template, may have together.")
	flags.DurationVar(&o.SnapshotInterval, "resource-snapshot-creation-minimum-interval", o.SnapshotInterval, "How old a placement's latest resource snapshot must be before changes of what is selected make another. 0: they wait for no such time.")
	flags.DurationVar(&o.CollectionDuration, "resource-changes-collection-duration", o.CollectionDuration, "How long after the first change of what a placement selects a resource snapshot is made, with all that has changed until then. 0: at once.")
	flags.StringVar(&o.SkippedAPIs, "skipped-propagating-apis", o.SkippedAPIs, "Kinds that are never placed, as KubeFleet's hub takes them: entries end with a semicolon and are group, group/version or group/version/Kind,Kind; v1/Kind for the core group. Members lose what they have of them.")
	flags.StringVar(&o.AllowedAPIs, "allowed-propagating-apis", o.AllowedAPIs, "The only kinds that are placed, in the same form, beside Namespaces and envelopes. Excludes --skipped-propagating-apis. If unset, all kinds are placed.")
	flags.StringVar(&o.SkippedNamespaces, "skipped-propagating-namespaces", o.SkippedNamespaces, "Namespaces that are never placed, with what is in them, separated by semicolons or commas. A placement that selects one is refused in its status.")
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
		all = append(all, errors.New("--helm-chart-registries does nothing without --helm-charts"))
	}
	if o.HelmChartCredentials == "" {
		return all
	}
	if len(o.HelmChartRegistries) == 0 {
		all = append(all, errors.New("--helm-chart-credentials does nothing without --helm-chart-registries"))
	}
	if _, err := oci.ReadCredentials(o.HelmChartCredentials); err != nil {
		all = append(all, fmt.Errorf("--helm-chart-credentials: %w", err))
	}
	return all
}

// LimitsTenants is true where ResourcePlacements place only on members of sets that are bound to
// their namespaces.
func (o *Placement) LimitsTenants() bool { return o.Tenancy == tenancyClusterSets }

// TrustsAuthors is true where the authors of placements and overrides are not asked.
func (o *Placement) TrustsAuthors() bool { return o.AuthorizeAuthors == authorizeOff }
