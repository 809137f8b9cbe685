// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/inspect/overview"
)

// cordoned is the taint of cordoned members.
func cordoned() clusterv1beta1.Taint {
	return clusterv1beta1.Taint{Key: clusterv1beta1.TaintCordoned, Effect: corev1.TaintEffectNoSchedule}
}

func newCordonCommand(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "cordon MEMBER...",
		Short: "Mark members as unschedulable",
		Long: `Mark members as unschedulable with the taint ` + clusterv1beta1.TaintCordoned + `:NoSchedule.
Resources that are already placed stay; use "drain" to remove them. Placements that
tolerate all taints are still scheduled.`,
		Example:           "  kubectl fleetgate cordon member-1",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: s.completeNames(true, memberNames),
		RunE: s.eachMember(func(ctx context.Context, h *overview.Hub, name string) (string, error) {
			return "cordoned", h.ChangeTaints(ctx, name, func(taints []clusterv1beta1.Taint) []clusterv1beta1.Taint { return withTaint(taints, cordoned()) })
		}),
	}
}

func newUncordonCommand(s *session) *cobra.Command {
	return &cobra.Command{
		Use:               "uncordon MEMBER...",
		Short:             "Mark members as schedulable",
		Long:              `Mark members as schedulable: remove the taint that cordon and drain set. Other taints stay.`,
		Example:           "  kubectl fleetgate uncordon member-1",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: s.completeNames(true, memberNames),
		RunE: s.eachMember(func(ctx context.Context, h *overview.Hub, name string) (string, error) {
			return "uncordoned", h.ChangeTaints(ctx, name, func(taints []clusterv1beta1.Taint) []clusterv1beta1.Taint {
				return withoutTaint(taints, clusterv1beta1.TaintCordoned, "")
			})
		}),
	}
}

func newTaintCommand(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "taint MEMBER KEY[=VALUE]:NoSchedule... KEY[:NoSchedule]-...",
		Short: "Update the taints of a member",
		Long: `Update the taints of a member, like "kubectl taint" for nodes. Placements that do not
tolerate a taint are not scheduled to the member; resources that are already placed stay.
A dash after the key removes the taint.`,
		Example: `  kubectl fleetgate taint member-1 maintenance=rack-7:NoSchedule
  kubectl fleetgate taint member-1 maintenance-`,
		Args:              cobra.MinimumNArgs(2),
		ValidArgsFunction: s.completeNames(false, memberNames),
		RunE: func(command *cobra.Command, args []string) error {
			changes, err := parseTaints(args[1:])
			if err != nil {
				return err
			}
			return s.eachMember(func(ctx context.Context, h *overview.Hub, name string) (string, error) {
				return "tainted", h.ChangeTaints(ctx, name, func(taints []clusterv1beta1.Taint) []clusterv1beta1.Taint {
					for _, change := range changes {
						taints = change(taints)
					}
					return taints
				})
			})(command, args[:1])
		},
	}
}

// eachMember returns a RunE that changes members one after the other and prints what was done. It
// continues after an error and returns all errors.
func (s *session) eachMember(do func(ctx context.Context, h *overview.Hub, name string) (done string, err error)) func(*cobra.Command, []string) error {
	return s.onHub(func(ctx context.Context, h *overview.Hub, names []string) error {
		var failures []error
		for _, name := range names {
			done, err := do(ctx, h, name)
			if err != nil {
				failures = append(failures, err)
				continue
			}
			s.printf("member %s %s\n", name, done)
		}
		return errors.Join(failures...)
	})
}

type taintChange func([]clusterv1beta1.Taint) []clusterv1beta1.Taint

// parseTaints parses the taints of the command line.
func parseTaints(texts []string) ([]taintChange, error) {
	var changes []taintChange
	for _, text := range texts {
		body, remove := strings.CutSuffix(text, "-")
		head, effect, _ := strings.Cut(body, ":")
		key, value, _ := strings.Cut(head, "=")
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			return nil, fmt.Errorf("taint %q: invalid key: %s", text, strings.Join(problems, ", "))
		}
		if remove {
			changes = append(changes, func(taints []clusterv1beta1.Taint) []clusterv1beta1.Taint { return withoutTaint(taints, key, effect) })
			continue
		}
		if effect != string(corev1.TaintEffectNoSchedule) {
			return nil, fmt.Errorf("taint %q: use KEY[=VALUE]:NoSchedule, the only effect of members, or KEY- to remove a taint", text)
		}
		taint := clusterv1beta1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
		changes = append(changes, func(taints []clusterv1beta1.Taint) []clusterv1beta1.Taint { return withTaint(taints, taint) })
	}
	return changes, nil
}

// withTaint adds a taint, or replaces the one with the same key and effect.
func withTaint(taints []clusterv1beta1.Taint, taint clusterv1beta1.Taint) []clusterv1beta1.Taint {
	return append(withoutTaint(taints, taint.Key, string(taint.Effect)), taint)
}

// withoutTaint removes the taints with a key; with an effect, only the one with that effect.
func withoutTaint(taints []clusterv1beta1.Taint, key, effect string) []clusterv1beta1.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t clusterv1beta1.Taint) bool {
		return t.Key == key && (effect == "" || string(t.Effect) == effect)
	})
}
