// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"net"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"fleetgate.io/fleetgate/pkg/kube/configfile"
	"fleetgate.io/fleetgate/pkg/tunnel/konnectivity"
)

// Values of tunnel.protocol.
const (
	tunnelNative       = "native"
	tunnelKonnectivity = "konnectivity"
)

// SpeaksKonnectivity reports whether the tunnel has the protocol of Konnectivity.
func (o *Options) SpeaksKonnectivity() bool { return o.Tunnel.Protocol == tunnelKonnectivity }

func (o *Options) validateTunnel() field.ErrorList {
	at, given := field.NewPath("tunnel"), &o.Tunnel
	all := configfile.OneOf(at.Child("protocol"), given.Protocol, tunnelNative, tunnelKonnectivity)
	if o.SpeaksKonnectivity() {
		if host, _, err := net.SplitHostPort(given.Server); err != nil || host == "" {
			all = append(all, field.Invalid(at.Child("server"), given.Server, "must be host:port"))
		}
	}
	useless := given.Server != "" || given.CAFile != "" || given.ServerName != "" || given.CertFile != "" || len(given.Allow) > 0
	all = append(all, configfile.Without(at, given.Protocol == tunnelNative && useless, "protocol konnectivity")...)
	all = append(all, configfile.Without(at.Child("dataConnections"), o.SpeaksKonnectivity() && given.DataConnections, "protocol native")...)
	all = append(all, configfile.Together(at.Child("certFile"), "set both or neither of certFile and keyFile", given.CertFile != "", given.KeyFile != "")...)
	if _, err := konnectivity.ParseAllow(given.Allow); err != nil {
		all = append(all, field.Invalid(at.Child("allow"), given.Allow, err.Error()))
	}
	return all
}
