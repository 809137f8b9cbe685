// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"net"
	"strings"

	"github.com/spf13/pflag"
)

// Tunnels says where agents come in, and where other replicas do.
type Tunnels struct {
	AgentsAddress      string
	AgentsPort         int
	AgentsClientCAFile string
	PeerPort           int
	Peers              []string
	Konnectivity       Konnectivity
}

func newTunnels() Tunnels { return Tunnels{AgentsPort: 8091, Konnectivity: newKonnectivity()} }

// AddFlags binds the options to a command line.
func (o *Tunnels) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.AgentsAddress, "agents-address", o.AgentsAddress, "host:port at which members' agents reach --agents-port. Empty: the port is closed, and all tunnels go through the hub's API server.")
	flags.IntVar(&o.AgentsPort, "agents-port", o.AgentsPort, "Port for tunnels of agents, with --agents-address.")
	flags.StringVar(&o.AgentsClientCAFile, "agents-client-ca-file", o.AgentsClientCAFile, "PEM file of a CA whose client certificates, beside tokens, prove who an agent is at --agents-port: the common name is its user.")
	flags.IntVar(&o.PeerPort, "peer-port", o.PeerPort, "Port at which the gateway's replicas reach each other, to pass on requests for members whose tunnel another one holds: 8092. 0: they do not.")
	flags.StringSliceVar(&o.Peers, "peers", o.Peers, "host:port of the other replicas. Empty: the endpoints of --service, with --peer-port.")
	o.Konnectivity.AddFlags(flags)
}

// Validate returns every error at once.
func (o *Tunnels) Validate() []error {
	all := []error{port("--agents-port", o.AgentsPort)}
	if o.PeerPort != 0 {
		all = append(all, port("--peer-port", o.PeerPort))
	}
	if len(o.Peers) > 0 && o.PeerPort == 0 {
		all = append(all, errors.New("--peers does nothing without --peer-port"))
	}
	for _, peer := range o.Peers {
		all = append(all, address("--peers", peer, false))
	}
	if o.AgentsAddress != "" {
		all = append(all, address("--agents-address", o.AgentsAddress, false))
	}
	if o.AgentsClientCAFile != "" && o.AgentsAddress == "" {
		all = append(all, errors.New("--agents-client-ca-file does nothing without --agents-address"))
	}
	if o.Konnectivity.Agents && o.AgentsAddress == "" {
		all = append(all, errors.New("--konnectivity-agents does nothing without --agents-address"))
	}
	if o.AgentsClientCAFile != "" && o.AgentsClientCAFile == o.Konnectivity.FrontendsCA {
		all = append(all, errors.New("--agents-client-ca-file and --konnectivity-frontends-ca-file are one file: an agent's certificate would be good for frontends, and the reverse"))
	}
	return append(all, o.Konnectivity.Validate()...)
}

// Names are those by which Konnectivity's own agents and frontends reach the gateway: they
// verify the name that they dial, and nobody tells them another one.
func (o *Tunnels) Names() []string {
	var names []string
	host, _, err := net.SplitHostPort(o.AgentsAddress)
	if o.Konnectivity.Agents && err == nil && net.ParseIP(host) == nil {
		names = append(names, host)
	}
	if domain := strings.Trim(o.Konnectivity.Domain, "."); o.Konnectivity.Frontends != "" && domain != "" {
		names = append(names, "*."+domain)
	}
	return names
}
