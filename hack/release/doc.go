// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command release releases images that `make images` has built, and the folder that hack/bundle has
// made of them. It pushes images and charts. For each digest it then attaches a signature, the
// provenance and, for the image of each platform, its SBOM. Then it pulls everything by digest and
// verifies it, and signs the checksums of the folder. It writes the list of digests last: without
// that file the release is incomplete.
//
// It releases only a clean commit with the tag of its version, and never overwrites a version in
// the registry. With -trial it accepts any tree, and the statements say so.
//
// Signatures are Sigstore bundles in OCI referrers, as cosign writes and reads them, created with
// cosign's library. Its command packages are not used: they depend on the clients of every cloud
// and of Kubernetes, and are no stable API.
//
// With -key it signs with that key, and uses the public transparency log only with
// -transparency-log. Without -key it signs keyless, with a certificate for the identity of the
// token in the environment, and always uses the log.
package main
