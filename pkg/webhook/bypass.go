// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

// BypassGroup, a resource below and BypassVerb name the rights that exempt. The API server's own
// authorizer checks them, so that no user can claim them by a name or a label. The gateway's role
// has BypassResource, and a cluster administrator has all.
const (
	BypassGroup = "admission.fleetgate.io"
	BypassVerb  = "bypass"

	// BypassResource exempts from the policies on what belongs to the hub: members'
	// namespaces, and keys of ours.
	BypassResource = "memberpolicies"
	// BypassDeliveries exempts from the policy that only the gateway writes what
	// members apply: snapshots, bindings and Works.
	BypassDeliveries = "deliveries"
	// BypassGuardRails exempts from the guard rail of selected namespaces.
	BypassGuardRails = "guardrails"
	// BypassWebhooks, with the name of an entry of ValidatingConfiguration, exempts
	// from the rules that the entry leads to, for objects with AnnotationBypass.
	BypassWebhooks = "webhooks"
)

// AnnotationBypass is on an object for which its author wants to bypass the rules
// that a webhook checks; the value says why, for the audit log. It is worth nothing
// without the right.
const AnnotationBypass = "fleetgate.io/bypass"

// wantsBypass is true for objects that carry the annotation.
const wantsBypass = "(has(object.metadata.annotations) && '" + AnnotationBypass + "' in object.metadata.annotations)"
