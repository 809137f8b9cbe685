// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"fleetgate.io/fleetgate/pkg/apiserver/memberconfig"
)

type kubeconfigOptions struct {
	*session
	Fleet bool
	Into  string
}

func newKubeconfigCommand(s *session) *cobra.Command {
	o := &kubeconfigOptions{session: s}
	command := &cobra.Command{
		Use:   "kubeconfig MEMBER | --fleet [VIEW]",
		Short: "Print a kubeconfig for a member or for a fleet view",
		Long: `Print a kubeconfig for a member or for a fleet view. It is the hub's context of your
kubeconfig with another server URL; user, CA and proxy stay the same. With --into, the
command adds the context to a file and keeps the current context of that file.`,
		Example: `  kubectl fleetgate kubeconfig member-1 > member-1.kubeconfig
  kubectl fleetgate kubeconfig --fleet --into fleet.kubeconfig`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: s.completeNames(false, memberNames),
		RunE: func(command *cobra.Command, args []string) error {
			to, err := o.targetOf(command.Context(), o.Fleet, args)
			if err != nil {
				return err
			}
			return o.run(to)
		},
	}
	command.Flags().BoolVar(&o.Fleet, "fleet", false, "Select all members, or those of the given view, instead of one member.")
	command.Flags().StringVar(&o.Into, "into", "", "Add the context to this file instead of printing it.")
	return command
}

func (o *kubeconfigOptions) run(to memberconfig.Target) error {
	made, _, err := o.contextFor(to)
	if err != nil {
		return err
	}
	if o.Into != "" {
		if err := memberconfig.AddTo(o.Into, made); err != nil {
			return err
		}
		o.note("Added context %q to %s\n", made.CurrentContext, o.Into)
		return nil
	}
	text, err := clientcmd.Write(*made)
	if err != nil {
		return fmt.Errorf("encoding the kubeconfig: %w", err)
	}
	_, err = o.Out.Write(text)
	return err
}
