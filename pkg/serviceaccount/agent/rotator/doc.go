// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rotator runs in the agent. It creates the ServiceAccounts that ManagedServiceAccounts in
// the member's namespace on the hub request, and stores a token of each in a Secret on the hub.
//
// Files: rotator.go has watches and the reconcile loop. It first settles whose account it is, and only
// then handles tokens: ownership.go decides whether a ManagedServiceAccount can have the account of its
// name, account.go and retain.go act on that. decide.go decides about a token, without side effects;
// token.go handles the token and its Secret on the hub, status.go the status. authority.go notices a new
// CA.
//
// The agent changes no ServiceAccount or Secret that was not created for a ManagedServiceAccount.
// The exceptions are an account that another product's agent held for the same
// ManagedServiceAccount, and an account that an administrator of the member assigned. If a
// ManagedServiceAccount is deleted, also while the agent is stopped, the agent deletes the account
// on the member; garbage collection deletes the Secret. A problem that a user has to solve becomes
// a condition with the remedy. A failed refresh keeps the older token and is retried.
//
// Tokens never appear in logs, events, errors or statuses; package logs removes request bodies from
// the log.
package rotator
