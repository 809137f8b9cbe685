// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package credentials gives the proxy a current token for every member.
//
// Reconciler creates a ManagedServiceAccount for the gateway's own account in the namespace of
// every member. The member's agent (pkg/serviceaccount/agent/rotator) creates the account,
// requests tokens and stores them in a Secret of the same name on the hub. Credentials watches
// these Secrets and returns the current token.
//
// Which Secrets agents may write is bounded by the policies in pkg/webhook/policies. No token
// appears in a log, an event, an error, a status or a cache key. A failed refresh keeps the
// older token until it expires.
package credentials
