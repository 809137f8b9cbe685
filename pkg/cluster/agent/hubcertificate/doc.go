// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hubcertificate renews the client certificate that an agent can have on its hub besides
// its token. Its subject has the form of OCM's agents, because add-on managers identify clusters by
// such user names. [Keeper] requests it with the agent's account, stores it in [Secret] on the
// member and renews it in time. On the hub, package klusterlet decides whether to issue it.
package hubcertificate
