// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/cmd/gateway/app/options"
	"fleetgate.io/fleetgate/cmd/gateway/app/scheme"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/install"
)

// uninstallOptions are the flags of `gateway uninstall`.
type uninstallOptions struct {
	Kubeconfig string
	Namespace  string
	Stop       string
}

// AddFlags binds the options to a command line.
func (o *uninstallOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "Path of the kubeconfig for the hub. If unset, the ServiceAccount of the Pod is used.")
	flags.StringVar(&o.Namespace, "namespace", o.Namespace, "Namespace of the gateway on the hub.")
	flags.StringVar(&o.Stop, "stop", o.Stop, "Deployment in --namespace to scale to zero first, as the chart does. If unset, the gateways must already be stopped.")
}

// newUninstallCommand returns the command that works when no gateway is available.
func newUninstallCommand() *cobra.Command {
	options := &uninstallOptions{Namespace: clusterv1beta1.SystemNamespace}
	command := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove the webhooks, APIServices and policies of the gateway from the hub",
		Long: `Remove the objects that gateways with --install created to connect the hub's API
server to them: webhook configurations, APIServices and admission policies. The
command needs no running gateway and works from any machine with the rights to
delete these objects. Stop all gateways first, or name their Deployment with
--stop. CustomResourceDefinitions and all stored objects stay.`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			return options.run(command.Context(), command.OutOrStdout())
		},
	}
	options.AddFlags(command.Flags())
	return command
}

// run removes the objects that connect the hub to a gateway, and prints a line for each
// removed object.
func (o *uninstallOptions) run(ctx context.Context, out io.Writer) error {
	hub, err := options.LoadHub(o.Kubeconfig)
	if err != nil {
		return err
	}
	kinds, err := scheme.New()
	if err != nil {
		return err
	}
	direct, err := client.New(hub, client.Options{Scheme: kinds})
	if err != nil {
		return fmt.Errorf("reaching the hub at %s: %w", hub.Host, err)
	}
	uninstaller := &install.Uninstaller{
		Client: direct, Namespace: o.Namespace, Clock: clock.RealClock{},
		Removed: func(kind, name string) { _, _ = fmt.Fprintf(out, "%s/%s removed\n", strings.ToLower(kind), name) },
	}
	if o.Stop != "" {
		if err := uninstaller.Stop(ctx, o.Stop); err != nil {
			return err
		}
	}
	return uninstaller.Uninstall(ctx)
}
