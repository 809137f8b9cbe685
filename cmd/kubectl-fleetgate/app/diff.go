// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"slices"

	"github.com/spf13/cobra"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/inspect/explain"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

type diffOptions struct {
	*session
	Member string
	Output string
}

// diffReport is the machine-readable output of diff.
type diffReport struct {
	// Differs is true if Objects is not empty.
	Differs bool         `json:"differs"`
	Objects []diffObject `json:"objects"`
}

// diffObject is an object that differs on a member.
type diffObject struct {
	Member string `json:"member"`
	// Drift is true if the object was changed on the member after it was applied, and false if
	// strategy ReportDiff found the difference.
	Drift  bool                                `json:"drift"`
	Object placementv1beta1.ResourceIdentifier `json:"object"`
	Fields []placementv1beta1.PatchDetail      `json:"fields"`
}

func newDiffCommand(s *session) *cobra.Command {
	o := &diffOptions{session: s}
	command := &cobra.Command{
		Use:   "diff PLACEMENT",
		Short: "Show the differences between placed resources and the hub",
		Long: `Show the fields in which placed resources on members differ from the hub: fields that were
changed on the member (drift) and, with strategy ReportDiff, all differences. Fields that
the placement does not compare are not shown. The exit code is 2 if there are differences.`,
		Example: `  kubectl fleetgate diff shop
  kubectl fleetgate diff shop --member member-1
  kubectl fleetgate diff shop -o yaml`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeNames(false, placementNames),
		RunE: func(command *cobra.Command, args []string) error {
			return s.patiently(command.Context(), func(ctx context.Context) error { return o.run(ctx, args[0]) })
		},
	}
	s.memberFlag(command, &o.Member, "Show only this member.")
	outputFlag(command, &o.Output, "prints a diff", outputJSON, outputYAML)
	return command
}

func (o *diffOptions) run(ctx context.Context, name string) error {
	if err := checkOutput(o.Output, outputJSON, outputYAML); err != nil {
		return err
	}
	h, err := o.hub()
	if err != nil {
		return err
	}
	_, bindings, err := h.Bound(ctx, name)
	if err != nil {
		return err
	}
	if o.Member != "" {
		if err := isMember(ctx, h, o.Member); err != nil {
			return err
		}
	}
	return o.print(differing(bindings, o.Member))
}

// differing returns the objects that differ, by member name; with a member only those on it.
func differing(bindings []placementv1beta1.BindingObject, on string) []diffObject {
	slices.SortFunc(bindings, func(a, b placementv1beta1.BindingObject) int {
		return cmp.Compare(a.GetSpec().TargetCluster, b.GetSpec().TargetCluster)
	})
	found := []diffObject{}
	for _, b := range bindings {
		member, status := b.GetSpec().TargetCluster, b.GetStatus()
		if on != "" && member != on {
			continue
		}
		for i := range status.DriftedPlacements {
			d := &status.DriftedPlacements[i]
			found = append(found, diffObject{Member: member, Drift: true, Object: d.ResourceIdentifier, Fields: d.ObservedDrifts})
		}
		for i := range status.DiffedPlacements {
			d := &status.DiffedPlacements[i]
			found = append(found, diffObject{Member: member, Object: d.ResourceIdentifier, Fields: d.ObservedDiffs})
		}
	}
	return found
}

// print writes the differences. It returns errFound if there are any.
func (o *diffOptions) print(found []diffObject) error {
	switch {
	case o.Output != "":
		if err := o.writeAs(o.Output, diffReport{Differs: len(found) > 0, Objects: found}); err != nil {
			return err
		}
	case len(found) == 0:
		o.note("No differences found.\n")
	default:
		for i := range found {
			o.printDiff(&found[i])
		}
	}
	if len(found) > 0 {
		return errFound
	}
	return nil
}

// printDiff writes fields in the format of a unified diff, the hub against the member.
func (o *diffOptions) printDiff(d *diffObject) {
	o.printf("--- hub: %s\n+++ member %s\n", untrusted.Line(explain.Ref(&d.Object)), d.Member)
	for _, field := range d.Fields {
		o.printf("@@ %s\n", untrusted.Line(field.Path))
		if field.ValueInHub != "" {
			o.printf("-%s\n", untrusted.Line(field.ValueInHub))
		}
		if field.ValueInMember != "" {
			o.printf("+%s\n", untrusted.Line(field.ValueInMember))
		}
	}
}
