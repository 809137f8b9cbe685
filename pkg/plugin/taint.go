// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

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
	"fleetgate.io/fleetgate/pkg/plugin/hub"
)

// cordoned is the taint of members on which nothing new is to be placed.
func cordoned() clusterv1beta1.Taint {
	return clusterv1beta1.Taint{Key: clusterv1beta1.TaintCordoned, Effect: corev1.TaintEffectNoSchedule}
}

func newCordonCommand(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "cordon MEMBER...",
		Short: "Place nothing new on members; what they have stays",
		Long: `Cordon gives members the taint ` + clusterv1beta1.TaintCordoned + `:NoSchedule. Placements that tolerate
every taint are not kept away by it. Drain takes away what is there.`,
		Example:           "  kubectl fleetgate cordon member-1",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: s.completeNames(true, memberNames),
		RunE: s.eachMember(func(ctx context.Context, h *hub.Hub, name string) (string, error) {
			return "cordoned", h.ChangeTaints(ctx, name, func(taints []clusterv1beta1.Taint) []clusterv1beta1.Taint { return withTaint(taints, cordoned()) })
		}),
	}
}

func newUncordonCommand(s *session) *cobra.Command {
	return &cobra.Command{
		Use:               "uncordon MEMBER...",
		Short:             "Let members have placements again",
		Long:              `Uncordon takes away the taint that cordon and drain gave. Other taints stay.`,
		Example:           "  kubectl fleetgate uncordon member-1",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: s.completeNames(true, memberNames),
		RunE: s.eachMember(func(ctx context.Context, h *hub.Hub, name string) (string, error) {
			return "uncordoned", h.ChangeTaints(ctx, name, func(taints []clusterv1beta1.Taint) []clusterv1beta1.Taint {
				return withoutTaint(taints, clusterv1beta1.TaintCordoned, "")
			})
		}),
	}
}

func newTaintCommand(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "taint MEMBER KEY[=VALUE]:NoSchedule... KEY[:NoSchedule]-...",
		Short: "Give a member taints, or take them away",
		Long: `Taint writes taints as kubectl taint does for nodes. Placements that do not tolerate
a taint do not come to the member; what is there stays. A dash behind a key takes
the taint away.`,
		Example: `  kubectl fleetgate taint member-1 maintenance=rack-7:NoSchedule
  kubectl fleetgate taint member-1 maintenance-`,
		Args:              cobra.MinimumNArgs(2),
		ValidArgsFunction: s.completeNames(false, memberNames),
		RunE: func(command *cobra.Command, args []string) error {
			changes, err := parseTaints(args[1:])
			if err != nil {
				return err
			}
			return s.eachMember(func(ctx context.Context, h *hub.Hub, name string) (string, error) {
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

// eachMember is what a command does that does something to members, one after the other, and
// says what was done. The errors of all are told.
func (s *session) eachMember(do func(ctx context.Context, h *hub.Hub, name string) (done string, err error)) func(*cobra.Command, []string) error {
	return s.onHub(func(ctx context.Context, h *hub.Hub, names []string) error {
		var failures []error
		for _, name := range names {
			done, err := do(ctx, h, name)
			if err != nil {
				failures = append(failures, err)
				continue
			}
			s.say("member %s %s\n", name, done)
		}
		return errors.Join(failures...)
	})
}

type taintChange func([]clusterv1beta1.Taint) []clusterv1beta1.Taint

// parseTaints reads taints as people write them.
func parseTaints(texts []string) ([]taintChange, error) {
	var changes []taintChange
	for _, text := range texts {
		body, away := strings.CutSuffix(text, "-")
		head, effect, _ := strings.Cut(body, ":")
		key, value, _ := strings.Cut(head, "=")
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			return nil, fmt.Errorf("taint %q: the key is none: %s", text, strings.Join(problems, ", "))
		}
		if away {
			changes = append(changes, func(taints []clusterv1beta1.Taint) []clusterv1beta1.Taint { return withoutTaint(taints, key, effect) })
			continue
		}
		if effect != string(corev1.TaintEffectNoSchedule) {
			return nil, fmt.Errorf("taint %q: write KEY[=VALUE]:NoSchedule, the only effect that members have, or KEY- to take it away", text)
		}
		taint := clusterv1beta1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
		changes = append(changes, func(taints []clusterv1beta1.Taint) []clusterv1beta1.Taint { return withTaint(taints, taint) })
	}
	return changes, nil
}

// withTaint has the taint in place of one with its key and effect.
func withTaint(taints []clusterv1beta1.Taint, taint clusterv1beta1.Taint) []clusterv1beta1.Taint {
	return append(withoutTaint(taints, taint.Key, string(taint.Effect)), taint)
}

// withoutTaint leaves out a key; with an effect, only that one's.
func withoutTaint(taints []clusterv1beta1.Taint, key, effect string) []clusterv1beta1.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t clusterv1beta1.Taint) bool {
		return t.Key == key && (effect == "" || string(t.Effect) == effect)
	})
}
