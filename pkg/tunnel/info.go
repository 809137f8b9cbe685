// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
)

// Info is the message of a gateway about itself to an agent, at the beginning of a session and whenever it
// changes.
type Info struct {
	// Replica is the name of the gateway in which the session ends; each replica has its own.
	Replica string `json:"replica,omitempty"`
	// Replicas is the number of gateways.
	Replicas int `json:"replicas,omitempty"`
	// Members is the current or a recent number of members. Agents that have all lost their tunnels
	// spread their reconnects over a longer time if there are more. 0 is unknown.
	Members int `json:"members,omitempty"`
	// Full is true while this gateway asks agents to move, because other gateways have fewer
	// sessions. An agent that moves a session then tries another gateway.
	Full bool `json:"full,omitempty"`
	// Port is the gateway's own port for agents; nil if it has none.
	Port *PortInfo `json:"port,omitempty"`
}

// PortInfo is how agents reach the gateway's own port.
type PortInfo struct {
	// Address is host:port.
	Address string `json:"address"`
	// CA verifies the port's certificate (PEM).
	CA string `json:"ca"`
	// ServerName is the name in the certificate.
	ServerName string `json:"serverName"`
}

// ParseInfo reads a gateway's message. Unknown fields are those of later versions.
func ParseInfo(message []byte) (Info, error) {
	var info Info
	if err := json.Unmarshal(message, &info); err != nil {
		return Info{}, fmt.Errorf("reading the message of the gateway: %w", err)
	}
	if info.Port == nil {
		return info, nil
	}
	if _, _, err := net.SplitHostPort(info.Port.Address); err != nil {
		return Info{}, fmt.Errorf("reading the gateway's port: %w", err)
	}
	if info.Port.CA == "" || info.Port.ServerName == "" {
		return Info{}, errors.New("reading the gateway's port: the CA or the server name is missing")
	}
	return info, nil
}
