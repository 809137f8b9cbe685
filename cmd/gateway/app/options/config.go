// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"cmp"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
)

const maxCABytes = 1 << 20

// Config contains the options with defaults applied and files read. An unset Hub.URL is
// the server of the kubeconfig.
type Config struct {
	Options
	// REST reaches the hub's API server as the gateway itself.
	REST *rest.Config
	// HubCA verifies Hub.URL (PEM).
	HubCA []byte
}

// Config reads the files that the options name. Call Validate first.
func (o *Options) Config() (*Config, error) {
	hub, err := LoadHub(o.Hub.Kubeconfig)
	if err != nil {
		return nil, err
	}
	// Priority and fairness of the API server limit the gateway. A client-side limit
	// would only delay it.
	hub.QPS = -1
	config := &Config{Options: *o, REST: hub}
	reached := *o.Hub.HubConfiguration
	reached.URL = cmp.Or(reached.URL, hub.Host)
	config.Hub.HubConfiguration = &reached
	if config.HubCA, err = o.Hub.verifiedBy(hub); err != nil {
		return nil, err
	}
	return config, nil
}

func readCA(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxCABytes {
		return nil, fmt.Errorf("it has more than %d bytes", maxCABytes)
	}
	return os.ReadFile(path)
}
