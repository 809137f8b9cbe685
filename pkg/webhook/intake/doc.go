// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package intake is the port at which the gateway takes AdmissionReviews: from the
// hub's API server, which proves that it is that, and from nobody else.
//
// # How an API server proves itself
//
// A webhook's API server shows no client certificate unless whoever runs it says so in
// a file, which nobody can on a managed hub. But an aggregated server is asked with the
// certificate of the front proxy (pkg/apiserver/frontproxy), on every hub. So webhook
// configurations name Service default/kubernetes and a path in the aggregated group
// webhook.fleetgate.io: the API server resolves that Service to its own loopback
// address, comes to itself as system:apiserver with a token that lives in its memory
// only, and passes the review on as it would any request for that group. What arrives
// here with a certificate of the front proxy and this user in its headers was sent
// by the API server; any other user of the hub who asks that path is 403, whatever
// its rights. Only who may impersonate system:apiserver in system:masters comes
// through, and is an administrator.
//
// Where an API server cannot be reached through itself, a CA can be named whose
// certificates the API server shows (certificates in its AdmissionConfiguration).
//
// # What it refuses
//
// Who proves nothing is refused with 401 by the request's line and headers: no byte of
// its body is read, and no handler hears of it. Who is proved may still be many: what
// reviews under way hold is bounded in bytes before they are read (budget.go).
//
// # From a gateway that knew no proof
//
// As long as a configuration on the hub sends reviews here without proof, since
// an older gateway wrote it, they are answered (handover.go). The leader writes the new
// one once every replica can take what it sends.
package intake
