// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"strings"
	"sync"

	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/transport"
)

// Account is a ServiceAccount of the member.
type Account struct{ Namespace, Name string }

// User is the account's name as API servers have it.
func (a Account) User() string { return serviceaccount.MakeUsername(a.Namespace, a.Name) }

// Groups are those that API servers have a token of the account in.
func (a Account) Groups() []string {
	return append(serviceaccount.MakeGroupNames(a.Namespace), user.AllAuthenticated)
}

// Cannot begins the sentence about a right that the account lacks.
func (a Account) Cannot() string {
	return fmt.Sprintf("ServiceAccount %q of namespace %q cannot", a.Name, a.Namespace)
}

// accounts are the clients of a member that act as accounts. There are as many as accounts
// that anything was written as since the agent started; they share their connections.
type accounts struct {
	mu      sync.Mutex // guards clients
	clients map[Account]dynamic.Interface
}

// As is a client of the member that acts as an account of it, by impersonation: the agent
// has to have the right to that.
func (m *Member) As(account Account) (dynamic.Interface, error) {
	m.accounts.mu.Lock()
	defer m.accounts.mu.Unlock()
	if client := m.accounts.clients[account]; client != nil {
		return client, nil
	}
	as := *m.Client
	as.Transport = transport.NewImpersonatingRoundTripper(
		transport.ImpersonationConfig{UserName: account.User(), Groups: account.Groups()}, m.Client.Transport)
	client, err := dynamic.NewForConfigAndClient(m.Config, &as)
	if err != nil {
		return nil, fmt.Errorf("making a client of ServiceAccount %q in namespace %q: %w", account.Name, account.Namespace, err)
	}
	if m.accounts.clients == nil {
		m.accounts.clients = map[Account]dynamic.Interface{}
	}
	m.accounts.clients[account] = client
	return client, nil
}

// Blame names the account that lacks a right in refusals, if it is not the agent: cannot begins
// that sentence. If it is empty, the agent lacks the right.
func Blame(outcomes []Outcome, cannot string) {
	if cannot == "" {
		return
	}
	for _, out := range outcomes {
		if out.Refused != nil {
			out.Refused.Message = strings.Replace(out.Refused.Message, AgentCannot, cannot, 1)
		}
	}
}
