// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"os"

	"k8s.io/client-go/rest"
)

const maxCABytes = 1 << 20

// Config is what the options mean, ready to run with: a Hub.URL that was left empty is
// that of the kubeconfig.
type Config struct {
	Options
	// REST reaches the hub's API server as the gateway itself.
	REST *rest.Config
	// HubCA verifies Hub.URL (PEM).
	HubCA []byte
	// AgentsClientCA verifies client certificates of agents (PEM).
	AgentsClientCA []byte
}

// Config reads the files that the options name. Call Validate before.
func (o *Options) Config() (*Config, error) {
	hub, err := LoadHub(o.Hub.Kubeconfig)
	if err != nil {
		return nil, err
	}
	// The API server's own fairness limits the gateway; a client-side limit would
	// only make it slow.
	hub.QPS = -1
	config := &Config{Options: *o, REST: hub}
	if config.Hub.URL == "" {
		config.Hub.URL = hub.Host
	}
	if config.HubCA, err = o.Hub.verifiedBy(hub); err != nil {
		return nil, err
	}
	if path := o.Tunnels.AgentsClientCAFile; path != "" {
		if config.AgentsClientCA, err = readCA(path); err != nil {
			return nil, fmt.Errorf("reading --agents-client-ca-file: %w", err)
		}
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
