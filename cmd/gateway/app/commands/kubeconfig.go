// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	viewv1alpha1 "fleetgate.io/fleetgate/pkg/apis/view/v1alpha1"
	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
	"fleetgate.io/fleetgate/pkg/apiserver/fleetview"
)

// kubeconfigOptions are the flags of the command kubeconfig.
type kubeconfigOptions struct {
	Kubeconfig     string
	Context        string
	Into           string
	Endpoint       string
	EndpointCAFile string
	Fleet          bool
}

// newKubeconfigOptions returns the defaults.
func newKubeconfigOptions() *kubeconfigOptions { return &kubeconfigOptions{} }

// AddFlags binds the options to a command line.
func (o *kubeconfigOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "Your kubeconfig of the hub. Empty: what kubectl takes, $KUBECONFIG or ~/.kube/config.")
	flags.StringVar(&o.Context, "context", o.Context, "Its context for the hub. Empty: the current one.")
	flags.StringVar(&o.Into, "into", o.Into, "Add the result to this file, which keeps its current context, instead of printing it.")
	flags.StringVar(&o.Endpoint, "endpoint", o.Endpoint, "URL of the gateway's own endpoint, to spare the hub's API server the traffic. Empty: go through the hub.")
	flags.BoolVar(&o.Fleet, "fleet", o.Fleet, "Lead to many members at once, to read from: to all, or to those of the view that is given instead of a member: the name of a FleetView, labels:SELECTOR, or qualified:SELECTOR.")
	flags.StringVar(&o.EndpointCAFile, "endpoint-ca-file", o.EndpointCAFile, "PEM file that verifies --endpoint. Empty: its certificate is publicly trusted.")
}

