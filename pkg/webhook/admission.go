// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/webhook/policies"
)

// Admission is what the hub's API server admits by, of the parts that were chosen: policies,
// which it evaluates itself, and the configurations that send reviews to the gateway.
type Admission struct {
	// Parameters are what the policies say of this gateway.
	Parameters policies.Parameters
	// Administrator says that the gateway's account is somebody's who may do everything:
	// no policy limits it.
	Administrator bool
	GuardRails    policies.GuardRails
	ConfirmDelete policies.ConfirmDelete
	// Fleet says that placements are served.
	Fleet bool
	// Reviewed says that a gateway answers reviews of them.
	Reviewed bool
	// Works says that a gateway answers reviews of ManifestWorks.
	Works bool
	// Decisions says that a gateway decides for Placements of Open Cluster Management.
	Decisions bool
	// Klusterlets says that clusters with agents of Open Cluster Management are let in.
	Klusterlets bool
	// Clusters says that a gateway answers reviews of ManagedClusters.
	Clusters bool
}

// Wanted is what belongs on the hub when reviews go to the endpoint.
func (a Admission) Wanted(reviews Endpoint) []client.Object {
	objects := slices.Concat(policies.Members(a.Parameters), policies.Identities(a.Parameters), policies.MemberBounds(), policies.ServiceAccounts(), policies.Registration(),
		policies.Definitions(a.GuardRails))
	if !a.Administrator {
		objects = append(objects, policies.Gateway(a.Parameters)...)
	}
	if a.Works {
		objects = slices.Concat(objects, WorkConfigurations(reviews), policies.ManifestWorks())
	}
	if a.Clusters {
		objects = append(objects, ClusterConfigurations(reviews)...)
	}
	if a.Klusterlets {
		objects = slices.Concat(objects, policies.Klusterlets(), a.ConfirmDelete.OfClusters())
	}
	if a.Decisions {
		objects = append(objects, a.ConfirmDelete.OfDecisions(a.Parameters)...)
	}
	if !a.Fleet {
		return objects
	}
	objects = slices.Concat(objects, a.GuardRails.Of(a.Parameters), a.ConfirmDelete.Of(a.Parameters),
		policies.HelmCharts(), policies.Deliveries(a.Parameters), policies.Authors(), policies.Orphans())
	if a.Reviewed {
		objects = append(objects, Configurations(reviews)...)
	}
	return objects
}

// Obsolete is what another choice has put on the hub and this one has not.
func (a Admission) Obsolete() []client.Object {
	obsolete := slices.Concat(a.GuardRails.Obsolete(a.Parameters), a.ConfirmDelete.Obsolete())
	if a.Administrator {
		obsolete = append(obsolete, policies.Gateway(a.Parameters)...)
	}
	if !a.Works {
		// They would refuse what nobody here looks at.
		obsolete = append(obsolete, WorkConfigurations(Endpoint{})...)
	}
	if !a.Clusters {
		obsolete = append(obsolete, ClusterConfigurations(Endpoint{})...)
	}
	return obsolete
}
