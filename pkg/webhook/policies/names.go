// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

// Names of the webhook configurations. Clients of the public API know them.
const (
	MutatingConfiguration   = "fleet-mutating-webhook-configuration"
	ValidatingConfiguration = "fleet-validating-webhook-configuration"
)

// AnnotationAuthors is on ValidatingConfiguration. It says whether the gateway checks that
// authors of placements and overrides may have the content delivered: AuthorsAsked or
// AuthorsTrusted.
const (
	AnnotationAuthors = "fleetgate.io/authors"
	AuthorsAsked      = "asked"
	AuthorsTrusted    = "trusted"
)
