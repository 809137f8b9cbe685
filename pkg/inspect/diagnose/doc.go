// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package diagnose writes a support report of a fleet: versions, gateways, permissive settings,
// members, tokens, placements and recent warning events. It only reads the hub's API, with the
// permissions of the user, and changes nothing.
//
// The report is meant to be shared. It reads no Secrets and shows only selected fields of objects.
// Text from conditions and events is shortened, made printable and redacted where it looks like a
// credential. What cannot be read becomes a line of the report, not an error.
package diagnose
