// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"net/url"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// Hub configures the address of the hub for the gateway and for members.
type Hub struct {
	Kubeconfig string
	Namespace  string
	// URL is the address at which members reach the hub's API server. CAFile verifies it.
	URL    string
	CAFile string
	// MoveAgents moves agents that registered at another address to URL and CAFile.
	MoveAgents bool
}

func newHub() Hub { return Hub{Namespace: clusterv1beta1.SystemNamespace} }

// AddFlags binds the options to a command line.
func (o *Hub) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "Path of the kubeconfig for the hub. If unset, the gateway uses the ServiceAccount of its Pod.")
	flags.StringVar(&o.Namespace, "namespace", o.Namespace, "Namespace of the gateway on the hub.")
	flags.StringVar(&o.URL, "hub-url", o.URL, "URL at which members reach the hub's API server. The gateway writes it into registration tokens. If unset, the server in the kubeconfig is used.")
	flags.StringVar(&o.CAFile, "hub-ca-file", o.CAFile, "Path of the PEM file that verifies --hub-url. If unset, the CA in the kubeconfig is used.")
	flags.BoolVar(&o.MoveAgents, "move-agents", o.MoveAgents, "Move the agents of all members to --hub-url, verified by --hub-ca-file. Each agent moves after it has reached the hub there. Agents whose hub credential is provided by flags (--member-name) do not move.")
}

// Validate returns every error at once.
func (o *Hub) Validate() []error {
	if o.URL == "" {
		return nil
	}
	if parsed, err := url.Parse(o.URL); err != nil || parsed.Scheme != "https" || parsed.Host == "" {
		return []error{fmt.Errorf("--hub-url %q is not a URL that begins with https://", o.URL)}
	}
	return nil
}

// LoadHub returns the client configuration for the hub from a kubeconfig or, if that is
// empty, from the ServiceAccount of the Pod.
func LoadHub(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("finding the hub: %w: run the gateway in a Pod of the hub or set --kubeconfig", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
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
