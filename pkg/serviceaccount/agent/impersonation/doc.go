// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package impersonation runs in the agent. It decides which identities the gateway may impersonate
// on the member, and grants them.
//
// The gateway's account on a member has no right to impersonate on its own. For a new caller, the
// gateway requests that user and its groups over the tunnel. Grants adds them, by name, to
// ClusterRole fleetgate-impersonate, and responds once the member's authorizer allows the account
// to use them. A stolen token of that account can therefore impersonate only recent callers of the
// hub, and never a system identity: the agent refuses those whatever the gateway requests.
//
// The role contains the constrained verbs of KEP-5284 if the member's API server supports them,
// otherwise plain impersonate, never both. mode.go detects the support, and the heartbeat reports
// the mode to the hub.
//
// The number of names is limited; the least recently requested ones are removed. If the member
// forbids an impersonation, the gateway requests the grant again.
package impersonation
