// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package capz is a pack of ImmutabilityPolicies for the kinds of Cluster API's
// provider for Azure: the rules of that provider's own webhooks, and those of its
// documentation that no webhook checks, for a hub on which its controllers need not
// run. The policies are the YAML files below policies, one subject each; they are
// applied when an administrator asks for them:
//
//	gateway policy pack capz | kubectl apply -f -
//
// They look at what changes a spec: an object that was stored before them can still
// get labels and lose finalizers. Where they differ from the provider's webhooks on
// purpose, docs/reference/policies.md says so.
package capz
