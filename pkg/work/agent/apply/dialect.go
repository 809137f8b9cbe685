// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"

	"k8s.io/apimachinery/pkg/runtime/schema"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/engine/availability"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// FieldManager is the field manager of the agent's writes on the member.
const FieldManager = "work-api-agent"

const appliedWorkKind = "AppliedWork"

func appliedWorks() schema.GroupVersionResource {
	return placementv1beta1.GroupVersion.WithResource("appliedworks")
}

// dialect returns the dialect of Works.
func dialect() engine.Dialect {
	return engine.Dialect{
		Manager:           FieldManager,
		HashAnnotation:    placementv1beta1.ManifestHashAnnotation,
		AppliedAnnotation: placementv1beta1.LastAppliedConfigAnnotation,
		LeaveAnnotation:   placementv1beta1.LeaveToMemberAnnotation,
		HealthAnnotations: availability.HealthAnnotations{
			InProgress: placementv1beta1.HealthInProgressAnnotation,
			Failed:     placementv1beta1.HealthFailedAnnotation,
			Current:    placementv1beta1.HealthCurrentAnnotation,
		},

		TakenOverAnnotation:    placementv1beta1.TakenOverAnnotation,
		DeletePolicyAnnotation: placementv1beta1.DeletePolicyAnnotation,
		RetainedAnnotation:     placementv1beta1.RetainedAnnotation,
		RetainedFromAnnotation: placementv1beta1.RetainedFromAnnotation,

		RecreateAnnotation: placementv1beta1.ImmutableChangeAnnotation,
		Waves:              manifest.DependencyWaves(),
		Remedies: engine.Remedies{
			Drifted:   "and whenToApply is IfNotDrifted: revert the change, make it on the hub, or choose Always",
			Differing: "and whenToTakeOver is IfNoDiff: make the two the same, or choose another whenToTakeOver",
			Contested: "stop that client, or remove the object from the placement",
			KeptNone:  "remove it from the placement",
			FieldsNotApplied: "Correct the manifest, or the kind or webhook on the member, or leave the field to the member: " +
				"annotate the resource with " + placementv1beta1.LeaveToMemberAnnotation + "=<JSON pointer>",
			FieldConflict: "Set serverSideApplyConfig.force to take these fields, or remove them from the manifest",
			DuplicateKeys: "Keep one of them in the manifest, or choose type ClientSideApply",
			Immutable: "To have it deleted and made again, annotate the resource with " +
				placementv1beta1.ImmutableChangeAnnotation + "=" + engine.PolicyRecreate,
		},
	}
}

// reasons maps the engine's refusals to reasons of a Work's status. All others are
// ManifestApplyFailed.
var reasons = map[string]string{
	engine.Undecodable:      placementv1beta1.ReasonDecodingErred,
	engine.Unserved:         placementv1beta1.ReasonDecodingErred,
	engine.GeneratedName:    placementv1beta1.ReasonFoundGenerateName,
	engine.Duplicated:       placementv1beta1.ReasonDuplicated,
	engine.Kept:             placementv1beta1.ReasonReserved,
	engine.NotFound:         placementv1beta1.ReasonFailedToFindObjInMemberCluster,
	engine.NotTakenOver:     placementv1beta1.ReasonNotTakenOver,
	engine.TakenByOthers:    placementv1beta1.ReasonFailedToTakeOver,
	engine.Drifted:          placementv1beta1.ReasonFoundDrifts,
	engine.DriftedSomewhere: placementv1beta1.ReasonFoundDriftsInDegradedMode,
	engine.DriftUnknown:     placementv1beta1.ReasonFailedToRunDriftDetection,
	engine.FieldsNotApplied: placementv1beta1.ReasonFieldsNotApplied,
	engine.NotCompared:      placementv1beta1.ReasonFailedToReportDiff,
}

func reasonOf(reason string) string {
	return cmp.Or(reasons[reason], placementv1beta1.ReasonManifestApplyFailed)
}
