// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

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

	"fleetgate.io/fleetgate/pkg/memberconfig"
)

// back is the argument that goes back to the hub.
const back = "-"

type useOptions struct {
	*session
	Fleet bool
}

func newUseCommand(s *session) *cobra.Command {
	o := &useOptions{session: s}
	command := &cobra.Command{
		Use:   "use MEMBER | --fleet [VIEW] | -",
		Short: "Have kubectl work on a member, or on many at once, until use -",
		Long: `Use adds a context to your kubeconfig that leads to a member through the hub, as you,
and makes it the current one. With --fleet it leads to all members at once, or to those
of a view, to read from. "use -" goes back to the hub and takes away every context that
use has added. The plugin's own commands go on to work on the hub meanwhile.`,
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
	command.Flags().BoolVar(&o.Fleet, "fleet", false, "Lead to all members, or to those of the view that is given.")
	return command
}

// targetOf is what the arguments of use and kubeconfig name. A member has to be one that the
// hub has.
func (s *session) targetOf(ctx context.Context, fleet bool, args []string) (memberconfig.Target, error) {
	switch {
	case fleet && len(args) == 0:
		return memberconfig.View("")
	case len(args) == 0:
		return memberconfig.Target{}, errors.New("name a member, or give --fleet")
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
	made, hubContext, err := o.lead(to)
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
	if err := notTheirs(own, made.CurrentContext); err != nil {
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
	o.say("kubectl works on %s now, as context %q. Go back with: kubectl fleetgate use -\n", to.Name, made.CurrentContext)
	return nil
}

// notTheirs makes sure that a name in the user's kubeconfig is free, or is of a context that use
// has made: what the user has made is not overwritten, and not taken away by use -.
func notTheirs(own *clientcmdapi.Config, name string) error {
	present := own.Contexts[name]
	switch {
	case present != nil && madeFrom(present) == "":
		return fmt.Errorf("your kubeconfig has a context %[1]q that use did not make: choose it with kubectl config use-context %[1]s, or give it another name with kubectl config rename-context", name)
	case present == nil && own.Clusters[name] != nil:
		return fmt.Errorf("your kubeconfig has a cluster %[1]q that use did not make: if nothing needs it, remove it with kubectl config delete-cluster %[1]s", name)
	}
	return nil
}

// back removes what use has made. Its current context becomes the hub's from which it was.
func (o *useOptions) back() error {
	own, hubContext, err := o.own()
	if err != nil {
		return err
	}
	removed := 0
	for name, context := range own.Contexts {
		if madeFrom(context) != "" {
			delete(own.Contexts, name)
			// Its cluster has its name; another is one that somebody has given it.
			delete(own.Clusters, name)
			removed++
		}
	}
	own.CurrentContext = hubContext
	if err := o.write(own); err != nil {
		return err
	}
	o.say("kubectl works on the hub again, as context %q; %d contexts removed\n", hubContext, removed)
	return nil
}

// lead makes a context for a member from the hub's, as a client reads it: with paths that are
// whole, wherever the result is put.
func (s *session) lead(to memberconfig.Target) (made *clientcmdapi.Config, hubContext string, err error) {
	_, hubContext, err = s.own()
	if err != nil {
		return nil, "", err
	}
	resolved, err := s.flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, "", fmt.Errorf("reading your kubeconfig: %w", err)
	}
	made, err = memberconfig.For(&resolved, hubContext, to, memberconfig.Way{})
	return made, hubContext, err
}

// own is the user's kubeconfig as it is written, and the context in it that leads to the hub.
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

// access is the way in which kubectl config reads and writes the user's files.
func (s *session) access() clientcmd.ConfigAccess {
	options := clientcmd.NewDefaultPathOptions()
	options.LoadingRules.ExplicitPath = *s.flags.KubeConfig
	return options
}
