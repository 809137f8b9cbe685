// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package enroll obtains and renews the identity of an agent on the hub.
//
// An [Enroller] runs on the member. It stores a key pair before it sends anything, requests a
// registration with the registration token, decrypts the response with the key, stores the
// credential and uses it once. Only then does it delete the registration token. From then on it
// renews the credential with the credential itself.
//
// It stores these objects on the member, in the agent's namespace:
//
//   - Secret [KeySecret]: the private key. The hub grants the cluster only to this key, or to a key that this
//     one has signed: see "previous-private-key" in the Secret.
//   - Secret [CredentialSecret]: the hub's URL and CA, the member's name, the token and its expiry.
//   - Secret [BootstrapSecret]: the registration token, if a chart stored it there. The agent deletes it after
//     the first successful use of the credential. It never stores a registration token from another source.
//
// Each step continues from the stored state of the member and the hub, so that an agent that is
// killed at any point ends as the same member. If the hub no longer accepts a credential (it was
// revoked, or expired while the agent was disconnected), the agent registers again with the same
// key once it has a valid registration token.
//
// Other parts of the agent use [Enroller.HubConfig], whose bearer token follows renewals. A
// response 401 from the hub triggers a renewal.
//
// A problem is a refusal with one sentence. The agent logs it when it changes, and [Enroller.Ready]
// returns it for the readiness probe.
package enroll
