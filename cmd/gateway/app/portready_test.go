// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"

	"fleetgate.io/fleetgate/cmd/gateway/app/options"
	"fleetgate.io/fleetgate/pkg/tunnel"
)

func TestAGatewayIsNotReadyBeforeAgentsCanComeToItsPort(t *testing.T) {
	port := &advertised{}
	without := &gateway{Config: &options.Config{Options: *options.New()}}
	if err := without.portReady(port)(nil); err != nil {
		t.Errorf("A gateway without a port for agents waits for it: %v", err)
	}
	with := &gateway{Config: &options.Config{Options: *options.New()}}
	with.Tunnels.AgentsAddress = "hub.example:443"
	if err := with.portReady(port)(nil); err == nil {
		t.Error("It is ready before its port is open.")
	}
	port.set(&tunnel.PortInfo{})
	if err := with.portReady(port)(nil); err != nil {
		t.Errorf("The port is open, and it says: %v", err)
	}
}
