// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e looks at the main job from the outside, as its user does: it runs
// the launcher behind `make up`, reads what that prints, and asks the clusters
// with kubectl whether it is true. Then it breaks things.
package e2e
