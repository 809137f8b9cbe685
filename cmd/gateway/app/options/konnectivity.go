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

// FrontendAudience is whom the tokens of Konnectivity's frontends are for: an agent's, for
// tunnelv1alpha1.TokenAudience, is worth nothing there, nor the reverse, nor either
// at the hub's API server.
const FrontendAudience = "frontends.tunnel.fleetgate.io"

// Konnectivity says how Konnectivity's agents and frontends come in.
type Konnectivity struct {
	Agents bool
	// Frontends is the address at which they come in, or empty.
	Frontends   string
	FrontendsCA string
	Domain      string
	Allow       []string
	APIServer   string
	Replicas    int
	Lanes       int
}

func newKonnectivity() Konnectivity {
	return Konnectivity{APIServer: "kubernetes.default.svc:443", Lanes: 1}
}

// AddFlags binds the options to a command line.
func (o *Konnectivity) AddFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.Agents, "konnectivity-agents", o.Agents, "Take Konnectivity's agents at --agents-port too, with a token for audience "+tunnelv1alpha1.TokenAudience+" or a certificate.")
	flags.StringVar(&o.Frontends, "konnectivity-frontends-address", o.Frontends,
		"Address (host:port) at which Konnectivity frontends come in, with a token for audience "+FrontendAudience+" or a certificate. Empty: they do not.")
	flags.StringVar(&o.FrontendsCA, "konnectivity-frontends-ca-file", o.FrontendsCA,
		"PEM file of the CA of frontends' certificates, another one than that of --agents-client-ca-file. Empty: tokens only.")
	flags.StringVar(&o.Domain, "konnectivity-frontends-domain", o.Domain,
		"Frontends that reach the gateway as <member>.<this domain> dial addresses of that member. Empty: the address is the member's name.")
	flags.StringSliceVar(&o.Allow, "konnectivity-allow", o.Allow,
		"What frontends may dial beside members' API servers: name:port, address:port or network:port, where the port may be *.")
	flags.StringVar(&o.APIServer, "konnectivity-apiserver", o.APIServer, "Where Konnectivity's own agents find their member's API server, unless annotation "+clusterv1beta1.AnnotationAPIServer+" of the MemberCluster says where.")
	flags.IntVar(&o.Replicas, "konnectivity-replicas", o.Replicas, "Replicas of the gateway that Konnectivity agents connect to. 0: two, if there are so many, which needs --peer-port.")
	flags.IntVar(&o.Lanes, "konnectivity-lanes", o.Lanes, "Streams that a Konnectivity agent opens to each replica: a slow connection holds up those of its own.")
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
		all = append(all, fmt.Errorf("--konnectivity-apiserver %q is not host:port, with a port from 1 to 65535: give what agents on a member reach, such as kubernetes.default.svc:443", o.APIServer))
	}
	const most = 16
	if o.Replicas < 0 || o.Replicas > most {
		all = append(all, fmt.Errorf("--konnectivity-replicas %d is not between 0 and %d", o.Replicas, most))
	}
	if o.Lanes < 1 || o.Lanes > most {
		all = append(all, fmt.Errorf("--konnectivity-lanes %d is not between 1 and %d", o.Lanes, most))
	}
	return all
}
