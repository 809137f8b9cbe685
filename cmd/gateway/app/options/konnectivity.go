// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"

	"github.com/spf13/pflag"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	tunnelv1alpha1 "fleetgate.io/fleetgate/pkg/apis/tunnel/v1alpha1"
	"fleetgate.io/fleetgate/pkg/tunnel/konnectivity"
)

// FrontendAudience is the audience of tokens of Konnectivity frontends. It differs from
// tunnelv1alpha1.TokenAudience and from the hub's own, so that tokens of agents, frontends
// and hub users are not interchangeable.
const FrontendAudience = "frontends.tunnel.fleetgate.io"

// Konnectivity configures the listeners for Konnectivity agents and frontends.
type Konnectivity struct {
	Agents bool
	// Frontends is the listen address for frontends, or empty.
	Frontends   string
	FrontendsCA string
	Domain      string
	Allow       []string
	APIServer   string
	Replicas    int
	Streams     int
}

func newKonnectivity() Konnectivity {
	return Konnectivity{APIServer: "kubernetes.default.svc:443", Streams: 1}
}

// AddFlags binds the options to a command line.
func (o *Konnectivity) AddFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.Agents, "konnectivity-agents", o.Agents, "Also accept Konnectivity agents at --agents-port. They authenticate with a token for audience "+tunnelv1alpha1.TokenAudience+" or with a certificate.")
	flags.StringVar(&o.Frontends, "konnectivity-frontends-address", o.Frontends, "Address (host:port) on which the gateway accepts Konnectivity frontends. They authenticate with a token for audience "+FrontendAudience+" or with a certificate. If unset, frontends are not accepted.")
	flags.StringVar(&o.FrontendsCA, "konnectivity-frontends-ca-file", o.FrontendsCA, "PEM file of the CA for client certificates of frontends. It must differ from --agents-client-ca-file. If unset, frontends must use tokens.")
	flags.StringVar(&o.Domain, "konnectivity-frontends-domain", o.Domain, "Domain for frontends. A frontend that connects to <member>.<domain> dials addresses of that member. If unset, the dialed address is the name of the member.")
	flags.StringSliceVar(&o.Allow, "konnectivity-allow", o.Allow, "Additional targets, besides the API servers of members, that frontends may dial: name:port, address:port or network:port. The port can be *.")
	flags.StringVar(&o.APIServer, "konnectivity-apiserver", o.APIServer, "Address at which upstream Konnectivity agents reach the API server of their member. The annotation "+clusterv1beta1.AnnotationAPIServer+" of a MemberCluster overrides it.")
	flags.IntVar(&o.Replicas, "konnectivity-replicas", o.Replicas, "Number of gateway replicas that a Konnectivity agent connects to. If 0, an agent connects to two replicas, if two exist. More than one needs --peer-port.")
	flags.IntVar(&o.Streams, "konnectivity-streams", o.Streams, "Number of streams that a Konnectivity agent opens to each replica. A slow connection blocks only the connections in its own stream.")
}

// Validate returns every error at once.
func (o *Konnectivity) Validate() []error {
	var all []error
	if o.Frontends != "" {
		all = append(all, address("--konnectivity-frontends-address", o.Frontends, false))
	}
	if _, err := konnectivity.ParseAllow(o.Allow); err != nil {
		all = append(all, fmt.Errorf("--konnectivity-allow: %w", err))
	}
	if !konnectivity.IsAddress(o.APIServer) {
		all = append(all, fmt.Errorf("--konnectivity-apiserver %q is not host:port with a port from 1 to 65535: use an address that agents on a member reach, such as kubernetes.default.svc:443", o.APIServer))
	}
	const most = 16
	if o.Replicas < 0 || o.Replicas > most {
		all = append(all, fmt.Errorf("--konnectivity-replicas %d is not between 0 and %d", o.Replicas, most))
	}
	if o.Streams < 1 || o.Streams > most {
		all = append(all, fmt.Errorf("--konnectivity-streams %d is not between 1 and %d", o.Streams, most))
	}
	return all
}
