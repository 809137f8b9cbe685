// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"strings"

	k8sadmissionv1 "k8s.io/api/admissionregistration/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

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

// bypassAudit leaves a trace of what nobody checked: an annotation of the audit
// event, with who and why. It refuses nothing.
func bypassAudit() policy {
	var entries, resources []string
	for _, own := range ownKinds() {
		entries = append(entries, fmt.Sprintf("'%s': '%s'", own.resource, own.webhook))
		resources = append(resources, own.resource)
	}
	return policy{
		name:      "fleetgate-bypassed-rules",
		resources: []k8sadmissionv1.NamedRuleWithOperations{on(writes, placementv1beta1.GroupName, placementv1beta1.GroupVersion.Version, resources...)},
		conditions: []k8sadmissionv1.MatchCondition{{
			Name: "bypassed",
			Expression: fmt.Sprintf("%s && authorizer.group('%s').resource('%s').name({%s}[request.resource.resource]).check('%s').allowed()",
				wantsBypass, BypassGroup, BypassWebhooks, strings.Join(entries, ", "), BypassVerb),
		}},
		audit: []k8sadmissionv1.AuditAnnotation{{
			Key:             "bypass",
			ValueExpression: "request.userInfo.username + ': ' + object.metadata.annotations['" + AnnotationBypass + "']",
		}},
	}
}
