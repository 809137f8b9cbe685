// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"fleetgate.io/fleetgate/pkg/inspect/explain"
	"fleetgate.io/fleetgate/pkg/inspect/overview"
	"fleetgate.io/fleetgate/pkg/kube/nearest"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// memberKinds are the accepted kinds of a member in front of a slash.
var memberKinds = []string{"member", "members", "membercluster", "memberclusters"}

// placementKinds are the same for ClusterResourcePlacements.
var placementKinds = []string{"placement", "clusterresourceplacement", "clusterresourceplacements", "crp"}

type whyOptions struct {
	*session
	Member string
	Output string
}

// whyReport is the machine-readable output of why.
type whyReport struct {
	// Healthy is true if there are no problems.
	Healthy bool `json:"healthy"`
	// Problems are the problems, the cause first. For an object on a member there always is one.
	Problems []explain.Problem `json:"answers"`
}

func newWhyCommand(s *session) *cobra.Command {
	o := &whyOptions{session: s}
	command := &cobra.Command{
		Use:   "why PLACEMENT | member/NAME | KIND/NAME --member MEMBER",
		Short: "Explain why a placement, member or resource is not ready",
		Long: `Explain a problem in one line: the object, the member, the reason and the remedy.

For a placement, the command explains why members do not have it, or with --member why
one member does not: not selected, not delivered, not applied or not available. For a
member, it explains why the member is not ready. For a resource on a member, it names the
placement and snapshot that applied it, who wrote it last, and its problem.

PLACEMENT is the name of a ClusterResourcePlacement, or NAMESPACE/NAME of a
ResourcePlacement. The exit code is 2 if there is a problem.`,
		Example: `  kubectl fleetgate why shop
  kubectl fleetgate why shop --member member-1
  kubectl fleetgate why member/member-1
  kubectl fleetgate why configmap/settings -n shop --member member-1
  kubectl fleetgate why shop -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeNames(false, placementNames),
		RunE: func(command *cobra.Command, args []string) error {
			return s.patiently(command.Context(), func(ctx context.Context) error { return o.run(ctx, args[0]) })
		},
	}
	s.memberFlag(command, &o.Member, "Member to explain.")
	outputFlag(command, &o.Output, "prints text", outputJSON, outputYAML)
	return command
}

// memberFlag binds --member with completion of member names.
func (s *session) memberFlag(command *cobra.Command, to *string, usage string) {
	command.Flags().StringVar(to, "member", "", usage)
	// It only fails if the flag does not exist.
	_ = command.RegisterFlagCompletionFunc("member", s.completeNames(true, memberNames))
}

func (o *whyOptions) run(ctx context.Context, what string) error {
	if err := checkOutput(o.Output, outputJSON, outputYAML); err != nil {
		return err
	}
	h, err := o.hub()
	if err != nil {
		return err
	}
	kind, name, slashed := strings.Cut(what, "/")
	switch {
	case slashed && slices.Contains(memberKinds, strings.ToLower(kind)):
		return o.member(ctx, h, name)
	case slashed && slices.Contains(placementKinds, strings.ToLower(kind)):
		what = name
	case slashed && (o.Member != "" || h.Knows(kind)):
		// The name of a ResourcePlacement has a slash, too: an existing one takes precedence.
		if _, err := h.Placement(ctx, what); err == nil {
			break
		}
		if o.Member == "" {
			return fmt.Errorf("%s is a resource on a member: set --member, or explain its placement instead", what)
		}
		return o.object(ctx, h, kind, name)
	}
	return o.placement(ctx, h, what)
}

func (o *whyOptions) placement(ctx context.Context, h *overview.Hub, name string) error {
	facts, err := h.WhyPlacement(ctx, name, o.Member)
	if err != nil {
		return err
	}
	if o.Member != "" && !facts.Bound() || o.Member == "" && !facts.Scheduled() {
		if err := overview.Refuse(facts, o.Clock); err != nil {
			return err
		}
	}
	problems := explain.Placement(facts)
	if len(problems) > 0 {
		h.Follow(ctx, &problems[0])
	}
	return o.print(problems, fmt.Sprintf("placement %s: no problems found", facts.Name))
}

func (o *whyOptions) member(ctx context.Context, h *overview.Hub, name string) error {
	facts, err := h.WhyMember(ctx, name)
	if err != nil {
		return err
	}
	if facts.Member == nil && facts.Cluster == nil {
		names, err := h.Names(ctx, memberKind(), "")
		if err != nil {
			return err
		}
		if len(nearest.Names(name, names)) > 0 {
			return nearest.NotFound("member", name, names, "kubectl fleetgate members")
		}
	}
	problems := explain.Member(facts)
	if facts.Member == nil && len(problems) == 0 {
		_, err := h.Member(ctx, name)
		return err
	}
	return o.print(problems, fmt.Sprintf("member %s: no problems found", name))
}

func (o *whyOptions) object(ctx context.Context, h *overview.Hub, kind, name string) error {
	// Like kubectl: the namespace of --namespace, else that of the context.
	namespace, _, err := o.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return fmt.Errorf("reading your kubeconfig: %w", err)
	}
	facts, err := h.WhyObject(ctx, kind, namespace, name, o.Member)
	if err != nil {
		return err
	}
	problem, hasProblem := explain.Object(facts)
	h.Follow(ctx, &problem)
	if o.Output != "" {
		err = o.writeAs(o.Output, whyReport{Healthy: !hasProblem, Problems: []explain.Problem{problem}})
	} else {
		o.printProblem(problem)
	}
	if hasProblem && err == nil {
		err = errFound
	}
	return err
}

// print writes the answer first, and further problems below it. It returns errFound if there are
// any.
func (o *whyOptions) print(problems []explain.Problem, healthy string) error {
	switch {
	case o.Output != "":
		if err := o.writeAs(o.Output, whyReport{Healthy: len(problems) == 0, Problems: append([]explain.Problem{}, problems...)}); err != nil {
			return err
		}
	case len(problems) == 0:
		o.printf("%s\n", healthy)
	default:
		o.printProblems(problems)
	}
	if len(problems) > 0 {
		return errFound
	}
	return nil
}

func (o *whyOptions) printProblems(problems []explain.Problem) {
	o.printProblem(problems[0])
	const shown = 10
	for i, a := range problems[1:] {
		if i == 0 {
			o.printf("\nFurther problems:\n")
		}
		if i == shown {
			o.printf("  and %d more\n", len(problems)-1-shown)
			break
		}
		o.printf("  %s\n", a)
	}
}

func (o *whyOptions) printProblem(a explain.Problem) {
	o.printf("%s\n", a)
	for _, detail := range a.Details {
		o.printf("  %s\n", untrusted.Line(detail))
	}
}
