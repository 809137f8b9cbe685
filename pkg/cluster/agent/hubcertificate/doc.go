// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hubcertificate keeps the client's certificate that the agent of a member may have on its
// hub beside its token, of the form that Open Cluster Management's agents have: managers of
// add-ons know clusters by the names of such users. [Keeper] asks for it with the agent's own
// account, keeps it in [Secret] on the member, and asks for the next one in time. Whether it gets
// one is decided on the hub, by package klusterlet.
package hubcertificate
