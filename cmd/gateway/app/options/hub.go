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

// Hub says where the hub is, for the gateway and for members.
type Hub struct {
	Kubeconfig string
	Namespace  string
	// URL is where members reach the hub's API server, and CAFile verifies it.
	URL    string
	CAFile string
	// MoveAgents has agents that came by another way move to URL and CAFile.
	MoveAgents bool
}

func newHub() Hub { return Hub{Namespace: clusterv1beta1.SystemNamespace} }

// AddFlags binds the options to a command line.
func (o *Hub) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "Kubeconfig of the hub. Empty: the account of the Pod that the gateway runs in.")
	flags.StringVar(&o.Namespace, "namespace", o.Namespace, "Namespace of the gateway on the hub.")
	flags.StringVar(&o.URL, "hub-url", o.URL, "URL of the hub's API server as members reach it, written into registration tokens. Empty: the one of the kubeconfig.")
	flags.StringVar(&o.CAFile, "hub-ca-file", o.CAFile, "PEM file that verifies --hub-url. Empty: the CA of the kubeconfig.")
	flags.BoolVar(&o.MoveAgents, "move-agents", o.MoveAgents, "Have the agents of all members come to --hub-url, verified by --hub-ca-file, from now on: each once it has reached the hub there. Those that are given an identity by others stay where they are.")
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

// LoadHub returns how to reach the hub with a kubeconfig, or, where that is empty, with
// the account of the Pod that the program runs in.
func LoadHub(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("finding the hub: %w: run the gateway in a Pod of the hub or give --kubeconfig", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading --kubeconfig: %w", err)
	}
	return config, nil
}

// verifiedBy reads the CA that verifies the hub for members: nil for one that everybody trusts.
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
