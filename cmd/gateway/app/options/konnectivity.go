// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"net"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	configv1alpha1 "fleetgate.io/fleetgate/pkg/apis/config/v1alpha1"
	"fleetgate.io/fleetgate/pkg/kube/configfile"
	"fleetgate.io/fleetgate/pkg/tunnel/konnectivity"
)

// FrontendAudience is the audience of tokens of Konnectivity frontends. It differs from
// tunnelv1alpha1.TokenAudience and from the hub's own, so that tokens of agents, frontends
// and hub users are not interchangeable.
const FrontendAudience = "frontends.tunnel.fleetgate.io"

func validateKonnectivity(at *field.Path, o *configv1alpha1.KonnectivityConfiguration) field.ErrorList {
	var all field.ErrorList
	if o.FrontendsAddress != "" {
		all = append(all, configfile.Address(at.Child("frontendsAddress"), o.FrontendsAddress, false)...)
	}
	if _, err := konnectivity.ParseAllow(o.Allow); err != nil {
		all = append(all, field.Invalid(at.Child("allow"), o.Allow, err.Error()))
	}
	if !konnectivity.IsAddress(o.APIServer) {
		all = append(all, field.Invalid(at.Child("apiServer"), o.APIServer, "must be host:port with a port from 1 to 65535: use an address that agents on a member reach, such as kubernetes.default.svc:443"))
	}
	const most = 16
	all = append(all, configfile.Between(at.Child("replicas"), o.Replicas, 0, most)...)
	return append(all, configfile.Between(at.Child("streams"), o.Streams, 1, most)...)
}

// Names returns the names at which upstream Konnectivity agents and frontends reach the
// gateway. The certificate must contain them, because these clients verify the name that they dial.
func (o *Tunnels) Names() []string {
	var names []string
	host, _, err := net.SplitHostPort(o.AgentsAddress)
	if o.Konnectivity.Agents && err == nil && net.ParseIP(host) == nil {
		names = append(names, host)
	}
	if domain := strings.Trim(o.Konnectivity.FrontendsDomain, "."); o.Konnectivity.FrontendsAddress != "" && domain != "" {
		names = append(names, "*."+domain)
	}
	return names
}
