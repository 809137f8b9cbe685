// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"fleetgate.io/fleetgate/pkg/apiserver/memberconfig"
)

// back is the argument that switches back to the hub.
const back = "-"

type useOptions struct {
	*session
	Fleet bool
}

func newUseCommand(s *session) *cobra.Command {
	o := &useOptions{session: s}
	command := &cobra.Command{
		Use:   "use MEMBER | --fleet [VIEW] | -",
		Short: "Switch kubectl to a member or to a fleet view",
		Long: `Switch kubectl to a member: add a context for the member, through the hub and with your
credentials, to your kubeconfig and make it current. With --fleet, the context is for
reading all members at once, or those of a view. "use -" switches back to the hub and
removes all contexts that the command has added. The plugin's own commands always work on
the hub.`,
		Example: `  kubectl fleetgate use member-1
  kubectl fleetgate use --fleet labels:region=eu
  kubectl fleetgate use -`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: s.completeNames(false, memberNames),
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] == back {
				return o.back()
			}
			to, err := o.targetOf(command.Context(), o.Fleet, args)
			if err != nil {
				return err
			}
			return o.use(to)
		},
	}
	command.Flags().BoolVar(&o.Fleet, "fleet", false, "Select all members, or those of the given view, instead of one member.")
	return command
}

// targetOf is the target that the arguments of use and kubeconfig select. A member has to exist on
// the hub.
func (s *session) targetOf(ctx context.Context, fleet bool, args []string) (memberconfig.Target, error) {
	switch {
	case fleet && len(args) == 0:
		return memberconfig.View("")
	case len(args) == 0:
		return memberconfig.Target{}, errors.New("no member selected: set a member, or --fleet")
	case fleet:
		return memberconfig.View(args[0])
	}
	to, err := memberconfig.Member(args[0])
	if err != nil {
		return to, err
	}
	h, err := s.hub()
	if err != nil {
		return to, err
	}
	return to, isMember(ctx, h, to.Name)
}

func (o *useOptions) use(to memberconfig.Target) error {
	made, hubContext, err := o.contextFor(to)
	if err != nil {
		return err
	}
	own, _, err := o.own()
	if err != nil {
		return err
	}
	mark, err := json.Marshal(map[string]string{"context": hubContext})
	if err != nil {
		return fmt.Errorf("encoding the kubeconfig: %w", err)
	}
	if err := checkFree(own, made.CurrentContext); err != nil {
		return err
	}
	context := made.Contexts[made.CurrentContext]
	context.Extensions = maps.Clone(context.Extensions)
	if context.Extensions == nil {
		context.Extensions = map[string]runtime.Object{}
	}
	context.Extensions[extensionMadeFrom] = &runtime.Unknown{Raw: mark, ContentType: runtime.ContentTypeJSON}
	own.Clusters[made.CurrentContext], own.Contexts[made.CurrentContext] = made.Clusters[made.CurrentContext], context
	own.CurrentContext = made.CurrentContext
	if err := o.write(own); err != nil {
		return err
	}
	o.printf("Switched to %s with context %q. To switch back, run: kubectl fleetgate use -\n", to.Name, made.CurrentContext)
	return nil
}

// checkFree returns an error if the user's kubeconfig has a context or cluster of that name which
// use did not create: those are never overwritten, nor removed by use -.
func checkFree(own *clientcmdapi.Config, name string) error {
	present := own.Contexts[name]
	switch {
	case present != nil && madeFrom(present) == "":
		return fmt.Errorf("your kubeconfig has a context %[1]q that this command did not create: switch to it with kubectl config use-context %[1]s, or rename it with kubectl config rename-context", name)
	case present == nil && own.Clusters[name] != nil:
		return fmt.Errorf("your kubeconfig has a cluster %[1]q that this command did not create: if it is not needed, delete it with kubectl config delete-cluster %[1]s", name)
	}
	return nil
}

// back removes the contexts that use created. The current context becomes that of the hub.
func (o *useOptions) back() error {
	own, hubContext, err := o.own()
	if err != nil {
		return err
	}
	removed := 0
	for name, context := range own.Contexts {
		if madeFrom(context) != "" {
			delete(own.Contexts, name)
			// use creates a cluster with the name of the context; another cluster is the user's.
			delete(own.Clusters, name)
			removed++
		}
	}
	own.CurrentContext = hubContext
	if err := o.write(own); err != nil {
		return err
	}
	o.printf("Switched to the hub with context %q; removed %d contexts\n", hubContext, removed)
	return nil
}

// contextFor creates a context for a target from the hub's. File paths in it are absolute, so that it
// works in any kubeconfig file.
func (s *session) contextFor(to memberconfig.Target) (made *clientcmdapi.Config, hubContext string, err error) {
	_, hubContext, err = s.own()
	if err != nil {
		return nil, "", err
	}
	resolved, err := s.flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, "", fmt.Errorf("reading your kubeconfig: %w", err)
	}
	made, err = memberconfig.For(&resolved, hubContext, to, memberconfig.Route{})
	return made, hubContext, err
}

// own is the user's kubeconfig as stored, and the name of its context for the hub.
func (s *session) own() (*clientcmdapi.Config, string, error) {
	own, err := s.access().GetStartingConfig()
	if err != nil {
		return nil, "", fmt.Errorf("reading your kubeconfig: %w", err)
	}
	hubContext := own.CurrentContext
	if *s.flags.Context != "" {
		hubContext = *s.flags.Context
	}
	if context := own.Contexts[hubContext]; context != nil && madeFrom(context) != "" {
		hubContext = madeFrom(context)
	}
	return own, hubContext, nil
}

func (s *session) write(own *clientcmdapi.Config) error {
	if err := clientcmd.ModifyConfig(s.access(), *own, true); err != nil {
		return fmt.Errorf("writing your kubeconfig: %w", err)
	}
	return nil
}

// access reads and writes the user's kubeconfig files as kubectl config does.
func (s *session) access() clientcmd.ConfigAccess {
	options := clientcmd.NewDefaultPathOptions()
	options.LoadingRules.ExplicitPath = *s.flags.KubeConfig
	return options
}
