// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/client-go/discovery"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/inspect/diagnose"
	"fleetgate.io/fleetgate/pkg/inspect/overview"
	"fleetgate.io/fleetgate/pkg/telemetry/version"
)

func newDiagnoseCommand(s *session) *cobra.Command {
	system := clusterv1beta1.SystemNamespace
	command := &cobra.Command{
		Use:   "diagnose",
		Short: "Print a support report of the fleet",
		Long: `Print a report of the fleet for support: versions, gateways, permissive settings, members
with their tunnels, tokens, placements that are not available and recent warning events.
The report reads the hub as you. It reads no Secrets and redacts what looks like a
credential. Review it before you share it.`,
		Example: "  kubectl fleetgate diagnose",
		Args:    cobra.NoArgs,
		RunE: s.onHub(func(ctx context.Context, h *overview.Hub, _ []string) error {
			reporter := &diagnose.Reporter{Hub: h, Namespace: system, Version: version.Describe(), Clock: s.Clock}
			// The report shows a version that cannot be read as unknown.
			if asked, err := discovery.NewDiscoveryClientForConfig(h.Config); err == nil {
				if info, err := asked.ServerVersion(); err == nil {
					reporter.HubVersion = info.GitVersion
				}
			}
			return reporter.Write(ctx, s.Out)
		}),
	}
	command.Flags().StringVar(&system, "system-namespace", system, "Namespace of the gateway on the hub.")
	return command
}
