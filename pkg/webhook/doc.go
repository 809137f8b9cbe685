// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook is the gateway's admission: thin handlers around the rules in
// pkg/webhook/validation, the configurations that lead requests to them, and, in
// pkg/webhook/serving, the certificate under which they are served.
//
// What an object can be checked against by itself is in the schema of its
// CustomResourceDefinition. What must hold while the gateway is down, and needs no
// other object, is in ValidatingAdmissionPolicies: the files of pkg/webhook/policies.
// Handlers check the rest. Package pkg/webhook/author authorizes the authors of deliveries, and
// authorbounds.go stores the result on placements.
//
// A refusal of a handler is 422 Invalid with a cause for each wrong field, never only
// the first. Nobody is exempt from rules by the groups that they are in: see
// bypass.go for the way out.
package webhook
