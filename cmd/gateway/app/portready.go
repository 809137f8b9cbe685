// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"net/http"
)

// portReady fails until the port that is advertised to agents is open: a replica that accepts no
// agents reaches no member.
func (g *gateway) portReady(port *advertised) func(*http.Request) error {
	return func(*http.Request) error {
		if g.Tunnels.AgentsAddress != "" && port.info().Port == nil {
			return errors.New("the port for agents is not open yet")
		}
		return nil
	}
}
