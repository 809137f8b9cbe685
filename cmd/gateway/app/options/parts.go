// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/sets"

	"fleetgate.io/fleetgate/pkg/install"
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
)

func allOCM() []string { return []string{OCMWorks, OCMPlacement, OCMRegistration} }

// defaultOCM is what is served by default. Other parts stay with the product that the hub
// used before, and need no rights that the role of the previous gateway lacks.
func defaultOCM() []string { return []string{OCMWorks} }

func allComponents() []string {
	return []string{ComponentProxy, ComponentWebhook, ComponentControllers}
}

func defaultAPIs() []string {
	return []string{APIFleet, APIRancher, APIMSA, APIGateway, APIProfile, APIAdmission}
}

// allAPIs are the allowed values of --apis.
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

// Parts selects the components of this process and their APIs.
type Parts struct {
	Components []string
	APIs       []string
	// OCM are the parts of the family APIOCM to serve. Open Cluster Management's own
	// controllers can serve the others.
	OCM []string
}

func newParts() Parts {
	return Parts{Components: allComponents(), APIs: defaultAPIs(), OCM: defaultOCM()}
}

// AddFlags binds the options to a command line.
func (o *Parts) AddFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.Components, "components", o.Components, "Components to run in this process.")
	flags.StringSliceVar(&o.APIs, "apis", o.APIs, "API families to install and serve.")
	flags.StringSliceVar(&o.OCM, "ocm", o.OCM, "With ocm in --apis: parts of the Open Cluster Management API to serve. works: ManifestWorks and ManifestWorkReplicaSets. placement: decisions of Placements. registration: ManagedClusters, ManagedClusterSets and the agents of clusters. OCM's own controllers serve the other parts and can run next to this gateway.")
}

// Validate returns every error at once.
func (o *Parts) Validate() []error {
	all := []error{known("--components", o.Components, allComponents()), known("--apis", o.APIs, allAPIs()), known("--ocm", o.OCM, allOCM())}
	for api, needed := range apiNeeds() {
		if missing := sets.New(needed...).Difference(sets.New(o.APIs...)); o.Serves(api) && missing.Len() > 0 {
			all = append(all, fmt.Errorf("--apis: %s needs %s", api, strings.Join(sets.List(missing), " and ")))
		}
	}
	return all
}

// Runs is true if this process runs a component, one of the constants above.
func (o *Parts) Runs(component string) bool { return slices.Contains(o.Components, component) }

// Serves is true if a family of APIs, one of the constants above, is installed and served.
func (o *Parts) Serves(api string) bool { return slices.Contains(o.APIs, api) }

// ServesOCM is true if a part of family APIOCM, one of the constants above, is served.
func (o *Parts) ServesOCM(part string) bool { return o.Serves(APIOCM) && slices.Contains(o.OCM, part) }

// ServesProxy is true if this process proxies requests to members.
func (o *Parts) ServesProxy() bool { return o.Runs(ComponentProxy) && o.Serves(APIGateway) }

// TakesReviews is true if this process answers the API server's reviews.
func (o *Parts) TakesReviews() bool {
	return o.Runs(ComponentWebhook) && (o.Serves(APIFleet) || o.Serves(APIAdmission) || o.ServesOCM(OCMWorks) || o.ServesOCM(OCMRegistration))
}

// LeaseName is the name of the leader Lease. Gateways with different components do not
// compete, because each set of components has its own leader.
func (o *Parts) LeaseName() string {
	const all = install.LeaderLease
	if sets.New(o.Components...).HasAll(allComponents()...) {
		return all
	}
	return all + "-" + strings.Join(sets.List(sets.New(o.Components...)), "-")
}
