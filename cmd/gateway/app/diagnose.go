// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
	"fleetgate.io/fleetgate/pkg/diagnose"
	"fleetgate.io/fleetgate/pkg/version"
)

func newDiagnoseCommand() *cobra.Command {
	options := NewDiagnoseOptions()
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
			return Diagnose(command.Context(), options, command.OutOrStdout())
		},
	}
	options.AddFlags(command.Flags())
	return command
}

// Diagnose writes the page.
func Diagnose(ctx context.Context, options *DiagnoseOptions, out io.Writer) error {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = options.Kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: options.Context}).ClientConfig()
	if err != nil {
		return fmt.Errorf("reading your kubeconfig: %w", err)
	}
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	if err := gatewayv1alpha1.AddToScheme(scheme); err != nil {
		return err
	}
	hub, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("reaching the hub at %s: %w", config.Host, err)
	}
	reporter := &diagnose.Reporter{Hub: hub, Namespace: options.Namespace, Version: version.Describe(), Clock: clock.RealClock{}}
	// A hub that does not tell its version is one of the things to see on the page.
	if asked, err := discovery.NewDiscoveryClientForConfig(config); err == nil {
		if info, err := asked.ServerVersion(); err == nil {
			reporter.HubVersion = info.GitVersion
		}
	}
	return reporter.Write(ctx, out)
}
