// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command release makes a release of images that `make images` has built, and of the
// charts. It pushes the images, packs each chart with the digests of its images and pushes
// that too, and then vouches for each digest: a signature, a statement of where it was
// built from and, for the image of each platform, its SBOM. Then it pulls all of it again
// by digest and verifies it. The last thing that it writes is the list of digests: without
// that file there was no release.
//
// It releases a commit with the tag of its version and nothing else in the tree, and
// writes over no version that lies in the registry. With -trial it takes any tree, and the
// statements say so.
//
// The kubectl plugin's archives and Krew's manifest get a signature by the same signer in a
// file beside each.
//
// Signatures are bundles of Sigstore in OCI referrers, as the command cosign writes and
// reads them, made with cosign's library. Its commands are left alone: they bring the
// clients of every cloud and of Kubernetes, and are no interface.
//
// With -key it signs with that key, and only -transparency-log records that in the public
// log. Without, it signs keyless: with a certificate for the identity whose token is in
// the environment, and always in the log.
package main
