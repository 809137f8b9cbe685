// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rotator runs in the agent: it makes the service accounts that
// ManagedServiceAccounts in the member's namespace on the hub ask for, and keeps
// a token of each in a Secret on the hub.
//
// How the parts fit: rotator.go says what is watched and what happens when;
// decide.go is what to do about a token, a pure function; account.go is about the
// ServiceAccount on the member, ownership.go whose one is that is there already, and
// takeover.go what is to be known before it is taken over; token.go about the token and its Secret on the hub,
// status.go about what is reported.
//
// It touches no ServiceAccount and no Secret that was not made for a
// ManagedServiceAccount, unless another product's agent held the account for this
// very one while ours looked, or an administrator of the member assigns it. An account whose ManagedServiceAccount went away, also
// while the agent did not run, is removed from the member; its Secret goes by its
// owner. What needs somebody to act becomes a condition with the remedy. A
// refresh that fails leaves the older token alone, and is tried again.
//
// No token goes into a log, an event, an error or a status; package logs keeps the
// bodies of requests out of the log.
package rotator
