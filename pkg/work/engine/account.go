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

// Account identifies a ServiceAccount of the member.
type Account struct{ Namespace, Name string }

// User returns the user name that API servers derive from the account.
func (a Account) User() string { return serviceaccount.MakeUsername(a.Namespace, a.Name) }

// Groups returns the groups that API servers add to the account's tokens.
func (a Account) Groups() []string {
	return append(serviceaccount.MakeGroupNames(a.Namespace), user.AllAuthenticated)
}

// Cannot returns the start of a message about a right that the account lacks.
func (a Account) Cannot() string {
	return fmt.Sprintf("ServiceAccount %q of namespace %q cannot", a.Name, a.Namespace)
}

// accounts caches one impersonating client per account. It keeps a client for every account used
// since the agent started; all of them share the member's connections.
type accounts struct {
	mu      sync.Mutex // guards clients
	clients map[Account]dynamic.Interface
}

// As returns a client that impersonates an account of the member. The agent needs the right to
// impersonate it.
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

// NameAccount replaces the agent in messages about missing rights by the account that lacks them. cannot
// is [Account.Cannot]; if it is empty, the agent itself lacks the right.
func NameAccount(results []ManifestResult, cannot string) {
	if cannot == "" {
		return
	}
	for _, out := range results {
		if out.Refused != nil {
			out.Refused.Message = strings.Replace(out.Refused.Message, AgentCannot, cannot, 1)
		}
	}
}
