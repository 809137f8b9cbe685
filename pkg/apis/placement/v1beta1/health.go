// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// The health annotations are on a manifest. Each value is a CEL expression over the fields of the
// object on the member, such as status.phase == 'Running'. The agent evaluates them in this order,
// and the first that is true decides condition Available. If none is true, the object is not
// available yet; without HealthCurrentAnnotation, the rule of its kind decides. Its author writes
// them on the resource on the hub.
const (
	HealthInProgressAnnotation = "fleetgate.io/health-in-progress"
	HealthFailedAnnotation     = "fleetgate.io/health-failed"
	HealthCurrentAnnotation    = "fleetgate.io/health-current"
)

// ReasonHealthCheckInvalid of ConditionAvailable of a manifest: an expression of a health annotation
// is invalid or too expensive, or the object is a Secret.
const ReasonHealthCheckInvalid = "HealthCheckInvalid"
