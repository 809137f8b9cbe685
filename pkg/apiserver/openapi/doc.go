// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package openapi holds the generated OpenAPI schemas of the gateway's aggregated API server: of
// the types in cluster.core.oam.dev and tunnel.fleetgate.io, and of the Kubernetes types that they
// use. CRDs contain their own schemas.
package openapi
