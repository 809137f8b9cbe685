// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"golang.org/x/net/http/httpproxy"
	"k8s.io/client-go/rest"
)

// Agents with HTTPS_PROXY and without NO_PROXY asked the proxy for 10.96.0.1, and never started.
func TestBypassProxy_ReachesOwnClusterDirectly(t *testing.T) {
	for name, environment := range map[string]*httpproxy.Config{
		"without a proxy":              {},
		"with a proxy":                 {HTTPSProxy: "http://proxy.example.org:3128"},
		"with a proxy and other hosts": {HTTPSProxy: "http://proxy.example.org:3128", NoProxy: "example.org"},
	} {
		t.Run(name, func(t *testing.T) {
			config := &rest.Config{Host: "https://10.96.0.1:443"}
			bypassProxy(config, environment)
			if environment.HTTPSProxy == "" {
				if config.Proxy != nil {
					t.Error("clients share no connections")
				}
				return
			}
			if proxy, err := config.Proxy(httptest.NewRequest(http.MethodGet, config.Host, http.NoBody)); proxy != nil || err != nil {
				t.Errorf("got proxy %v, %v", proxy, err)
			}
		})
	}
}
