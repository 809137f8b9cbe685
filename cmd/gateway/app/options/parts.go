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

// The parts of the gateway that can run apart.
const (
	ComponentProxy       = "proxy"
	ComponentWebhook     = "webhook"
	ComponentControllers = "controllers"
)

// The families of APIs that the gateway can serve.
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

// The parts of family APIOCM.
const (
	// OCMWorks is ManifestWorks and ManifestWorkReplicaSets.
	OCMWorks = "works"
	// OCMPlacement is Placements, PlacementDecisions and AddOnPlacementScores.
	OCMPlacement = "placement"
	// OCMRegistration is ManagedClusters and sets of them, and the agents of clusters.
	OCMRegistration = "registration"
)

func allOCM() []string { return []string{OCMWorks, OCMPlacement, OCMRegistration} }

// defaultOCM is what is served unless somebody asks for more: what a hub had another product do
// goes on being that one's, and no right is asked for that the role of the gateway before lacks.
func defaultOCM() []string { return []string{OCMWorks} }

func allComponents() []string {
	return []string{ComponentProxy, ComponentWebhook, ComponentControllers}
}

func defaultAPIs() []string {
	return []string{APIFleet, APIRancher, APIMSA, APIGateway, APIProfile, APIAdmission}
}

// allAPIs are those that somebody may ask for.
func allAPIs() []string { return append(defaultAPIs(), APIAzure, APIOCM) }

// apiNeeds says which families build on which others: registrations and the
// proxy on the inventory, the proxy on the tokens of its account.
func apiNeeds() map[string][]string {
	return map[string][]string{
		APIRancher: {APIFleet},
		APIMSA:     {APIFleet},
		APIGateway: {APIFleet, APIMSA},
		APIProfile: {APIFleet},
		APIAzure:   {APIFleet},
	}
}

// Parts say what of the gateway runs in this process, and for which APIs.
type Parts struct {
	Components []string
	APIs       []string
	// OCM are the parts of family APIOCM that are served if that is: others are left to
	// Open Cluster Management's own controllers, or to nobody.
	OCM []string
}

func newParts() Parts {
	return Parts{Components: allComponents(), APIs: defaultAPIs(), OCM: defaultOCM()}
}

// AddFlags binds the options to a command line.
func (o *Parts) AddFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.Components, "components", o.Components, "Parts to run in this process.")
	flags.StringSliceVar(&o.APIs, "apis", o.APIs, "Families of APIs to install and serve.")
	flags.StringSliceVar(&o.OCM, "ocm", o.OCM, "With ocm among --apis: which parts of Open Cluster Management's API. works: ManifestWorks and ManifestWorkReplicaSets. placement: which clusters Placements are for. registration: ManagedClusters, sets of them, and the agents of clusters. The rest is left to its own controllers, which may run beside this gateway.")
}

// Validate returns every error at once.
func (o *Parts) Validate() []error {
	all := []error{known("--components", o.Components, allComponents()), known("--apis", o.APIs, allAPIs()), known("--ocm", o.OCM, allOCM())}
	for api, needed := range apiNeeds() {
		if missing := sets.New(needed...).Difference(sets.New(o.APIs...)); o.Serves(api) && missing.Len() > 0 {
			all = append(all, fmt.Errorf("--apis: %s does not work without %s", api, strings.Join(sets.List(missing), " and ")))
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

// ServesProxy is true if this process is the way into members.
func (o *Parts) ServesProxy() bool { return o.Runs(ComponentProxy) && o.Serves(APIGateway) }

// TakesReviews is true if this process answers the API server's reviews.
func (o *Parts) TakesReviews() bool {
	return o.Runs(ComponentWebhook) && (o.Serves(APIFleet) || o.Serves(APIAdmission) || o.ServesOCM(OCMWorks) || o.ServesOCM(OCMRegistration))
}

// LeaseName is the Lease of the leader. Gateways that run different components
// do not compete: each set has a leader of its own.
func (o *Parts) LeaseName() string {
	const all = install.LeaderLease
	if sets.New(o.Components...).HasAll(allComponents()...) {
		return all
	}
	return all + "-" + strings.Join(sets.List(sets.New(o.Components...)), "-")
}
