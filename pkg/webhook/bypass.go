// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

// BypassGroup, a resource below and BypassVerb name the rights that exempt. They
// are checked by the API server's own authorizer, so nobody can claim them by a name
// or a label. The gateway's role holds BypassResource, and whoever may do
// everything holds all.
const (
	BypassGroup = "admission.fleetgate.io"
	BypassVerb  = "bypass"

	// BypassResource exempts from the policies on what belongs to the hub: members'
	// namespaces, and keys of ours.
	BypassResource = "memberpolicies"
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
