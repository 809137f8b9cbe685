// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/cmd/apply"
	"k8s.io/kubectl/pkg/cmd/attach"
	"k8s.io/kubectl/pkg/cmd/cp"
	deletecmd "k8s.io/kubectl/pkg/cmd/delete"
	"k8s.io/kubectl/pkg/cmd/describe"
	"k8s.io/kubectl/pkg/cmd/events"
	"k8s.io/kubectl/pkg/cmd/exec"
	"k8s.io/kubectl/pkg/cmd/get"
	"k8s.io/kubectl/pkg/cmd/logs"
	"k8s.io/kubectl/pkg/cmd/portforward"
	"k8s.io/kubectl/pkg/cmd/top"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"fleetgate.io/fleetgate/pkg/apiserver/memberconfig"
	"fleetgate.io/fleetgate/pkg/inspect/overview"
	"fleetgate.io/fleetgate/pkg/kube/nearest"
)

// program is the name of the parent command in the help of kubectl's own commands.
const program = "kubectl fleetgate"

// reach is the target of one of kubectl's own commands: one member or many.
type reach struct {
	*session
	// flags are those of the session, with the server URL of the target.
	flags   *genericclioptions.ConfigFlags
	Member  string
	Members string
}

// newReachCommands are kubectl's own commands, run on members.
func newReachCommands(s *session) []*cobra.Command {
	var commands []*cobra.Command
	// Only read-only commands support many members.
	for _, c := range []struct {
		make     func(cmdutil.Factory) *cobra.Command
		example  string
		readOnly bool
	}{
		{func(f cmdutil.Factory) *cobra.Command { return get.NewCmdGet(program, f, s.IOStreams) }, "get pods -A --members region=eu", true},
		{func(f cmdutil.Factory) *cobra.Command { return describe.NewCmdDescribe(program, f, s.IOStreams) }, "describe node member-1 --member member-1", true},
		{func(f cmdutil.Factory) *cobra.Command { return logs.NewCmdLogs(f, s.IOStreams) }, "logs deployment/web -n shop --member member-1", true},
		{func(f cmdutil.Factory) *cobra.Command { return events.NewCmdEvents(f, s.IOStreams) }, "events -n shop --members all", true},
		{func(f cmdutil.Factory) *cobra.Command { return top.NewCmdTop(f, s.IOStreams) }, "top pods -n shop --member member-1", true},
		{func(f cmdutil.Factory) *cobra.Command { return exec.NewCmdExec(f, s.IOStreams) }, "exec web-0 -n shop --member member-1 -- date", false},
		{func(f cmdutil.Factory) *cobra.Command { return attach.NewCmdAttach(f, s.IOStreams) }, "attach -i web-0 -n shop --member member-1", false},
		{func(f cmdutil.Factory) *cobra.Command { return portforward.NewCmdPortForward(f, s.IOStreams) }, "port-forward service/web 8080:80 -n shop --member member-1", false},
		{func(f cmdutil.Factory) *cobra.Command { return cp.NewCmdCp(f, s.IOStreams) }, "cp shop/web-0:/tmp/dump dump --member member-1", false},
		{func(f cmdutil.Factory) *cobra.Command { return apply.NewCmdApply(program, f, s.IOStreams) }, "apply -f settings.yaml --member member-1", false},
		{func(f cmdutil.Factory) *cobra.Command { return deletecmd.NewCmdDelete(f, s.IOStreams) }, "delete pod web-0 -n shop --member member-1", false},
	} {
		r := &reach{session: s}
		r.flags = r.targetFlags()
		// kubectl's commands for a single Pod need the matched version of these flags.
		command := c.make(cmdutil.NewFactory(cmdutil.NewMatchVersionFlags(r.flags)))
		r.adopt(command, c.example, c.readOnly)
		commands = append(commands, command)
	}
	return commands
}

// adopt adds the flags for the target to one of kubectl's commands and its subcommands.
func (r *reach) adopt(command *cobra.Command, example string, readOnly bool) {
	if example != "" {
		command.Example = "  " + program + " " + example
	}
	command.PersistentFlags().StringVar(&r.Member, "member", "", "Member on which to run the command.")
	_ = command.RegisterFlagCompletionFunc("member", r.completeNames(true, memberNames))
	if readOnly {
		command.PersistentFlags().StringVar(&r.Members, "members", "", "Label selector of the members to read from, for example region=eu, or \"all\".")
	}
	command.PersistentPreRunE = func(command *cobra.Command, _ []string) error { return r.prepare(command.Context()) }
}

// targetFlags are the session's flags. They change the server URL once the target is known.
func (r *reach) targetFlags() *genericclioptions.ConfigFlags {
	flags := r.copyFlags()
	flags.WrapConfigFn = func(config *rest.Config) *rest.Config {
		to, err := r.target()
		if err != nil {
			return config // prepare returns this error.
		}
		return overview.LeadTo(config, to)
	}
	return flags
}

// target is the one that the flags select.
func (r *reach) target() (memberconfig.Target, error) {
	switch {
	case r.Member != "" && r.Members != "":
		return memberconfig.Target{}, errors.New("--member and --members are mutually exclusive")
	case r.Member != "":
		return memberconfig.Member(r.Member)
	case r.Members == "all":
		return memberconfig.View("")
	case r.Members != "":
		// A view is one path segment, so it cannot contain a slash.
		return memberconfig.View("labels:" + strings.ReplaceAll(r.Members, "/", ":"))
	}
	return memberconfig.Target{}, errors.New("no member selected: set --member NAME, or --members SELECTOR to read from several members; for the hub itself, use kubectl")
}

// prepare validates the target.
func (r *reach) prepare(ctx context.Context) error {
	if _, err := r.target(); err != nil {
		return err
	}
	h, err := r.hub()
	if err != nil {
		return err
	}
	// If `use` created the current context, the session has replaced it by the hub's.
	if from := *r.session.flags.Context; from != "" {
		*r.flags.Context = from
	}
	if r.Member == "" {
		return nil
	}
	return isMember(ctx, h, r.Member)
}

// isMember returns an error for a name that no member has.
func isMember(ctx context.Context, h *overview.Hub, name string) error {
	// Without permission to list members, the error of the proxy to the member has to do.
	names, err := h.Names(ctx, memberKind(), "")
	if err == nil && !slices.Contains(names, name) {
		return nearest.NotFound("member", name, names, "kubectl fleetgate members")
	}
	return nil
}
