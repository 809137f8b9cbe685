// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

// Names of the webhook configurations. Clients of the public API know them.
const (
	MutatingConfiguration   = "fleet-mutating-webhook-configuration"
	ValidatingConfiguration = "fleet-validating-webhook-configuration"
)

// AnnotationAuthorizeAuthors is on ValidatingConfiguration. Its value is that of the gateway's
// field placement.authorizeAuthors.
const (
	AnnotationAuthorizeAuthors = "fleetgate.io/authorize-authors"
	AuthorizeAuthorsOn         = "on"
	AuthorizeAuthorsOff        = "off"
)

// The previous key of AnnotationAuthorizeAuthors and its values. The gateway writes both keys:
// diagnose of the previous version would otherwise report the check as disabled.
// Remove after the next release.
const (
	deprecatedAnnotationAuthors = "fleetgate.io/authors"
	deprecatedAuthorsAsked      = "asked"
	deprecatedAuthorsTrusted    = "trusted"
)

// AuthorsAnnotations are the annotations of ValidatingConfiguration for a gateway that checks
// authors, or does not.
func AuthorsAnnotations(checked bool) map[string]string {
	if checked {
		return map[string]string{AnnotationAuthorizeAuthors: AuthorizeAuthorsOn, deprecatedAnnotationAuthors: deprecatedAuthorsAsked}
	}
	return map[string]string{AnnotationAuthorizeAuthors: AuthorizeAuthorsOff, deprecatedAnnotationAuthors: deprecatedAuthorsTrusted}
}

// AuthorizesAuthors reports whether a ValidatingConfiguration says that the gateway checks the
// authors of placements and overrides.
func AuthorizesAuthors(configuration *admissionregistrationv1.ValidatingWebhookConfiguration) bool {
	if value, ok := configuration.Annotations[AnnotationAuthorizeAuthors]; ok {
		return value == AuthorizeAuthorsOn
	}
	return configuration.Annotations[deprecatedAnnotationAuthors] == deprecatedAuthorsAsked
}
