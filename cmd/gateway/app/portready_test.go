// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"

	"fleetgate.io/fleetgate/cmd/gateway/app/options"
	"fleetgate.io/fleetgate/pkg/tunnel"
)

func TestPortReady_FailsUntilAgentsPortIsOpen(t *testing.T) {
	port := &advertised{}
	without := &gateway{Config: &options.Config{Options: *options.New()}}
	if err := without.portReady(port)(nil); err != nil {
		t.Errorf("A gateway without an agents' port is not ready: %v", err)
	}
	with := &gateway{Config: &options.Config{Options: *options.New()}}
	with.Tunnels.AgentsAddress = "hub.example:443"
	if err := with.portReady(port)(nil); err == nil {
		t.Error("The gateway is ready before its port is open.")
	}
	port.set(&tunnel.PortInfo{})
	if err := with.portReady(port)(nil); err != nil {
		t.Errorf("The port is open and the check fails: %v", err)
	}
}
