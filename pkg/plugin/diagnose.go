// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/client-go/discovery"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/diagnose"
	"fleetgate.io/fleetgate/pkg/plugin/hub"
	"fleetgate.io/fleetgate/pkg/version"
)

func newDiagnoseCommand(s *session) *cobra.Command {
	system := clusterv1beta1.SystemNamespace
	command := &cobra.Command{
		Use:   "diagnose",
		Short: "Print on one page what somebody who helps would ask",
		Long: `Diagnose reads the hub as you, and prints versions, gateways, members with their
tunnels, tokens, placements that are stuck and the latest warnings. It reads no Secret,
and takes out of messages what looks like a credential. Read it before you send it.`,
		Example: "  kubectl fleetgate diagnose",
		Args:    cobra.NoArgs,
		RunE: s.onHub(func(ctx context.Context, h *hub.Hub, _ []string) error {
			reporter := &diagnose.Reporter{Hub: h, Namespace: system, Version: version.Describe(), Clock: s.Clock}
			// A hub that does not tell its version is one of the things to see on the page.
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
