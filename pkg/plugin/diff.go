// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"context"
	"slices"

	"github.com/spf13/cobra"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/plugin/why"
)

type diffOptions struct {
	*session
	Member string
}

func newDiffCommand(s *session) *cobra.Command {
	o := &diffOptions{session: s}
	command := &cobra.Command{
		Use:   "diff PLACEMENT",
		Short: "Show what members have that differs from what was placed",
		Long: `Diff shows the fields in which objects on members differ from the hub: those that were
changed there (drift), and with strategy ReportDiff all that differs. What the
placement does not look at is not compared. It ends with 2 if something differs.`,
		Example: `  kubectl fleetgate diff shop
  kubectl fleetgate diff shop --member member-1`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeNames(false, placementNames),
		RunE:              func(command *cobra.Command, args []string) error { return o.run(command.Context(), args[0]) },
	}
	s.memberFlag(command, &o.Member, "Only this member.")
	return command
}

func (o *diffOptions) run(ctx context.Context, name string) error {
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
	slices.SortFunc(bindings, func(a, b placementv1beta1.BindingObject) int {
		return cmp.Compare(a.GetSpec().TargetCluster, b.GetSpec().TargetCluster)
	})
	found := false
	for _, b := range bindings {
		member, status := b.GetSpec().TargetCluster, b.GetStatus()
		if o.Member != "" && member != o.Member {
			continue
		}
		for i := range status.DriftedPlacements {
			d := &status.DriftedPlacements[i]
			o.printDiff(member, why.Ref(&d.ResourceIdentifier), d.ObservedDrifts)
			found = true
		}
		for i := range status.DiffedPlacements {
			d := &status.DiffedPlacements[i]
			o.printDiff(member, why.Ref(&d.ResourceIdentifier), d.ObservedDiffs)
			found = true
		}
	}
	if found {
		return errFound
	}
	o.note("Nothing differs.\n")
	return nil
}

// printDiff writes fields as people know diffs: what the hub has against what the member has.
func (o *diffOptions) printDiff(member, object string, fields []placementv1beta1.PatchDetail) {
	o.say("--- hub: %s\n+++ member %s\n", why.Plain(object), member)
	for _, field := range fields {
		o.say("@@ %s\n", why.Plain(field.Path))
		if field.ValueInHub != "" {
			o.say("-%s\n", why.Plain(field.ValueInHub))
		}
		if field.ValueInMember != "" {
			o.say("+%s\n", why.Plain(field.ValueInMember))
		}
	}
}
