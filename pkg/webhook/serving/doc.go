// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serving provides the certificate under which the hub's API server reaches the gateway,
// for webhooks and for the aggregated API, and the CA bundle for webhook configurations and
// APIServices.
//
// There are three sources. FromAuthority uses the gateway's own CA, in one Secret that all replicas
// share; each replica signs a leaf in memory. FromFiles reads certificate, key and CA that somebody
// else writes and renews. FromCertManager uses a Certificate that cert-manager issues, in a Secret.
//
// A rotation must lose no call, so two rules hold for every source. First, a bundle is published
// before a certificate that needs it is served: the authority always has its next CA in the bundle,
// and for the others a certificate of a new CA waits for a while (handover). Second, CAs of a
// certificate that a replica may still serve stay in the bundle. Nothing is written to disk.
//
// cert-manager's pkg/server/tls/authority, which also keeps an authority in a Secret, breaks both
// rules. It knows only one CA, signs with a new one as soon as it is created, and drops the
// previous one at once. It re-creates its Secret if ca.crt is anything but that one certificate, so
// neither the next nor the previous CA can be added, and a deleted Secret is re-created with
// another CA. Under load, each of these loses calls between the change of the Secret and the moment
// when the last API server has the new bundle.
package serving
