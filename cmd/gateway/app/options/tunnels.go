// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"net"
	"strings"

	"github.com/spf13/pflag"
)

// Tunnels configures the listeners for agents and for other replicas.
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
	flags.StringVar(&o.AgentsAddress, "agents-address", o.AgentsAddress, "Address (host:port) at which agents reach --agents-port. If unset, the port is closed and all tunnels go through the hub's API server.")
	flags.IntVar(&o.AgentsPort, "agents-port", o.AgentsPort, "Port for tunnels of agents. Used with --agents-address.")
	flags.StringVar(&o.AgentsClientCAFile, "agents-client-ca-file", o.AgentsClientCAFile, "PEM file of a CA for client certificates of agents at --agents-port, accepted besides tokens. The common name is the user.")
	flags.IntVar(&o.PeerPort, "peer-port", o.PeerPort, "Port on which replicas of the gateway forward requests to the replica that holds the tunnel of a member; 8092 is the usual value. If 0, replicas do not forward requests.")
	flags.StringSliceVar(&o.Peers, "peers", o.Peers, "Addresses (host:port) of the other replicas. If unset, replicas are found by the endpoints of --service. Used with --peer-port.")
	o.Konnectivity.AddFlags(flags)
}

// Validate returns every error at once.
func (o *Tunnels) Validate() []error {
	all := []error{port("--agents-port", o.AgentsPort)}
	if o.PeerPort != 0 {
		all = append(all, port("--peer-port", o.PeerPort))
	}
	if len(o.Peers) > 0 && o.PeerPort == 0 {
		all = append(all, errors.New("--peers has no effect without --peer-port"))
	}
	for _, peer := range o.Peers {
		all = append(all, address("--peers", peer, false))
	}
	if o.AgentsAddress != "" {
		all = append(all, address("--agents-address", o.AgentsAddress, false))
	}
	if o.AgentsClientCAFile != "" && o.AgentsAddress == "" {
		all = append(all, errors.New("--agents-client-ca-file has no effect without --agents-address"))
	}
	if o.Konnectivity.Agents && o.AgentsAddress == "" {
		all = append(all, errors.New("--konnectivity-agents has no effect without --agents-address"))
	}
	if o.AgentsClientCAFile != "" && o.AgentsClientCAFile == o.Konnectivity.FrontendsCA {
		all = append(all, errors.New("--agents-client-ca-file and --konnectivity-frontends-ca-file are the same file: certificates of agents would also authenticate frontends, and the reverse"))
	}
	return append(all, o.Konnectivity.Validate()...)
}

// Names returns the names at which upstream Konnectivity agents and frontends reach the
// gateway. The certificate must contain them, because these clients verify the name that they dial.
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
