// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"k8s.io/client-go/dynamic"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/engine"
)

// appliers apply what ResourcePlacements place with the rights that their namespace has on
// the member, instead of the agent's: who may make placements in a namespace of the hub
// would be an administrator of members otherwise.
//
// What is applied is also read so. Records, watches, and taking away what a Work does not
// ask for any more remain the agent's: it never touches what it has not recorded.
type appliers struct {
	// account is the ServiceAccount's name; empty if all is applied by the agent.
	account string
	member  *engine.Member
}

// of is the client with the rights that are a Work's, and the beginning of the sentence about
// one that is missing; nil and empty if they are the agent's.
func (a appliers) of(work *placementv1beta1.Work) (dynamic.Interface, string, error) {
	namespace := work.Labels[placementv1beta1.ParentPlacementNamespaceLabel]
	if a.account == "" || namespace == "" {
		return nil, "", nil
	}
	account := engine.Account{Namespace: namespace, Name: a.account}
	client, err := a.member.As(account)
	return client, account.Cannot(), err
}
