// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serviceaccount keeps tokens of members' service accounts on the hub,
// always fresh, as a ManagedServiceAccount in a member's namespace asks for them.
//
// How the parts fit: Reconciler (hub) asks for the gateway's own account on
// every member; package rotator (member) makes the account, requests tokens and
// stores them in a Secret of the same name on the hub; Credentials (hub) watches
// those Secrets of the gateway's account and hands the current one to the proxy;
// package impersonation (member) decides whom that account may act as. On the hub
// too: package mirror serves ManagedServiceAccounts in namespaces that are given to
// a member, package expiry deletes what was asked for a limited time, package argocd
// keeps Secrets for Argo CD. Which Secrets agents write is bounded in pkg/webhook/policies.
//
// When a token is refreshed is a pure question, see RefreshAt. A refresh that
// fails keeps the older token while it lives. No token ever stands in a log, an
// event, an error, a status or a cache key.
package serviceaccount
