// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Members returns what protects what belongs to the hub where RBAC has no words for it.
// It holds whatever guard rails were chosen. Exempt is who may bypass, but for what says
// otherwise.
func Members(p Parameters) []client.Object {
	return p.objects("member-token-requests", "member-secrets", "member-works", "member-identities", "member-namespaces", "reserved-keys", "bypassed-rules")
}

// Deliveries returns what keeps snapshots, bindings, Works and the status of update runs the
// gateway's.
func Deliveries(p Parameters) []client.Object { return p.objects("deliveries", "run-status") }

// MemberBounds returns what bounds how much members' agents write.
func MemberBounds() []client.Object {
	return Parameters{}.objects("member-sizes")
}

// ServiceAccounts returns what bounds the Secrets that members' agents write.
func ServiceAccounts() []client.Object { return Parameters{}.objects("agent-secrets") }

// Registration returns what keeps a MemberCluster that of the Cluster it was made for.
func Registration() []client.Object { return Parameters{}.objects("membercluster-origin") }

// Identities returns what asks for a right of its own before a MemberCluster names another
// identity than the member's own account, and before a stored kubeconfig installs an agent of
// somebody's choice, and what bounds requests to register.
func Identities(p Parameters) []client.Object {
	return p.objects("member-subjects", "imported-agents", "registrations")
}

// Gateway returns what limits the gateway's own account.
func Gateway(p Parameters) []client.Object { return p.objects("gateway-account") }

// Klusterlets returns what keeps agents of Open Cluster Management to what is theirs, and what asks for
// a right before one installs an agent of ours.
func Klusterlets() []client.Object {
	return Parameters{}.objects("klusterlets", "klusterlet-requests", "agent-add-ons")
}

// Orphans returns the policy against deletions of placements that would not keep what their author wants to
// keep.
func Orphans() []client.Object { return Parameters{}.objects("orphaned-placements") }

// HelmCharts returns what asks for a right of its own before a chart is rendered.
func HelmCharts() []client.Object { return Parameters{}.objects("helm-charts") }

// ManifestWorks returns what keeps ManifestWorks the hub's, where agents may update them, and
// leaves a trace of those that no webhook checked.
func ManifestWorks() []client.Object {
	return Parameters{}.objects("manifestworks", "bypassed-works")
}

// Authors returns what keeps the answers about the authors of placements the gateway's.
func Authors() []client.Object { return Parameters{}.objects("placement-authors") }

// Definitions returns the policy that protects the gateway's CustomResourceDefinitions. It does not answer
// users whom the guard rails refuse.
func Definitions(guardRails GuardRails) []client.Object {
	reference := guardRails == GuardRailsReference || guardRails == GuardRailsReferenceWorkloads
	return Parameters{referenceMode: reference}.objects("definitions")
}

// GuardRails is how far the hub is kept from mistakes of people who have the right
// to make them.
type GuardRails string

const (
	// GuardRailsOff keeps the hub from nothing.
	GuardRailsOff GuardRails = "off"
	// GuardRailsSelected keeps Pods and ReplicaSets out of namespaces that a
	// ClusterResourcePlacement selects with what is in them: a placed Deployment
	// would run on the hub too.
	GuardRailsSelected GuardRails = "selected"
	// GuardRailsReference does what users of the public API know: no Pods and
	// ReplicaSets on the hub but in reserved namespaces; reserved namespaces, the
	// fleet's CustomResourceDefinitions and its members are for administrators and
	// the cluster's own components.
	GuardRailsReference GuardRails = "reference"
	// GuardRailsReferenceWorkloads is the same without the first, as users of the public API
	// know it where the hub has workloads of its own.
	GuardRailsReferenceWorkloads GuardRails = "reference-with-workloads"
)

// AllGuardRails are the modes, in the order of how much they keep away.
func AllGuardRails() []GuardRails {
	return []GuardRails{GuardRailsOff, GuardRailsSelected, GuardRailsReference, GuardRailsReferenceWorkloads}
}

