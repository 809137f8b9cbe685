// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"

	"fleetgate.io/fleetgate/pkg/apiserver/memberconfig"
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

// AddFlags binds the options to a command line.
func (o *kubeconfigOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "Path of your kubeconfig for the hub. If unset, the default of kubectl: $KUBECONFIG or ~/.kube/config.")
	flags.StringVar(&o.Context, "context", o.Context, "Context for the hub in your kubeconfig. If unset, the current context is used.")
	flags.StringVar(&o.Into, "into", o.Into, "Add the result to this file instead of printing it. The current context of the file does not change.")
	flags.StringVar(&o.Endpoint, "endpoint", o.Endpoint, "URL of the gateway's own endpoint, to bypass the hub's API server. A * as the first label of the host, as in https://*.members.example.com:8443, stands for the member's own host there (serving.memberDomain of the gateway). If unset, requests go through the hub's API server.")
	flags.BoolVar(&o.Fleet, "fleet", o.Fleet, "Read from many members at once: from all members, or from those of a view that you give instead of a member. A view is the name of a FleetView, labels:SELECTOR or qualified:SELECTOR.")
	flags.StringVar(&o.EndpointCAFile, "endpoint-ca-file", o.EndpointCAFile, "PEM file that verifies --endpoint. If unset, its certificate must be publicly trusted.")
}

// newKubeconfigCommand returns the command that derives a kubeconfig for a member from the
// user's kubeconfig for the hub.
func newKubeconfigCommand() *cobra.Command {
	options := &kubeconfigOptions{}
	command := &cobra.Command{
		Use:   "kubeconfig MEMBER | --fleet [VIEW]",
		Short: "Print a kubeconfig for one or many members, made from your kubeconfig for the hub",
		Long: `Print the chosen context of your kubeconfig with the server URL of a member. The
URL goes through the hub's API server or through the gateway's own endpoint.
Everything else stays the same: user, credentials, CA and proxy. With --into, the
context is added to a file. With --fleet, the URL serves all members, or those of
a view, as one cluster to read from.`,
		Example: `  gateway kubeconfig member-1 > member-1.kubeconfig
  gateway kubeconfig member-1 --into ~/.kube/config
  gateway kubeconfig member-1 --endpoint https://gateway.example.com:8443 --endpoint-ca-file ca.crt
  gateway kubeconfig member-1 --endpoint 'https://*.members.example.com:8443' --endpoint-ca-file ca.crt
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

func (o *kubeconfigOptions) run(to memberconfig.Target, out, notes io.Writer) error {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	own, err := rules.Load()
	if err != nil {
		return fmt.Errorf("reading your kubeconfig: %w", err)
	}
	route, err := o.route()
	if err != nil {
		return err
	}
	made, err := memberconfig.For(own, o.Context, to, route)
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
	if err := memberconfig.AddTo(o.Into, made); err != nil {
		return err
	}
	fmt.Fprintf(notes, "Added context %q to %s. Use it with: kubectl --kubeconfig %s --context %s\n", made.CurrentContext, o.Into, o.Into, made.CurrentContext)
	return nil
}

// target returns the member or the view in the arguments.
func (o *kubeconfigOptions) target(args []string) (memberconfig.Target, error) {
	switch {
	case o.Fleet && len(args) == 0:
		return memberconfig.View("")
	case len(args) == 0:
		return memberconfig.Target{}, errors.New("no member given: name a member, or use --fleet")
	case o.Fleet:
		return memberconfig.View(args[0])
	}
	return memberconfig.Member(args[0])
}

func (o *kubeconfigOptions) route() (memberconfig.Route, error) {
	if o.EndpointCAFile == "" {
		return memberconfig.Route{Endpoint: o.Endpoint}, nil
	}
	if o.Endpoint == "" {
		return memberconfig.Route{}, errors.New("--endpoint-ca-file has no effect without --endpoint")
	}
	ca, err := os.ReadFile(o.EndpointCAFile)
	if err != nil {
		return memberconfig.Route{}, fmt.Errorf("reading --endpoint-ca-file: %w", err)
	}
	return memberconfig.Route{Endpoint: o.Endpoint, CA: ca}, nil
}
