// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serving gives the gateway the certificate under which the hub's API
// server reaches it, for webhooks and for the aggregated API alike, and the CA
// bundle that has to stand in webhook configurations and APIServices.
//
// There are three sources. FromAuthority: an authority of the gateway's own, in one
// Secret that all replicas share; each replica signs a leaf of its own in memory.
// FromFiles: certificate, key and CA that somebody else writes and renews.
// FromCertManager: a Certificate that cert-manager issues, in a Secret.
//
// A rotation must lose no call, so two rules hold whatever the source. A bundle
// is published before a certificate that needs it is served: the authority has its
// next CA in the bundle all the time, and for the others a certificate of a new CA
// waits for a while (handover). And what verified a certificate that a replica may
// still serve stays in the bundle beside the new. Nothing is written to disk.
//
// cert-manager's pkg/server/tls/authority, which keeps an authority in a Secret too,
// breaks both rules: it knows one CA only, signs with a new one the moment that it is
// made, and drops the former at once. Its Secret is made anew if ca.crt is anything but
// that one certificate, so neither the next nor the previous CA fits beside it, and a
// Secret that was deleted comes back with another CA instead of the same. Under
// load, each of these loses calls between the Secret's change and the moment when the
// last API server has the new bundle.
package serving
