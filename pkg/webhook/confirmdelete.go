// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"

	k8sadmissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

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

// ConfirmDeleteAnnotation, with the value "true" on the object, confirms that it may be
// deleted.
const ConfirmDeleteAnnotation = "fleetgate.io/confirm-delete"

// AllConfirmDelete are the modes that there are.
func AllConfirmDelete() []ConfirmDelete {
	return []ConfirmDelete{ConfirmDeleteOff, ConfirmDeleteWarn, ConfirmDeleteDeny}
}

// ConfirmDeletePolicies returns the ValidatingAdmissionPolicies, with their bindings, for
// deletions of a placement on more than that many members, and of a namespace that a
// ClusterResourcePlacement selects. Both fail open: they stand against mistakes, and a
// namespace whose deletion hangs because of one is another.
func ConfirmDeletePolicies(mode ConfirmDelete, members int) []client.Object {
	if mode != ConfirmDeleteWarn && mode != ConfirmDeleteDeny {
		return nil
	}
	objects := objectsOf(deletedPlacements(members), deletedNamespaces())
	if mode == ConfirmDeleteWarn {
		for _, object := range objects {
			if binding, ok := object.(*k8sadmissionv1.ValidatingAdmissionPolicyBinding); ok {
				binding.Spec.ValidationActions = []k8sadmissionv1.ValidationAction{k8sadmissionv1.Warn}
			}
		}
	}
	return objects
}

// ObsoleteConfirmDelete returns what another mode has put on the hub and this one has
// not.
func ObsoleteConfirmDelete(mode ConfirmDelete) []client.Object {
	if mode == ConfirmDeleteWarn || mode == ConfirmDeleteDeny {
		return nil
	}
	return ConfirmDeletePolicies(ConfirmDeleteDeny, 0)
}

// confirmed is what every deletion has to be.
const confirmed = "has(oldObject.metadata.annotations) && oldObject.metadata.annotations[?'" + ConfirmDeleteAnnotation + "'].orValue('') == 'true'"

func deletedPlacements(members int) policy {
	return policy{
		name: "fleetgate-confirm-delete-placements",
		open: true,
		resources: []k8sadmissionv1.NamedRuleWithOperations{
			on(deletions, placementv1beta1.GroupName, placementv1beta1.GroupVersion.Version, "clusterresourceplacements", "resourceplacements"),
		},
		conditions: []k8sadmissionv1.MatchCondition{stays(), notCleaningUp()},
		rules: []k8sadmissionv1.Validation{forbiddenSaying(
			fmt.Sprintf("%s || !has(oldObject.status) || !has(oldObject.status.placementStatuses) || size(oldObject.status.placementStatuses) <= %d", confirmed, members),
			"'deleting ' + oldObject.kind + ' ' + oldObject.metadata.name + ' takes what it placed off ' + string(size(oldObject.status.placementStatuses)) + "+
				"' members; annotate it "+ConfirmDeleteAnnotation+"=true first'",
		)},
	}
}

func deletedNamespaces() policy {
	return policy{
		name:       "fleetgate-confirm-delete-namespaces",
		open:       true,
		resources:  []k8sadmissionv1.NamedRuleWithOperations{on(deletions, "", "v1", "namespaces")},
		each:       &k8sadmissionv1.ParamKind{APIVersion: placementv1beta1.GroupVersion.String(), Kind: "ClusterResourcePlacement"},
		conditions: []k8sadmissionv1.MatchCondition{stays(), notCleaningUp()},
		variables: []k8sadmissionv1.Variable{{
			Name: "labels", Expression: "has(oldObject.metadata.labels) ? oldObject.metadata.labels : {}",
		}},
		rules: []k8sadmissionv1.Validation{forbiddenSaying(
			confirmed+" || !params.spec.resourceSelectors.exists(s, s.group == '' && s.kind == 'Namespace' && "+
				"(has(s.name) && s.name != '' ? s.name == oldObject.metadata.name : (!has(s.labelSelector) || ("+labelsMatch+"))))",
			"'placement ' + params.metadata.name + ' selects namespace ' + oldObject.metadata.name + ': deleting it takes all that is in it off the members; annotate it "+
				ConfirmDeleteAnnotation+"=true first'",
		)},
	}
}

// stays is false for what is being deleted already.
func stays() k8sadmissionv1.MatchCondition {
	return k8sadmissionv1.MatchCondition{Name: "stays", Expression: "!has(oldObject.metadata.deletionTimestamp)"}
}
