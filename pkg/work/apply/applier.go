// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"net/http"
	"strings"
	"sync"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

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
	config  *rest.Config
	base    http.Client

	// mu guards members.
	mu sync.Mutex
	// members are the clients by namespace. There are as many as namespaces that have
	// placed anything since the agent started; they share their connections.
	members map[string]dynamic.Interface
}

func newAppliers(account string, config *rest.Config, base http.Client) *appliers {
	return &appliers{account: account, config: config, base: base, members: map[string]dynamic.Interface{}}
}

// of is the client with the rights that are a Work's, and whose they are; nil if they are
// the agent's.
func (a *appliers) of(work *placementv1beta1.Work) (dynamic.Interface, string, error) {
	namespace := work.Labels[placementv1beta1.ParentPlacementNamespaceLabel]
	if a.account == "" || namespace == "" {
		return nil, "", nil
	}
	member, err := a.member(namespace)
	return member, fmt.Sprintf("ServiceAccount %q of namespace %q may not", a.account, namespace), err
}

// blame says in refusals for want of a right whose right it is.
func blame(outcomes []engine.Outcome, mayNot string) {
	if mayNot == "" {
		return
	}
	for _, out := range outcomes {
		if out.Refused != nil {
			out.Refused.Message = strings.Replace(out.Refused.Message, engine.AgentMayNot, mayNot, 1)
		}
	}
}

func (a *appliers) member(namespace string) (dynamic.Interface, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if member := a.members[namespace]; member != nil {
		return member, nil
	}
	as := a.base
	as.Transport = transport.NewImpersonatingRoundTripper(transport.ImpersonationConfig{
		UserName: fmt.Sprintf("system:serviceaccount:%s:%s", namespace, a.account),
		// As the API server has them of a token of the account.
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}, a.base.Transport)
	member, err := dynamic.NewForConfigAndClient(a.config, &as)
	if err != nil {
		return nil, fmt.Errorf("making a client of ServiceAccount %q in namespace %q: %w", a.account, namespace, err)
	}
	a.members[namespace] = member
	return member, nil
}
