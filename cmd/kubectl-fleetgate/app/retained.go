// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	"fleetgate.io/fleetgate/pkg/inspect/overview"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

func newRetainedCommand(s *session) *cobra.Command {
	command := &cobra.Command{
		Use:   "retained",
		Short: "Manage the objects that agents retained on members",
		Long: `Manage the objects that agents retained on members instead of deleting them: data of
placements that no longer select the member, and Namespaces and CustomResourceDefinitions
that contain objects which the fleet did not apply. The commands read and write members
through the hub with your permissions.`,
		Example: "  kubectl fleetgate retained list",
		Args:    cobra.NoArgs,
		RunE:    func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(newRetainedListCommand(s), newRetainedReleaseCommand(s))
	return command
}

func newRetainedListCommand(s *session) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use:   "list [MEMBER...]",
		Short: "List retained objects",
		Long: `List the retained objects of all members, or of some: the placement that adopts each if it
selects the member again, and the reason why it was retained. To remove a retained object,
delete it on the member. The exit code is 1 if a member could not be listed.`,
		Example: `  kubectl fleetgate retained list
  kubectl fleetgate retained list member-1 -o json`,
		ValidArgsFunction: s.completeNames(true, memberNames),
		RunE: func(command *cobra.Command, args []string) error {
			if err := checkOutput(output, outputJSON, outputYAML); err != nil {
				return err
			}
			return s.patiently(command.Context(), func(ctx context.Context) error { return s.listRetained(ctx, args, output) })
		},
	}
	outputFlag(command, &output, "prints a table", outputJSON, outputYAML)
	return command
}

func (s *session) listRetained(ctx context.Context, members []string, output string) error {
	h, err := s.hub()
	if err != nil {
		return err
	}
	if len(members) == 0 {
		if members, err = memberNames(ctx, h); err != nil {
			return err
		}
	}
	found, failures := h.Retained(ctx, members)
	var failed []error
	for _, member := range slices.Sorted(maps.Keys(failures)) {
		failed = append(failed, failures[member])
	}
	if err := s.printRetained(found, output, len(failed) > 0); err != nil {
		return err
	}
	return errors.Join(failed...)
}

// printRetained does not say that nothing is retained if that is not known of all members.
func (s *session) printRetained(found []overview.Retained, output string, incomplete bool) error {
	if output != "" {
		return s.writeAs(output, map[string][]overview.Retained{"items": append([]overview.Retained{}, found...)})
	}
	if len(found) == 0 {
		if !incomplete {
			s.note("No retained objects found.\n")
		}
		return nil
	}
	table := newTable("Member", "Kind", "Namespace", "Name", "Placement", "Reason")
	for i := range found {
		of := &found[i]
		table.Rows = append(table.Rows, metav1.TableRow{Cells: []any{
			of.Member, of.Kind, cmp.Or(of.Namespace, "-"), untrusted.Line(of.Name), cmp.Or(untrusted.Line(of.Placement), "-"), untrusted.Line(of.Reason),
		}})
	}
	return printers.NewTablePrinter(printers.PrintOptions{}).PrintObj(table, s.Out)
}

func newRetainedReleaseCommand(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "release MEMBER KIND/NAME...",
		Short: "Release retained objects",
		Long: `Release retained objects: they stay on the member, and no placement adopts them any more.
KIND is Namespace, PersistentVolumeClaim, PersistentVolume or CustomResourceDefinition, or
its short name. For a PersistentVolumeClaim, set --namespace.`,
		Example:           "  kubectl fleetgate retained release member-1 namespace/old-shop",
		Args:              cobra.MinimumNArgs(2),
		ValidArgsFunction: s.completeNames(false, memberNames),
		RunE: s.onHub(func(ctx context.Context, h *overview.Hub, args []string) error {
			var failures []error
			for _, text := range args[1:] {
				if err := s.release(ctx, h, args[0], text); err != nil {
					failures = append(failures, err)
				}
			}
			return errors.Join(failures...)
		}),
	}
}

func (s *session) release(ctx context.Context, h *overview.Hub, member, text string) error {
	kind, name, err := parseRetained(text)
	if err != nil {
		return err
	}
	namespace := ""
	if kind.Kind == "PersistentVolumeClaim" {
		if namespace = *s.flags.Namespace; namespace == "" {
			return fmt.Errorf("%s: set --namespace", text)
		}
	}
	if err := h.Release(ctx, member, kind, namespace, name); err != nil {
		return err
	}
	s.printf("%s/%s released on member %s\n", kind.Resource.Resource, name, member)
	return nil
}

// parseRetained parses KIND/NAME.
func parseRetained(text string) (retention.Kind, string, error) {
	kind, name, ok := strings.Cut(text, "/")
	if !ok || name == "" {
		return retention.Kind{}, "", fmt.Errorf("%q is not KIND/NAME, for example pvc/data", text)
	}
	for _, k := range retention.Kinds() {
		if strings.EqualFold(kind, k.Kind) || strings.EqualFold(kind, k.Resource.Resource) || strings.EqualFold(kind, k.Short) {
			return k, name, nil
		}
	}
	return retention.Kind{}, "", fmt.Errorf("%q: agents retain no objects of this kind; use ns, pvc, pv or crd", text)
}
