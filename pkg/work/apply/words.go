// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/manifest"
	"fleetgate.io/fleetgate/pkg/work/reserved"
)

// FieldManager is under which name the agent writes objects on the member.
const FieldManager = "work-api-agent"

const appliedWorkKind = "AppliedWork"

func appliedWorks() schema.GroupVersionResource {
	return placementv1beta1.GroupVersion.WithResource("appliedworks")
}

// dialect is how Works do on a member what all works do there. The house are namespaces
// there that are reserved besides the usual ones.
func dialect(house ...string) engine.Dialect {
	return engine.Dialect{
		Manager:           FieldManager,
		HashAnnotation:    placementv1beta1.ManifestHashAnnotation,
		AppliedAnnotation: placementv1beta1.LastAppliedConfigAnnotation,
		Wave:              manifest.Wave,
		LastWave:          manifest.LastWave,
		Recreates: func(object *unstructured.Unstructured) bool {
			return object.GetAnnotations()[placementv1beta1.ImmutableChangeAnnotation] == placementv1beta1.ImmutableChangeRecreate
		},
		Reserved: func(object *unstructured.Unstructured) string {
			if why := reserved.Why(object, house...); why != "" {
				return "The object " + why
			}
			return ""
		},
		Remedies: engine.Remedies{
			Drifted:    "and whenToApply is IfNotDrifted: undo the change, bring it to the hub, or choose Always",
			Differing:  "and whenToTakeOver is IfNoDiff: make the two the same, or choose another whenToTakeOver",
			Contested:  "stop it there, or take this out of the placement",
			KeptNone:   "take it out of the placement",
			FieldsHeld: "Set serverSideApplyConfig.force to take these fields, or remove them from the manifest",
			Immutable: "To have it deleted and made again, annotate the resource with " +
				placementv1beta1.ImmutableChangeAnnotation + "=" + placementv1beta1.ImmutableChangeRecreate,
		},
	}
}

// reasonOf is how a Work's status names the reason of a refusal.
func reasonOf(reason string) string {
	switch reason {
	case engine.Undecodable:
		return placementv1beta1.ReasonDecodingErred
	case engine.GeneratedName:
		return placementv1beta1.ReasonFoundGenerateName
	case engine.Duplicated:
		return placementv1beta1.ReasonDuplicated
	case engine.Kept:
		return placementv1beta1.ReasonReserved
	case engine.NotFound:
		return placementv1beta1.ReasonFailedToFindObjInMemberCluster
	case engine.NotTakenOver:
		return placementv1beta1.ReasonNotTakenOver
	case engine.TakenByOthers:
		return placementv1beta1.ReasonFailedToTakeOver
	case engine.Drifted:
		return placementv1beta1.ReasonFoundDrifts
	case engine.DriftedSomewhere:
		return placementv1beta1.ReasonFoundDriftsInDegradedMode
	case engine.DriftUnknown:
		return placementv1beta1.ReasonFailedToRunDriftDetection
	case engine.NotCompared:
		return placementv1beta1.ReasonFailedToReportDiff
	}
	return placementv1beta1.ReasonManifestApplyFailed
}
