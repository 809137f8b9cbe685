// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleetmetrics exports the states of members, placements and tokens. Each scrape computes
// the figures from the leader's cache, so that they are correct from the first scrape on, whichever
// replica leads and since when. Nothing is counted incrementally, and a state without objects is 0
// and not missing.
package fleetmetrics
