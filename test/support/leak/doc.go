// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leak finds secrets where they must not be: in what programs write (logs,
// metrics, objects) and in what they key their memory by.
//
// Search looks for a secret as it is and as the programs around ours would write it:
// inside base64, whatever stands before it, and in the dumps of binary bodies that
// the Kubernetes client logs. Keys collects the keys of all maps that a value
// reaches. A search that finds nothing proves nothing by itself: its caller plants
// something in each place and sees that it is found.
package leak
