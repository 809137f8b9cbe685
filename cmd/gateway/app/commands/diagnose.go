// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/cmd/gateway/app/scheme"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
	"fleetgate.io/fleetgate/pkg/inspect/diagnose"
	"fleetgate.io/fleetgate/pkg/telemetry/version"
)

// diagnoseOptions are the flags of `gateway diagnose`.
type diagnoseOptions struct {
	Kubeconfig string
	Context    string
	Namespace  string
}

// AddFlags binds the options to a command line.
func (o *diagnoseOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "Path of your kubeconfig for the hub. If unset, the default of kubectl: $KUBECONFIG or ~/.kube/config.")
	flags.StringVar(&o.Context, "context", o.Context, "Context for the hub in your kubeconfig. If unset, the current context is used.")
	flags.StringVar(&o.Namespace, "namespace", o.Namespace, "Namespace of the gateway on the hub.")
}

func newDiagnoseCommand() *cobra.Command {
	options := &diagnoseOptions{Namespace: clusterv1beta1.SystemNamespace}
	command := &cobra.Command{
		Use:   "diagnose",
		Short: "Print the state of the fleet on one page, for a support request",
		Long: `Read the hub with your credentials and print versions, gateways, members with
their tunnels, tokens, stuck placements and the latest warnings. The command
changes nothing, reads no Secret, and removes anything that looks like a
credential from messages. The output contains names of members, namespaces and
objects. Read it before you send it.`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			return options.run(command.Context(), command.OutOrStdout())
		},
	}
	options.AddFlags(command.Flags())
	return command
}

// run writes the page.
func (o *diagnoseOptions) run(ctx context.Context, out io.Writer) error {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.Context}).ClientConfig()
	if err != nil {
		return fmt.Errorf("reading your kubeconfig: %w", err)
	}
	kinds, err := scheme.New()
	if err != nil {
		return err
	}
	if err := gatewayv1alpha1.AddToScheme(kinds); err != nil {
		return err
	}
	hub, err := client.New(config, client.Options{Scheme: kinds})
	if err != nil {
		return fmt.Errorf("reaching the hub at %s: %w", config.Host, err)
	}
	reporter := &diagnose.Reporter{Hub: hub, Namespace: o.Namespace, Version: version.Describe(), Clock: clock.RealClock{}}
	// A hub without a version is a finding on the page, not an error.
	if asked, err := discovery.NewDiscoveryClientForConfig(config); err == nil {
		if info, err := asked.ServerVersion(); err == nil {
			reporter.HubVersion = info.GitVersion
		}
	}
	return reporter.Write(ctx, out)
}
