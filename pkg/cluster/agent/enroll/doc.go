// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package enroll gives an agent its identity on the hub, and keeps it.
//
// An [Enroller] runs on the member. It makes a key pair and stores it before anything
// is sent, asks the hub for a registration with the registration token, opens the
// answer with the key, stores the credential, uses it once, and only then forgets the
// registration token. From then on it renews the credential with the credential itself.
//
// What it keeps on the member, in the agent's namespace:
//
//   - Secret [KeySecret]: the private key. The hub gives the cluster only to this key, or
//     to another one for which this key has signed: see "previous-private-key" there.
//   - Secret [CredentialSecret]: the hub's URL and CA, the member's name, the token and
//     when it expires.
//   - Secret [BootstrapSecret]: where a chart may have put the registration token; it
//     is deleted after the first successful use of the credential. A registration token
//     that is handed in otherwise is never stored.
//
// Each step finds what an earlier one left, on the member or on the hub, so an agent
// that is killed anywhere ends as the same member. A credential that the hub no longer
// accepts (revoked, or expired while the agent was away) makes it register again with
// the same key, as soon as it has a valid registration token.
//
// Other parts of the agent take [Enroller.HubConfig], whose bearer token follows the
// renewals; a request that the hub answers with 401 starts a renewal at once.
//
// What stands in the way is one sentence, a refusal: logged when it changes, and
// returned by [Enroller.Ready] for the readiness probe.
package enroll
