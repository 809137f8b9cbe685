// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"fleetgate.io/fleetgate/cmd/kubectl-fleetgate/app/execcredential"
)

type credentialOptions struct {
	*session
	HubURLs []string
	HubCAs  []string
}

func newCredentialCommand(s *session) *cobra.Command {
	o := &credentialOptions{session: s}
	command := &cobra.Command{
		Use:   "credential",
		Short: "Print an ExecCredential for access to a member",
		Long: `Print an ExecCredential. This is the exec credential plugin for kubeconfigs and for
programs that discover members by ClusterProfiles (access provider cluster-gateway). The
credential is your own for the hub; it is only printed for servers that are the hub's
proxy to a member. In a Pod it is that of the Pod's ServiceAccount; set --hub-url to the
URL of the hub in the ClusterProfiles.`,
		Example: "  kubectl fleetgate credential --hub-url https://hub.example.org:6443",
		Args:    cobra.NoArgs,
		RunE:    func(command *cobra.Command, _ []string) error { return o.run(command.Context()) },
	}
	command.Flags().StringSliceVar(&o.HubURLs, "hub-url", nil, "Further URLs of the hub, in addition to that of your kubeconfig.")
	command.Flags().StringSliceVar(&o.HubCAs, "hub-ca-file", nil, "PEM files with further CAs of the hub, in addition to that of your kubeconfig.")
	return command
}

func (o *credentialOptions) run(ctx context.Context) error {
	own, err := o.ownConfig()
	if err != nil {
		return err
	}
	hub := &execcredential.Hub{URLs: append(o.HubURLs, own.Host)}
	if hub.ProxyURL, err = proxyOf(own); err != nil {
		return err
	}
	trusted := rest.CopyConfig(own)
	if err := rest.LoadTLSFiles(trusted); err != nil {
		return fmt.Errorf("reading your configuration for the hub: %w", err)
	}
	hub.CAs = append(hub.CAs, trusted.CAData)
	for _, file := range o.HubCAs {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading --hub-ca-file: %w", err)
		}
		hub.CAs = append(hub.CAs, text)
	}
	response, err := execcredential.Respond(ctx, []byte(os.Getenv("KUBERNETES_EXEC_INFO")), hub, own)
	if err != nil {
		return err
	}
	return json.NewEncoder(o.Out).Encode(response)
}

// proxyOf is the proxy URL of a configuration; empty for none.
func proxyOf(own *rest.Config) (string, error) {
	if own.Proxy == nil {
		return "", nil
	}
	request, err := http.NewRequest(http.MethodGet, own.Host, http.NoBody)
	if err != nil {
		return "", fmt.Errorf("reading the hub's URL: %w", err)
	}
	proxy, err := own.Proxy(request)
	if err != nil || proxy == nil {
		return "", err
	}
	return proxy.String(), nil
}

// ownConfig is the kubeconfig's configuration if there is one, else that of the Pod. It makes no
// request.
func (o *credentialOptions) ownConfig() (*rest.Config, error) {
	if *o.flags.KubeConfig == "" && os.Getenv("KUBECONFIG") == "" && *o.flags.Context == "" {
		if pod, err := rest.InClusterConfig(); err == nil {
			return pod, nil
		}
	}
	if err := o.chooseHub(); err != nil {
		return nil, err
	}
	own, err := o.flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reading your kubeconfig of the hub: %w", err)
	}
	return own, nil
}
