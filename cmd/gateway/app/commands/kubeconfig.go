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

	"fleetgate.io/fleetgate/pkg/memberconfig"
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
	flags.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "Your kubeconfig of the hub. Empty: what kubectl takes, $KUBECONFIG or ~/.kube/config.")
	flags.StringVar(&o.Context, "context", o.Context, "Its context for the hub. Empty: the current one.")
	flags.StringVar(&o.Into, "into", o.Into, "Add the result to this file, which keeps its current context, instead of printing it.")
	flags.StringVar(&o.Endpoint, "endpoint", o.Endpoint, "URL of the gateway's own endpoint, to spare the hub's API server the traffic. With * for the first label of its host, as in https://*.members.example.com:8443, the member's own host there (--member-domain of the gateway). Empty: go through the hub.")
	flags.BoolVar(&o.Fleet, "fleet", o.Fleet, "Lead to many members at once, to read from: to all, or to those of the view that is given instead of a member: the name of a FleetView, labels:SELECTOR, or qualified:SELECTOR.")
	flags.StringVar(&o.EndpointCAFile, "endpoint-ca-file", o.EndpointCAFile, "PEM file that verifies --endpoint. Empty: its certificate is publicly trusted.")
}

// newKubeconfigCommand returns the command with which a user of the hub makes a
// kubeconfig for a member of their own one for the hub.
func newKubeconfigCommand() *cobra.Command {
	options := &kubeconfigOptions{}
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
	way, err := o.way()
	if err != nil {
		return err
	}
	made, err := memberconfig.For(own, o.Context, to, way)
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

// target is what the arguments name.
func (o *kubeconfigOptions) target(args []string) (memberconfig.Target, error) {
	switch {
	case o.Fleet && len(args) == 0:
		return memberconfig.View("")
	case len(args) == 0:
		return memberconfig.Target{}, errors.New("name a member, or give --fleet")
	case o.Fleet:
		return memberconfig.View(args[0])
	}
	return memberconfig.Member(args[0])
}

func (o *kubeconfigOptions) way() (memberconfig.Way, error) {
	if o.EndpointCAFile == "" {
		return memberconfig.Way{Endpoint: o.Endpoint}, nil
	}
	if o.Endpoint == "" {
		return memberconfig.Way{}, errors.New("--endpoint-ca-file does nothing without --endpoint")
	}
	ca, err := os.ReadFile(o.EndpointCAFile)
	if err != nil {
		return memberconfig.Way{}, fmt.Errorf("reading --endpoint-ca-file: %w", err)
	}
	return memberconfig.Way{Endpoint: o.Endpoint, CA: ca}, nil
}