// newKubeconfigCommand returns the command with which a user of the hub makes a
// kubeconfig for a member of their own one for the hub.
func newKubeconfigCommand() *cobra.Command {
	options := newKubeconfigOptions()
	command := &cobra.Command{
		Use:   "kubeconfig MEMBER | --fleet [VIEW]",
		Short: "Print your kubeconfig of the hub, changed to lead to a member, or to many",
		Long: `Prints the chosen context of your kubeconfig with the server's URL changed to lead
to a member, through the hub or through the gateway's own endpoint. Everything else
stays: who you are, how you prove it, the CA and the proxy. With --into it is added
to a file as a context of its own. With --fleet it leads to all members, or those of a
view, as if they were one cluster to read from.`,
		Example: `  gateway kubeconfig member-1 > member-1.kubeconfig
  gateway kubeconfig member-1 --into ~/.kube/config
  gateway kubeconfig member-1 --endpoint https://gateway.example.com:8443 --endpoint-ca-file ca.crt
  gateway kubeconfig --fleet > fleet.kubeconfig
  gateway kubeconfig --fleet labels:stage=production --into ~/.kube/config`,
		Args:         cobra.MaximumNArgs(1),
		SilenceUsage: true,
		RunE: func(command *cobra.Command, args []string) error {
			to, err := options.target(args)
			if err != nil {
				return err
			}
			return options.run(to, command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	options.AddFlags(command.Flags())
	return command
}

func (o *kubeconfigOptions) run(to target, out, notes io.Writer) error {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	own, err := rules.Load()
	if err != nil {
		return fmt.Errorf("reading your kubeconfig: %w", err)
	}
	way, err := o.way()
	if err != nil {
		return err
	}
	made, err := kubeconfigFor(own, o.Context, to, way)
	if err != nil {
		return err
	}
	if o.Into == "" {
		text, err := clientcmd.Write(*made)
		if err != nil {
			return fmt.Errorf("encoding the kubeconfig: %w", err)
		}
		_, err = out.Write(text)
		return err
	}
	if err := addTo(o.Into, made); err != nil {
		return err
	}
	fmt.Fprintf(notes, "Added context %q to %s. Use it with: kubectl --kubeconfig %s --context %s\n", made.CurrentContext, o.Into, o.Into, made.CurrentContext)
	return nil
}

// target is what a kubeconfig leads to: a member, or a view of many.
type target struct {
	name  string
	fleet bool
}

// target is what the arguments name.
func (o *kubeconfigOptions) target(args []string) (target, error) {
	switch {
	case o.Fleet && len(args) == 0:
		return target{name: viewv1alpha1.AllMembers, fleet: true}, nil
	case len(args) == 0:
		return target{}, errors.New("name a member, or give --fleet")
	case !o.Fleet:
		if problems := validation.IsDNS1123Subdomain(args[0]); len(problems) > 0 {
			return target{}, fmt.Errorf("%q is not the name of a member: %s", args[0], strings.Join(problems, ", "))
		}
		return target{name: args[0]}, nil
	}
	if err := fleetview.ValidateName(args[0]); err != nil {
		return target{}, err
	}
	return target{name: args[0], fleet: true}, nil
}

// paths are those of the target behind the hub, and behind the gateway's own endpoint.
func (t target) paths() (hub, endpoint string) {
	name := url.PathEscape(t.name)
	if t.fleet {
		return fleetview.PathPrefix + name + "/proxy", fleetview.EndpointPrefix + name
	}
	return clustergateway.ProxyPathPrefix + name + "/proxy", clustergateway.EndpointPrefix + name
}

// context is the name of the context, beside the one of the hub.
func (t target) context(hub string) string {
	if t.fleet {
		return hub + "-fleet-" + t.name
	}
	return hub + "-" + t.name
}

// way is how a member is reached: through the hub, or an endpoint with its CA.
type way struct {
	endpoint string
	ca       []byte
}

func (o *kubeconfigOptions) way() (way, error) {
	if o.EndpointCAFile == "" {
		return way{endpoint: o.Endpoint}, nil
	}
	if o.Endpoint == "" {
		return way{}, errors.New("--endpoint-ca-file does nothing without --endpoint")
	}
	ca, err := os.ReadFile(o.EndpointCAFile)
	if err != nil {
		return way{}, fmt.Errorf("reading --endpoint-ca-file: %w", err)
	}
	return way{endpoint: o.Endpoint, ca: ca}, nil
}

// kubeconfigFor is one context of a kubeconfig for the hub, changed to lead to a
// member. The user is the same, so the context, with a cluster of its own, can
// stand beside the one it was made from.
func kubeconfigFor(own *clientcmdapi.Config, contextName string, to target, by way) (*clientcmdapi.Config, error) {
	if contextName == "" {
		contextName = own.CurrentContext
	}
	chosen, ok := own.Contexts[contextName]
	if !ok {
		return nil, fmt.Errorf("your kubeconfig has no context %q: choose one with --context", contextName)
	}
	hub, ok := own.Clusters[chosen.Cluster]
	if !ok {
		return nil, fmt.Errorf("context %q of your kubeconfig names cluster %q, which it does not have", contextName, chosen.Cluster)
	}
	for _, prefix := range []string{clustergateway.ProxyPathPrefix, clustergateway.EndpointPrefix, fleetview.PathPrefix, fleetview.EndpointPrefix} {
		if strings.Contains(hub.Server, prefix) {
			return nil, fmt.Errorf("context %q leads to a member already (%s): choose the hub's with --context", contextName, hub.Server)
		}
	}
	cluster := hub.DeepCopy()
	cluster.LocationOfOrigin = ""
	behindHub, behindEndpoint := to.paths()
	cluster.Server = strings.TrimSuffix(hub.Server, "/") + behindHub
	if by.endpoint != "" {
		cluster.Server = strings.TrimSuffix(by.endpoint, "/") + behindEndpoint
		cluster.CertificateAuthority, cluster.CertificateAuthorityData = "", by.ca
		cluster.TLSServerName, cluster.InsecureSkipTLSVerify = "", false
	}
	name := to.context(contextName)
	context := chosen.DeepCopy()
	context.Cluster, context.LocationOfOrigin = name, ""
	made := clientcmdapi.NewConfig()
	made.CurrentContext = name
	made.Clusters[name], made.Contexts[name] = cluster, context
	if user, ok := own.AuthInfos[chosen.AuthInfo]; ok {
		user = user.DeepCopy()
		user.LocationOfOrigin = ""
		made.AuthInfos[chosen.AuthInfo] = user
	}
	return made, nil
}

// addTo adds contexts to a file, which keeps its current one. A user that is
// there already must be the same.
func addTo(path string, made *clientcmdapi.Config) error {
	present, err := clientcmd.LoadFromFile(path)
	if errors.Is(err, os.ErrNotExist) {
		present, err = clientcmdapi.NewConfig(), nil
	}
	if err != nil {
		return fmt.Errorf("reading --into: %w", err)
	}
	// The file's own paths stay as they are; only for comparing they are made whole.
	resolved := present.DeepCopy()
	if err := clientcmd.ResolveLocalPaths(resolved); err != nil {
		return fmt.Errorf("reading --into: %w", err)
	}
	for name, user := range made.AuthInfos {
		before, ok := resolved.AuthInfos[name]
		if !ok {
			present.AuthInfos[name] = user
			continue
		}
		before.LocationOfOrigin = ""
		if !equality.Semantic.DeepEqual(before, user) {
			return fmt.Errorf("%s has another user %q: choose another file", path, name)
		}
	}
	for name, cluster := range made.Clusters {
		present.Clusters[name] = cluster
	}
	for name, context := range made.Contexts {
		present.Contexts[name] = context
	}
	if present.CurrentContext == "" {
		present.CurrentContext = made.CurrentContext
	}
	if err := clientcmd.WriteToFile(*present, path); err != nil {
		return fmt.Errorf("writing --into: %w", err)
	}
	return nil
}