// Of returns the policies of a mode. They answer before any webhook does, with the
// sentences that clients compare, so no webhook stands beside them.
func (mode GuardRails) Of(p Parameters) []client.Object {
	switch mode {
	case GuardRailsSelected:
		return p.objects("selected-workloads", "refused-workload-events")
	case GuardRailsReference:
		return append(p.objects("guard-workloads", "refused-workload-events"), GuardRailsReferenceWorkloads.Of(p)...)
	case GuardRailsReferenceWorkloads:
		return p.objects("guard-definitions", "guard-namespaces", "guard-reserved-namespaces", "guard-service-accounts", "guard-member-objects", "guard-members")
	default:
		return nil
	}
}

// Obsolete returns what other modes have put on the hub and this one has not.
func (mode GuardRails) Obsolete(p Parameters) []client.Object {
	var obsolete []client.Object
	known := map[string]bool{}
	for _, wanted := range mode.Of(p) {
		known[kindAndName(wanted)] = true
	}
	for _, other := range AllGuardRails() {
		for _, object := range other.Of(p) {
			if !known[kindAndName(object)] {
				known[kindAndName(object)] = true
				obsolete = append(obsolete, object)
			}
		}
	}
	return obsolete
}

func kindAndName(object client.Object) string {
	return fmt.Sprintf("%T %s", object, object.GetName())
}

// ConfirmDelete says what happens when something is deleted that reaches many members,
// and is not confirmed.
type ConfirmDelete string

const (
	// ConfirmDeleteOff lets it pass.
	ConfirmDeleteOff ConfirmDelete = "off"
	// ConfirmDeleteWarn lets it pass with a warning.
	ConfirmDeleteWarn ConfirmDelete = "warn"
	// ConfirmDeleteDeny refuses it.
	ConfirmDeleteDeny ConfirmDelete = "deny"
)

// ConfirmDeleteAnnotation with the value "true" on the object confirms that it may be
// deleted.
const ConfirmDeleteAnnotation = "fleetgate.io/confirm-delete"

// AllConfirmDelete are the modes that there are.
func AllConfirmDelete() []ConfirmDelete {
	return []ConfirmDelete{ConfirmDeleteOff, ConfirmDeleteWarn, ConfirmDeleteDeny}
}

// Of returns the policies of a mode, for deletions of a placement on more than
// ConfirmDeleteMembers members, and of a namespace that a ClusterResourcePlacement
// selects.
func (mode ConfirmDelete) Of(p Parameters) []client.Object {
	return mode.named(p, "confirm-delete-placements", "confirm-delete-namespaces")
}

// OfDecisions returns those for deletions of a Placement of Open Cluster Management that has
// more than ConfirmDeleteMembers clusters.
func (mode ConfirmDelete) OfDecisions(p Parameters) []client.Object {
	return mode.named(p, "confirm-delete-decisions")
}

// OfClusters returns those for deletions of the namespace of a ManagedCluster.
func (mode ConfirmDelete) OfClusters() []client.Object {
	return mode.named(Parameters{}, "confirm-delete-clusters")
}

func (mode ConfirmDelete) named(p Parameters, names ...string) []client.Object {
	if mode != ConfirmDeleteWarn && mode != ConfirmDeleteDeny {
		return nil
	}
	objects := p.objects(names...)
	if mode == ConfirmDeleteWarn {
		for _, object := range objects {
			if binding, ok := object.(*admissionregistrationv1.ValidatingAdmissionPolicyBinding); ok {
				binding.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn}
			}
		}
	}
	return objects
}

// Obsolete returns what another mode has put on the hub and this one has not.
func (mode ConfirmDelete) Obsolete() []client.Object {
	if mode == ConfirmDeleteWarn || mode == ConfirmDeleteDeny {
		return nil
	}
	return slices.Concat(ConfirmDeleteDeny.Of(Parameters{}), ConfirmDeleteDeny.OfDecisions(Parameters{}), ConfirmDeleteDeny.OfClusters())
}
