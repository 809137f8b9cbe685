// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"net/url"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	configv1alpha1 "fleetgate.io/fleetgate/pkg/apis/config/v1alpha1"
	"fleetgate.io/fleetgate/pkg/kube/configfile"
	"fleetgate.io/fleetgate/pkg/kube/kubeconfig"
)

// Hub configures the address of the hub for the gateway and for members.
type Hub struct {
	*configv1alpha1.HubConfiguration
	// Kubeconfig is a flag only: the file can be the same for gateways in and outside of the hub.
	Kubeconfig string
}

func defaultHub() configv1alpha1.HubConfiguration {
	return configv1alpha1.HubConfiguration{Namespace: clusterv1beta1.SystemNamespace}
}

// AddFlags binds the options to a command line.
func (o *Hub) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "Path of the kubeconfig for the hub. If unset, the gateway uses the ServiceAccount of its Pod.")
	flags.StringVar(&o.Namespace, "namespace", o.Namespace, "Namespace of the gateway on the hub.")
	flags.StringVar(&o.URL, "hub-url", o.URL, "URL at which members reach the hub's API server. The gateway writes it into registration tokens. If unset, the server in the kubeconfig is used.")
	flags.StringVar(&o.CAFile, "hub-ca-file", o.CAFile, "Path of the PEM file that verifies --hub-url. If unset, the CA in the kubeconfig is used.")
	flags.BoolVar(&o.MoveAgents, "move-agents", o.MoveAgents, "Move the agents of all members to --hub-url, verified by --hub-ca-file. Each agent moves after it has reached the hub there. Agents whose hub credential is provided by flags (--member-name) do not move.")
	configfile.Override(flags, "namespace", "hub.namespace")
	configfile.Override(flags, "hub-url", "hub.url")
	configfile.Override(flags, "hub-ca-file", "hub.caFile")
	configfile.Override(flags, "move-agents", "hub.moveAgents")
}

// Validate returns every error at once.
func (o *Hub) Validate() field.ErrorList {
	if o.URL == "" {
		return nil
	}
	if parsed, err := url.Parse(o.URL); err != nil || parsed.Scheme != "https" || parsed.Host == "" {
		return field.ErrorList{field.Invalid(field.NewPath("hub", "url"), o.URL, "must begin with https:// and name a host")}
	}
	return nil
}

// LoadHub returns the client configuration for the hub from a kubeconfig or, if that is
// empty, from the ServiceAccount of the Pod.
func LoadHub(path string) (*rest.Config, error) {
	if path == "" {
		config, err := kubeconfig.InPod()
		if err != nil {
			return nil, fmt.Errorf("finding the hub: %w: run the gateway in a Pod of the hub or set --kubeconfig", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("reading --kubeconfig: %w", err)
	}
	return config, nil
}

// verifiedBy reads the CA that verifies the hub for members, or nil for a publicly trusted one.
func (o *Hub) verifiedBy(hub *rest.Config) ([]byte, error) {
	path := o.CAFile
	if path == "" {
		if len(hub.CAData) > 0 {
			return hub.CAData, nil
		}
		path = hub.CAFile
	}
	if path == "" {
		return nil, nil
	}
	ca, err := readCA(path)
	if err != nil {
		return nil, fmt.Errorf("reading the hub's CA: %w", err)
	}
	return ca, nil
}
