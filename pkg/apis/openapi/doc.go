// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package openapi describes, for the gateway's aggregated API server, the types
// of the groups that it serves: cluster.core.oam.dev and tunnel.fleetgate.io,
// and what they use of Kubernetes' own. All of it is generated. The groups that
// are CRDs describe themselves.
package openapi
