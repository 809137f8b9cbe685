// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation/field"

	configv1alpha1 "fleetgate.io/fleetgate/pkg/apis/config/v1alpha1"
	"fleetgate.io/fleetgate/pkg/kube/configfile"
)

// Tunnels configures the listeners for agents and for other replicas.
type Tunnels struct {
	*configv1alpha1.TunnelsConfiguration
}

func defaultTunnels() configv1alpha1.TunnelsConfiguration {
	return configv1alpha1.TunnelsConfiguration{
		AgentsPort:   8091,
		Konnectivity: configv1alpha1.KonnectivityConfiguration{APIServer: "kubernetes.default.svc:443", Streams: 1},
	}
}

// AddFlags binds the options to a command line.
func (o *Tunnels) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.AgentsAddress, "agents-address", o.AgentsAddress, "Address (host:port) at which agents reach --agents-port. If unset, the port is closed and all tunnels go through the hub's API server.")
	flags.IntVar(&o.AgentsPort, "agents-port", o.AgentsPort, "Port for tunnels of agents. Used with --agents-address.")
	flags.IntVar(&o.PeerPort, "peer-port", o.PeerPort, "Port on which replicas of the gateway forward requests to the replica that holds the tunnel of a member; 8092 is the usual value. If 0, replicas do not forward requests.")
	flags.StringSliceVar(&o.Peers, "peers", o.Peers, "Addresses (host:port) of the other replicas. If unset, replicas are found by the endpoints of --service. Used with --peer-port.")
	configfile.Override(flags, "agents-address", "tunnels.agentsAddress")
	configfile.Override(flags, "agents-port", "tunnels.agentsPort")
	configfile.Override(flags, "peer-port", "tunnels.peerPort")
	configfile.Override(flags, "peers", "tunnels.peers")
}

// Validate returns every error at once.
func (o *Tunnels) Validate() field.ErrorList {
	at := field.NewPath("tunnels")
	all := configfile.Port(at.Child("agentsPort"), o.AgentsPort)
	if o.PeerPort != 0 {
		all = append(all, configfile.Port(at.Child("peerPort"), o.PeerPort)...)
	}
	all = append(all, configfile.Without(at.Child("peers"), len(o.Peers) > 0 && o.PeerPort == 0, "tunnels.peerPort (--peer-port)")...)
	for i, peer := range o.Peers {
		all = append(all, configfile.Address(at.Child("peers").Index(i), peer, false)...)
	}
	if o.AgentsAddress != "" {
		all = append(all, configfile.Address(at.Child("agentsAddress"), o.AgentsAddress, false)...)
	}
	const needed = "tunnels.agentsAddress (--agents-address)"
	all = append(all, configfile.Without(at.Child("agentsClientCAFile"), o.AgentsClientCAFile != "" && o.AgentsAddress == "", needed)...)
	all = append(all, configfile.Without(at.Child("dataConnections"), o.DataConnections && o.AgentsAddress == "", needed)...)
	all = append(all, configfile.Without(at.Child("konnectivity", "agents"), o.Konnectivity.Agents && o.AgentsAddress == "", needed)...)
	if o.AgentsClientCAFile != "" && o.AgentsClientCAFile == o.Konnectivity.FrontendsCAFile {
		all = append(all, field.Invalid(at.Child("konnectivity", "frontendsCAFile"), o.AgentsClientCAFile,
			"must differ from tunnels.agentsClientCAFile: certificates of agents would also authenticate frontends, and the reverse"))
	}
	return append(all, validateKonnectivity(at.Child("konnectivity"), &o.Konnectivity)...)
}
