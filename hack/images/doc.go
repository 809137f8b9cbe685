// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command images builds a container image of a static binary without Docker: the binary, root
// certificates, its licence and its SBOM on an empty base, run by a user that is not root.
//
// The same binary gives the same digest on any machine at any time: names, modes, owners and times
// in the layer are fixed, and the certificates come from a module that go.mod pins. `make images`
// builds reproducible binaries.
//
// The result is an OCI layout, which crane, skopeo and oras push, and a tarball for `docker load`.
// With -push the command pushes it itself.
package main
