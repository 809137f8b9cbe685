// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"k8s.io/client-go/dynamic"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/engine"
)

// appliers choose the account that applies a Work. Works of ResourcePlacements use the rights of
// their namespace's account on the member, not the agent's. Otherwise a user who can create
// placements in one namespace of the hub would be an administrator of members.
//
// The account also reads the objects. Records, watches and removal use the agent's rights: removal
// touches only recorded objects.
type appliers struct {
	// account is the name of the ServiceAccount; if empty, the agent applies everything itself.
	account string
	member  *engine.Member
}

// of returns the client with the rights of a Work and the start of messages about missing rights.
// Both are empty if the agent's rights apply.
func (a appliers) of(work *placementv1beta1.Work) (dynamic.Interface, string, error) {
	namespace := work.Labels[placementv1beta1.ParentPlacementNamespaceLabel]
	if a.account == "" || namespace == "" {
		return nil, "", nil
	}
	account := engine.Account{Namespace: namespace, Name: a.account}
	client, err := a.member.As(account)
	return client, account.Cannot(), err
}
