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
	"fleetgate.io/fleetgate/pkg/diagnose"
	"fleetgate.io/fleetgate/pkg/version"
)

// diagnoseOptions are the flags of `gateway diagnose`.
type diagnoseOptions struct {
	Kubeconfig string
	Context    string
	Namespace  string
}

// AddFlags binds the options to a command line.
func (o *diagnoseOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "Your kubeconfig of the hub. Empty: what kubectl takes, $KUBECONFIG or ~/.kube/config.")
	flags.StringVar(&o.Context, "context", o.Context, "Its context for the hub. Empty: the current one.")
	flags.StringVar(&o.Namespace, "namespace", o.Namespace, "Namespace of the gateway on the hub.")
}

func newDiagnoseCommand() *cobra.Command {
	options := &diagnoseOptions{Namespace: clusterv1beta1.SystemNamespace}
	command := &cobra.Command{
		Use:   "diagnose",
		Short: "Print on one page what somebody who helps would ask",
		Long: `Diagnose reads the hub as you, and prints versions, gateways, members with their
tunnels, tokens, placements that are stuck and the latest warnings. It changes
nothing, reads no Secret, and takes out of messages what looks like a credential;
names of members, namespaces and objects are in it. Read it before you send it.`,
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
	// A hub that does not tell its version is one of the things to see on the page.
	if asked, err := discovery.NewDiscoveryClientForConfig(config); err == nil {
		if info, err := asked.ServerVersion(); err == nil {
			reporter.HubVersion = info.GitVersion
		}
	}
	return reporter.Write(ctx, out)
}
