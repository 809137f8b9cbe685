// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/inspect/overview"
)

// rereadInterval is the minimum interval between reads of --watch, however many members report.
const rereadInterval = 2 * time.Second

type membersOptions struct {
	*session
	Selector string
	Output   string
	NotReady bool
	Watch    bool
}

func memberFormats() []string {
	return []string{outputWide, outputName, outputJSON, outputYAML}
}

func newMembersCommand(s *session) *cobra.Command {
	o := &membersOptions{session: s}
	command := &cobra.Command{
		Use:   "members [NAME...]",
		Short: "List the members and their status",
		Long: `List the members of the fleet: whether each has joined and is connected, when it was last
seen, its agent and Kubernetes versions, the number of failing placements, and its taints.
With -o wide, the column REASON explains why a member is not ready.`,
		Example: `  kubectl fleetgate members
  kubectl fleetgate members --not-ready -o wide
  kubectl fleetgate members -l region=eu -o name`,
		Aliases:           []string{"member"},
		ValidArgsFunction: s.completeNames(true, memberNames),
		RunE:              func(command *cobra.Command, args []string) error { return o.run(command.Context(), args) },
	}
	command.Flags().StringVarP(&o.Selector, "selector", "l", "", "Label selector of the members, for example region=eu,env!=lab.")
	outputFlag(command, &o.Output, "prints a table", memberFormats()...)
	command.Flags().BoolVar(&o.NotReady, "not-ready", false, "Show only members that are not ready.")
	command.Flags().BoolVarP(&o.Watch, "watch", "w", false, "After listing, watch for changes and print changed members.")
	return command
}

func (o *membersOptions) run(ctx context.Context, names []string) error {
	selector, err := labels.Parse(o.Selector)
	if err != nil {
		return fmt.Errorf("--selector: %w", err)
	}
	if err := checkOutput(o.Output, memberFormats()...); err != nil {
		return err
	}
	h, err := o.hub()
	if err != nil {
		return err
	}
	shown := map[string]string{}
	read := func(ctx context.Context) error {
		var overview *overview.Overview
		err := o.patiently(ctx, func(ctx context.Context) (err error) {
			overview, err = h.Overview(ctx, client.MatchingLabelsSelector{Selector: selector})
			return err
		})
		if err != nil {
			return err
		}
		return o.print(ctx, h, overview, names, shown)
	}
	if err := read(ctx); err != nil || !o.Watch {
		return err
	}
	return o.watch(ctx, h, read)
}

// watch reads again when a member has changed, at most once per rereadInterval, until the context
// ends. It re-creates a watch that the hub has ended.
func (o *membersOptions) watch(ctx context.Context, h *overview.Hub, read func(context.Context) error) error {
	for ctx.Err() == nil {
		watched, err := h.Watch(ctx, &clusterv1beta1.MemberClusterList{})
		if err != nil {
			return fmt.Errorf("watching members: %w", err)
		}
		err = o.follow(ctx, watched, read)
		watched.Stop()
		if err != nil {
			return err
		}
	}
	return nil
}

// follow reads again after changes. Changes that arrive while it waits or reads count as one.
func (o *membersOptions) follow(ctx context.Context, watched watch.Interface, read func(context.Context) error) error {
	changed := make(chan struct{}, 1)
	go func() {
		defer close(changed)
		for range watched.ResultChan() {
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	}()
	for range changed {
		select {
		case <-ctx.Done():
			return nil
		case <-o.Clock.After(rereadInterval):
		}
		if err := read(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// print writes the selected members, and of those in shown only the ones that have changed
// since.
func (o *membersOptions) print(ctx context.Context, h *overview.Hub, overview *overview.Overview, names []string, shown map[string]string) error {
	for _, name := range names {
		if !slices.ContainsFunc(overview.Members, func(m clusterv1beta1.MemberCluster) bool { return m.Name == name }) {
			if _, err := h.Member(ctx, name); err != nil {
				return err
			}
		}
	}
	table := &metav1.Table{ColumnDefinitions: memberColumns()}
	list := &clusterv1beta1.MemberClusterList{}
	list.SetGroupVersionKind(clusterv1beta1.GroupVersion.WithKind("MemberClusterList"))
	for i := range overview.Members {
		member := &overview.Members[i]
		state := overview.State(member)
		if len(names) > 0 && !slices.Contains(names, member.Name) || o.NotReady && state.Reason == "" {
			continue
		}
		row := o.memberRow(member, &state)
		// A newer heartbeat alone does not count as a change.
		if text := fmt.Sprint(row.Cells[:3], row.Cells[4:]); shown[member.Name] == text {
			continue
		} else {
			shown[member.Name] = text
		}
		member.SetGroupVersionKind(memberKind())
		member.ManagedFields = nil
		table.Rows, list.Items = append(table.Rows, row), append(list.Items, *member)
	}
	if overview.TunnelsUnknown != nil {
		o.note("Warning: %v\n", overview.TunnelsUnknown)
	}
	return o.printTable(table, list)
}

func (o *membersOptions) printTable(table *metav1.Table, list *clusterv1beta1.MemberClusterList) error {
	var printer printers.ResourcePrinter
	var object runtime.Object = list
	switch o.Output {
	case outputJSON:
		printer = &printers.JSONPrinter{}
	case outputYAML:
		printer = &printers.YAMLPrinter{}
	case outputName:
		for i := range list.Items {
			o.printf("membercluster.%s/%s\n", clusterv1beta1.GroupName, list.Items[i].Name)
		}
		return nil
	default:
		if len(table.Rows) == 0 {
			if o.Watch {
				return nil
			}
			o.note("No members found.\n")
			return nil
		}
		printer, object = printers.NewTablePrinter(printers.PrintOptions{Wide: o.Output == outputWide}), table
	}
	return printer.PrintObj(object, o.Out)
}

func memberColumns() []metav1.TableColumnDefinition {
	var columns []metav1.TableColumnDefinition
	for _, name := range []string{"Name", "Joined", "Connected", "Last-Seen", "Agent", "Kubernetes", "Failing", "Taints"} {
		columns = append(columns, metav1.TableColumnDefinition{Name: name, Type: "string"})
	}
	for _, name := range []string{"Nodes", "Reason"} {
		columns = append(columns, metav1.TableColumnDefinition{Name: name, Type: "string", Priority: 1})
	}
	return columns
}

func (o *membersOptions) memberRow(member *clusterv1beta1.MemberCluster, state *overview.MemberState) metav1.TableRow {
	seen := "never"
	if !state.LastSeen.IsZero() {
		seen = duration.HumanDuration(o.Clock.Since(state.LastSeen.Time)) + " ago"
	}
	return metav1.TableRow{Cells: []any{
		member.Name, string(state.Joined), state.Connected, seen, cmp.Or(state.Agent, "-"), cmp.Or(state.Kubernetes, "-"),
		fmt.Sprint(state.Failing), cmp.Or(taintsText(member.Spec.Taints), "-"), cmp.Or(state.Nodes, "-"), cmp.Or(state.Reason, "-"),
	}}
}

// taintsText formats taints as the arguments of the command taint.
func taintsText(taints []clusterv1beta1.Taint) string {
	var all []string
	for _, t := range taints {
		text := t.Key
		if t.Value != "" {
			text += "=" + t.Value
		}
		all = append(all, text+":"+string(t.Effect))
	}
	return strings.Join(all, ",")
}
