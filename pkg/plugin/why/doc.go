// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package why says why something in a fleet is not as it should be: one answer that names
// the object, the member, the reason and what to do. It is made of functions over what was
// read of the hub; who reads is pkg/plugin.
//
// It looks at the causes in the order in which a placement goes its way: paused, not
// scheduled, not picked, not rolled out, not overridden, not delivered, not applied, not
// available, drifted. The first that holds is the answer; those that follow of it are not
// told. The words are those of conditions, which have the member's own in them: what a
// status does not say belongs there, and not here. Here is only what people do about it.
package why
