// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"os"
	"path/filepath"

	"github.com/onsi/ginkgo/v2"
	"k8s.io/client-go/rest"

	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/faults"
	"fleetgate.io/fleetgate/test/support/fleet"
)

// FaultyWays are the connections of gateway and agents to the hub, in which specs inject faults.
type FaultyWays []*faults.Proxy

// Start is a fleet.Options.Way: it routes gateway and agents through these connections, until the end
// of the spec or the suite.
func (w *FaultyWays) Start(at *env.Cluster) ([]string, error) {
	own, err := at.ConfigFor(fleet.GatewayUser)
	if err != nil {
		return nil, err
	}
	*w = nil
	dir := ginkgo.GinkgoT().TempDir()
	kubeconfig, ca := filepath.Join(dir, "gateway.kubeconfig"), filepath.Join(dir, "ca.pem")
	for _, config := range []*rest.Config{own, rest.AnonymousClientConfig(at.Config())} {
		way, err := faults.Start(config)
		if err != nil {
			return nil, err
		}
		ginkgo.DeferCleanup(way.Close)
		*w = append(*w, way)
	}
	gateway, agents := (*w)[0], (*w)[1]
	if err := gateway.Kubeconfig(kubeconfig); err != nil {
		return nil, err
	}
	if err := os.WriteFile(ca, agents.CA, 0o600); err != nil {
		return nil, err
	}
	return []string{"--kubeconfig=" + kubeconfig, "--hub-url=" + agents.URL, "--hub-ca-file=" + ca}, nil
}
