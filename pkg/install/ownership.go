// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
)

// ForeignObjectError reports that an object with the wanted name exists on the hub and has a foreign
// owner.
type ForeignObjectError struct {
	Kind, Name string
	// Owner is the object's author, as far as the object shows it.
	Owner string
	// Running is the Lease of an owner that is still running; empty if there is none.
	Running string
}

func (e *ForeignObjectError) Error() string {
	if e.Running != "" {
		return fmt.Sprintf("%s %s belongs to %s, which is running (Lease %s): stop it before the gateway adopts its objects", e.Kind, e.Name, e.Owner, e.Running)
	}
	return fmt.Sprintf("%s %s is on this hub already and belongs to %s: remove that product, or stop it and start the gateway with --adopt", e.Kind, e.Name, e.Owner)
}

// ours reports whether a gateway wrote the object.
func ours(object metav1.Object) bool { return object.GetLabels()[LabelManagedBy] == ManagedBy }

// ownerOf describes the owner of an object from its metadata.
func ownerOf(object metav1.Object) string {
	if release := object.GetAnnotations()["meta.helm.sh/release-name"]; release != "" {
		return fmt.Sprintf("Helm release %s/%s", object.GetAnnotations()["meta.helm.sh/release-namespace"], release)
	}
	if manager := object.GetLabels()[LabelManagedBy]; manager != "" {
		return manager
	}
	for _, fields := range object.GetManagedFields() {
		if fields.Subresource == "" { // The API server itself writes the status.
			return fmt.Sprintf("field manager %q", fields.Manager)
		}
	}
	return "somebody else"
}

// newer reports whether the installed version is above ours. Unreadable versions count as older,
// because they are not of a released gateway.
func newer(installed, our string) bool {
	theirs, err := version.ParseSemantic(installed)
	if err != nil {
		return false
	}
	mine, err := version.ParseSemantic(our)
	return err == nil && mine.LessThan(theirs)
}

// product is another product with objects that a gateway installs too, or a part of it that runs
// separately.
type product struct {
	// groups are its APIs. names are its webhook configurations, and its definitions in shared groups.
	groups, names []string
	// leases show that it is running.
	leases []types.NamespacedName
}

// otherProducts are the products whose APIs the gateway serves, as their charts install them.
var otherProducts = []product{
	{
		groups: []string{"cluster.kubernetes-fleet.io", "placement.kubernetes-fleet.io"},
		names:  []string{"fleet-mutating-webhook-configuration", "fleet-validating-webhook-configuration"},
		leases: []types.NamespacedName{{Namespace: "fleet-system", Name: "136224848560.hub.fleet.azure.com"}},
	},
	{
		groups: []string{"fleet.cattle.io"},
		leases: []types.NamespacedName{
			{Namespace: "cattle-fleet-system", Name: "fleet-controller-lock"},
			{Namespace: "cattle-fleet-system", Name: "fleet-agentmanagement-lock"},
		},
	},
	{
		groups: []string{"authentication.open-cluster-management.io"},
		leases: []types.NamespacedName{{Namespace: "open-cluster-management-addon", Name: "managed-serviceaccount-addon-manager"}},
	},
	{
		groups: []string{"cluster.core.oam.dev"},
		leases: []types.NamespacedName{{Namespace: "vela-system", Name: "kubevela-core-leader"}},
	},
	{
		names: []string{
			"managedclusters.cluster.open-cluster-management.io", "managedclustersets.cluster.open-cluster-management.io",
			"managedclustersetbindings.cluster.open-cluster-management.io",
			"managedclustermutators.admission.cluster.open-cluster-management.io", "managedclustervalidators.admission.cluster.open-cluster-management.io",
			"managedclustersetbindingvalidators.admission.cluster.open-cluster-management.io",
		},
		leases: ocmLeases("registration-controller-lock"),
	},
	{
		names: []string{
			"placements.cluster.open-cluster-management.io", "placementdecisions.cluster.open-cluster-management.io",
			"addonplacementscores.cluster.open-cluster-management.io",
		},
		leases: ocmLeases("placement-lock"),
	},
	{
		groups: []string{"work.open-cluster-management.io"},
		names:  []string{"manifestworkvalidators.admission.work.open-cluster-management.io"},
		leases: ocmLeases("work-manager-lock"),
	},
	{
		groups: []string{"addon.open-cluster-management.io"},
		leases: ocmLeases("manager-lock"),
	},
}

// ocmLeases are the Leases of a controller of Open Cluster Management, and of the operator that would
// re-create its objects.
func ocmLeases(controller string) []types.NamespacedName {
	return []types.NamespacedName{
		{Namespace: "open-cluster-management-hub", Name: controller},
		{Namespace: "open-cluster-management", Name: "clustermanager-lock"},
	}
}

// leasesOf returns the Leases to check before an object with that name is adopted. The name is a
// CustomResourceDefinition's `plural.group`, an APIService's `version.group`, or a webhook
// configuration's own.
func leasesOf(name string) []types.NamespacedName {
	var found []types.NamespacedName
	for _, other := range otherProducts {
		inGroup := func(group string) bool { return strings.HasSuffix(name, "."+group) }
		if slices.ContainsFunc(other.groups, inGroup) || slices.Contains(other.names, name) {
			found = append(found, other.leases...)
		}
	}
	return found
}

// isHeld reports whether a Lease has a holder that renewed it within its duration.
func isHeld(lease *coordinationv1.Lease, now time.Time) bool {
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" || lease.Spec.RenewTime == nil {
		return false
	}
	const fallback = 15
	seconds := int32(fallback)
	if lease.Spec.LeaseDurationSeconds != nil {
		seconds = cmp.Or(*lease.Spec.LeaseDurationSeconds, fallback)
	}
	return now.Before(lease.Spec.RenewTime.Add(time.Duration(seconds) * time.Second))
}
