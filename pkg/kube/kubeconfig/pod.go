// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"net/http"
	"net/url"

	"golang.org/x/net/http/httpproxy"
	"k8s.io/client-go/rest"
)

// InPod returns the configuration of a Pod for its own cluster, as rest.InClusterConfig does. A forward
// proxy in the environment is for addresses outside, so it never applies.
func InPod() (*rest.Config, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, err
	}
	bypassProxy(config, httpproxy.FromEnvironment())
	return config, nil
}

// bypassProxy changes nothing without a proxy: clients of a configuration with a proxy function share
// no connections.
func bypassProxy(config *rest.Config, environment *httpproxy.Config) {
	if environment.HTTPSProxy != "" {
		config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	}
}
