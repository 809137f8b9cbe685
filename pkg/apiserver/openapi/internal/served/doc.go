// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package served holds the generated schemas of the types that the gateway's aggregated API server
// serves. Package openapi completes them.
package served
