// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package explain explains the problem of something in a fleet: one answer that names the
// object, the member, the reason and the remedy. It consists of functions over objects that
// were read from the hub; cmd/kubectl-fleetgate/app reads them.
//
// It checks causes in the order in which a placement progresses: paused, not scheduled, not
// selected, not rolled out, override failed, not delivered, not applied, not available,
// drifted. The first match is the answer; its consequences are not reported. Reasons are the
// messages of conditions, which contain the member's own messages: information that a status
// lacks belongs into the status, not here. This package only adds remedies.
package explain
