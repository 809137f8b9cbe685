// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package impersonation runs in the agent: it decides as whom the gateway may
// act on the member, and grants it.
//
// The gateway's account on a member may impersonate nobody by itself. When the
// gateway sees a caller for the first time, it asks over the tunnel for that
// user and those groups. Grants adds them, by name, to the ClusterRole
// fleetgate-impersonate, and answers when the member's authorizer lets the
// account use them. So a stolen token of that account acts as nobody who has not
// come through the hub lately, and never as a system identity: the agent refuses
// those whatever the gateway says.
//
// The role holds the constrained verbs of KEP-5284 where the member's API server has them,
// and plain impersonate elsewhere, never both: mode.go finds out which, and the heartbeat
// tells the hub.
//
// The number of names is bounded; the ones that were asked for least recently
// go. A gateway that is refused as an impersonator by the member asks again.
package impersonation
