// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package intake serves the port at which the gateway accepts AdmissionReviews. It accepts them
// only from the hub's API server, which has to prove its identity.
//
// # How an API server proves its identity
//
// An API server sends no client certificate to webhooks unless its administrator configures one in
// a file, which nobody can do on a managed hub. But it calls an aggregated server with the
// certificate of the front proxy (pkg/apiserver/frontproxy), on every hub. So webhook
// configurations name Service default/kubernetes and a path in the aggregated group
// webhook.fleetgate.io. The API server resolves that Service to its own loopback address and calls
// itself as system:apiserver, with a token that exists only in its memory. Then it forwards the
// review like any request for that group. A request that arrives here with a certificate of the
// front proxy and this user in its headers was therefore sent by the API server. Any other user of
// the hub who calls that path gets 403, whatever its permissions. The only exception is a user who
// may impersonate system:apiserver in system:masters, and is therefore an administrator.
//
// Where an API server cannot be reached through itself, a CA can be named whose certificates the
// API server presents (certificates in its AdmissionConfiguration).
//
// # Limits
//
// An unauthenticated request is refused with 401 from its request line and headers: no byte of its
// body is read, and no handler is called. Even authenticated requests may be many, so the bytes of
// reviews in flight are limited before they are read (budget.go).
//
// # Upgrades from gateways without this check
//
// While a configuration on the hub sends reviews here without proof, because an older gateway wrote
// it, they are answered (handover.go). The leader writes the new configuration once every replica
// accepts what it sends.
package intake
