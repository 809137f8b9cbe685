// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// AgentName is the agent in the user name of a fleetgate agent's client certificate,
// "system:open-cluster-management:<cluster>:fleetgate". The hub approves requests of a member's
// agent for no other name.
const AgentName = "fleetgate"

// Lifetimes of a member agent's client certificate. Nobody can revoke a certificate, so the agent
// requests it for a day and renews it with its account. The hub approves up to
// MaxAgentCertificateLife, for which agents of the previous version ask, and its own signer grants
// at most AgentCertificateLife.
const (
	AgentCertificateLife    = 24 * time.Hour
	MaxAgentCertificateLife = 30 * 24 * time.Hour
)
