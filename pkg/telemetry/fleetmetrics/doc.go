// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleetmetrics exports how members, placements and tokens stand. The figures are
// computed from what the leader has in memory each time that they are read, so that they are
// right from the first reading on, whoever leads and since when: nothing is counted, and a
// state that nobody is in is 0 and not missing.
package fleetmetrics
