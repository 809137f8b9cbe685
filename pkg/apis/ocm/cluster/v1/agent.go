// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// AgentName is the agent in the user name of a fleetgate agent's client certificate,
// "system:open-cluster-management:<cluster>:fleetgate". The hub approves requests of a member's
// agent for no other name.
const AgentName = "fleetgate"
