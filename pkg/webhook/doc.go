// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook is the gateway's admission: thin handlers around the rules in
// pkg/webhook/rules, the configurations and policies that lead requests to them,
// and, in pkg/webhook/serving, the certificate under which they are served.
//
// A refusal is 422 Invalid with a cause for each wrong field, never only the
// first. Rules that must hold while the gateway is down are schema and CEL rules
// of the CustomResourceDefinitions, or ValidatingAdmissionPolicies (MemberPolicies).
// Nobody is exempt from a placement's rules by the groups that they are in.
package webhook
