// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the main job as a user sees it: it runs the launcher behind `make up`, reads
// its output, and verifies it on the clusters with kubectl. Then it injects failures.
package e2e
