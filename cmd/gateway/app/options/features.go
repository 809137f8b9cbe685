// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	configv1alpha1 "fleetgate.io/fleetgate/pkg/apis/config/v1alpha1"
	"fleetgate.io/fleetgate/pkg/install"
	"fleetgate.io/fleetgate/pkg/kube/configfile"
)

// Components that can run in separate processes.
const (
	ComponentProxy       = "proxy"
	ComponentWebhook     = "webhook"
	ComponentControllers = "controllers"
)

// API families that the gateway can serve.
const (
	APIFleet     = "fleet"
	APIRancher   = "rancher"
	APIMSA       = "msa"
	APIGateway   = "gateway"
	APIProfile   = "clusterprofile"
	APIAdmission = "admission"
	APIAzure     = "fleet-azure"
	APIOCM       = "ocm"
)

// Parts of the family APIOCM.
const (
	// OCMWorks is ManifestWorks and ManifestWorkReplicaSets.
	OCMWorks = "works"
	// OCMPlacement is Placements, PlacementDecisions and AddOnPlacementScores.
	OCMPlacement = "placement"
	// OCMRegistration is ManagedClusters and sets of them, and the agents of clusters.
	OCMRegistration = "registration"
	// OCMAddOns is ClusterManagementAddOns, ManagedClusterAddOns and their configurations.
	OCMAddOns = "addons"
)

func allOCM() []string { return []string{OCMWorks, OCMPlacement, OCMRegistration, OCMAddOns} }

// defaultOCM is what is served by default. Other parts stay with the product that the hub
// used before, and need no rights that the role of the previous gateway lacks.
func defaultOCM() []string { return []string{OCMWorks} }

func allComponents() []string {
	return []string{ComponentProxy, ComponentWebhook, ComponentControllers}
}

func defaultAPIs() []string {
	return []string{APIFleet, APIRancher, APIMSA, APIGateway, APIProfile, APIAdmission}
}

// allAPIs are the allowed values of features.apis.
func allAPIs() []string { return append(defaultAPIs(), APIAzure, APIOCM) }

// apiNeeds returns the dependencies of families: registrations and the proxy need the
// inventory, and the proxy needs the tokens of its account.
func apiNeeds() map[string][]string {
	return map[string][]string{
		APIRancher: {APIFleet},
		APIMSA:     {APIFleet},
		APIGateway: {APIFleet, APIMSA},
		APIProfile: {APIFleet},
		APIAzure:   {APIFleet},
	}
}

// Features selects the components of this process and their APIs.
type Features struct {
	*configv1alpha1.FeaturesConfiguration
}

func defaultFeatures() configv1alpha1.FeaturesConfiguration {
	return configv1alpha1.FeaturesConfiguration{Components: allComponents(), APIs: defaultAPIs(), OCM: defaultOCM()}
}

// AddFlags binds the options to a command line.
func (o *Features) AddFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.Components, "components", o.Components, "Components to run in this process.")
	flags.StringSliceVar(&o.APIs, "apis", o.APIs, "API families to install and serve.")
	flags.StringSliceVar(&o.OCM, "ocm", o.OCM, "With ocm in --apis: parts of the Open Cluster Management API to serve: works, placement, registration, addons.")
	configfile.Override(flags, "components", "features.components")
	configfile.Override(flags, "apis", "features.apis")
	configfile.Override(flags, "ocm", "features.ocm")
}

// Validate returns every error at once.
func (o *Features) Validate() field.ErrorList {
	at := field.NewPath("features")
	all := configfile.SomeOf(at.Child("components"), o.Components, allComponents())
	all = append(all, configfile.SomeOf(at.Child("apis"), o.APIs, allAPIs())...)
	all = append(all, configfile.SomeOf(at.Child("ocm"), o.OCM, allOCM())...)
	for api, needed := range apiNeeds() {
		if missing := sets.New(needed...).Difference(sets.New(o.APIs...)); o.Serves(api) && missing.Len() > 0 {
			all = append(all, field.Required(at.Child("apis"), api+" needs "+strings.Join(sets.List(missing), " and ")))
		}
	}
	return all
}

// Runs is true if this process runs a component, one of the constants above.
func (o *Features) Runs(component string) bool { return slices.Contains(o.Components, component) }

// Serves is true if a family of APIs, one of the constants above, is installed and served.
func (o *Features) Serves(api string) bool { return slices.Contains(o.APIs, api) }

// ServesOCM is true if a part of family APIOCM, one of the constants above, is served.
func (o *Features) ServesOCM(part string) bool {
	return o.Serves(APIOCM) && slices.Contains(o.OCM, part)
}

// ServesProxy is true if this process proxies requests to members.
func (o *Features) ServesProxy() bool { return o.Runs(ComponentProxy) && o.Serves(APIGateway) }

// TakesReviews is true if this process answers the API server's reviews.
func (o *Features) TakesReviews() bool {
	return o.Runs(ComponentWebhook) && (o.Serves(APIFleet) || o.Serves(APIAdmission) || o.ServesOCM(OCMWorks) || o.ServesOCM(OCMRegistration) || o.ServesOCM(OCMAddOns))
}

// LeaseName is the name of the leader Lease. Gateways with different components do not
// compete, because each set of components has its own leader.
func (o *Features) LeaseName() string {
	const all = install.LeaderLease
	if sets.New(o.Components...).HasAll(allComponents()...) {
		return all
	}
	return all + "-" + strings.Join(sets.List(sets.New(o.Components...)), "-")
}
