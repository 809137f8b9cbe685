// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package diagnose writes on one page what somebody who helps with a fleet asks first:
// versions, gateways, members, tokens, placements, and what went wrong lately. It reads
// the hub's API alone, with the rights of whoever runs it, and changes nothing.
//
// The page is meant to be sent to others. No Secret is read; of objects only chosen
// fields are shown; and whatever text others wrote (conditions, events) is bounded, made
// printable, and rid of what looks like a credential. What cannot be read is a line of
// the page and no error.
package diagnose
