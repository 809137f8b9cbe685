// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/retry"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/inspect/overview"
)

func newRunCommand(s *session) *cobra.Command {
	command := &cobra.Command{
		Use:   "run",
		Short: "Manage staged update runs",
		Long: `Manage staged update runs. RUN is the name of a ClusterStagedUpdateRun, or
NAMESPACE/NAME of a StagedUpdateRun.`,
		Example: "  kubectl fleetgate run list",
		Args:    cobra.NoArgs,
		RunE:    func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(newRunListCommand(s), newRunApproveCommand(s),
		newRunStateCommand(s, "stop", "Stop a run after the members that it is updating", "stopping", placementv1beta1.UpdateRunStop),
		newRunStateCommand(s, "resume", "Start a run, or resume a stopped run", "running", placementv1beta1.UpdateRunRun),
		newRunRollbackCommand(s))
	return command
}

func newRunListCommand(s *session) *cobra.Command {
	var output string
	formats := []string{outputName, outputJSON, outputYAML}
	command := &cobra.Command{
		Use:   "list",
		Short: "List runs and their progress",
		Long:  "List the update runs of both scopes with their state, current stage and message.",
		Example: `  kubectl fleetgate run list
  kubectl fleetgate run list -o json`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := checkOutput(output, formats...); err != nil {
				return err
			}
			return s.patiently(command.Context(), func(ctx context.Context) error { return s.listRuns(ctx, output) })
		},
	}
	outputFlag(command, &output, "prints a table", formats...)
	return command
}

func (s *session) listRuns(ctx context.Context, output string) error {
	h, err := s.hub()
	if err != nil {
		return err
	}
	runs, err := h.Runs(ctx)
	if err != nil {
		return err
	}
	if output != "" {
		return s.writeRuns(output, runs)
	}
	return s.printRuns(runs)
}

// writeRuns prints runs as kubectl prints objects of several kinds.
func (s *session) writeRuns(output string, runs []placementv1beta1.UpdateRunObject) error {
	if output == outputName {
		for _, run := range runs {
			s.printf("%s.%s/%s\n", strings.ToLower(kindOfRun(run)), placementv1beta1.GroupVersion.Group, run.GetName())
		}
		return nil
	}
	list := &corev1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}, Items: []runtime.RawExtension{}}
	for _, run := range runs {
		run.GetObjectKind().SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind(kindOfRun(run)))
		run.SetManagedFields(nil)
		list.Items = append(list.Items, runtime.RawExtension{Object: run})
	}
	return s.writeAs(output, list)
}

func kindOfRun(run placementv1beta1.UpdateRunObject) string {
	if run.GetNamespace() == "" {
		return "ClusterStagedUpdateRun"
	}
	return "StagedUpdateRun"
}

func (s *session) printRuns(runs []placementv1beta1.UpdateRunObject) error {
	if len(runs) == 0 {
		s.note("No runs found.\n")
		return nil
	}
	table := newTable("Run", "Placement", "Snapshot", "State", "Stage", "Members", "Age", "Message")
	for _, run := range runs {
		status := run.GetStatus()
		state, message := overview.StateOfRun(run)
		stage, done, all := progress(status)
		table.Rows = append(table.Rows, metav1.TableRow{Cells: []any{
			overview.NameOf(run), run.GetSpec().PlacementName, cmp.Or(status.ResourceSnapshotIndexUsed, run.GetSpec().ResourceSnapshotIndex, "latest"), state,
			cmp.Or(stage, "-"), fmt.Sprintf("%d/%d", done, all), duration.HumanDuration(s.Clock.Since(run.GetCreationTimestamp().Time)), cmp.Or(message, "-"),
		}})
	}
	return printers.NewTablePrinter(printers.PrintOptions{}).PrintObj(table, s.Out)
}

// progress returns the current stage of a run, and how many of its members are updated.
func progress(status *placementv1beta1.UpdateRunStatus) (stage string, done, all int) {
	for i := range status.StagesStatus {
		s := &status.StagesStatus[i]
		if stage == "" && !meta.IsStatusConditionTrue(s.Conditions, placementv1beta1.ConditionUpdateRunSucceeded) {
			stage = s.StageName
		}
		for j := range s.Clusters {
			all++
			if meta.IsStatusConditionTrue(s.Clusters[j].Conditions, placementv1beta1.ConditionClusterUpdatingSucceeded) {
				done++
			}
		}
	}
	return stage, done, all
}

func newRunApproveCommand(s *session) *cobra.Command {
	var stage string
	command := &cobra.Command{
		Use:   "approve RUN",
		Short: "Approve pending approval requests of a run",
		Long: `Approve the pending approval requests of a run, or only those of one stage. The command
sets condition Approved on each request.`,
		Example:           "  kubectl fleetgate run approve to-2026-11",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeNames(false, runNames),
		RunE: s.onHub(func(ctx context.Context, h *overview.Hub, args []string) error {
			return s.approve(ctx, h, args[0], stage)
		}),
	}
	command.Flags().StringVar(&stage, "stage", "", "Approve only requests of this stage.")
	return command
}

// approve approves the pending requests of a run, or of one of its stages. After a conflict it
// reads the requests again.
func (s *session) approve(ctx context.Context, h *overview.Hub, run, stage string) error {
	approved := 0
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		changes, err := h.Approvals(ctx, run, stage, "kubectl fleetgate run approve")
		if err != nil {
			return err
		}
		for _, change := range changes {
			if err := h.Send(ctx, change); err != nil {
				return err
			}
			s.printf("%s approved\n", change.Name())
			approved++
		}
		return nil
	})
	if err == nil && approved == 0 {
		s.printf("run %s has no pending approval requests\n", run)
	}
	return err
}

func newRunStateCommand(s *session, name, short, done string, state placementv1beta1.UpdateRunState) *cobra.Command {
	return &cobra.Command{
		Use:               name + " RUN",
		Short:             short,
		Long:              short + ".",
		Example:           "  kubectl fleetgate run " + name + " to-2026-11",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeNames(false, runNames),
		RunE: s.onHub(func(ctx context.Context, h *overview.Hub, args []string) error {
			change, err := h.Steering(ctx, args[0], state)
			if err != nil {
				return err
			}
			if err := h.Send(ctx, change); err != nil {
				return err
			}
			s.printf("run %s %s\n", args[0], done)
			return nil
		}),
	}
}

func newRunRollbackCommand(s *session) *cobra.Command {
	var to int
	command := &cobra.Command{
		Use:   "rollback RUN",
		Short: "Roll a placement back to an older resource snapshot",
		Long: `Create a run of the same placement with the same stages, to the resource snapshot before
the one of RUN, or to the snapshot given by --to. This requires strategy External. With
other strategies the placement follows the resources on the hub: revert those instead.`,
		Example:           "  kubectl fleetgate run rollback to-2026-11",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeNames(false, runNames),
		RunE: s.onHub(func(ctx context.Context, h *overview.Hub, args []string) error {
			return s.rollback(ctx, h, args[0], to)
		}),
	}
	command.Flags().IntVar(&to, "to", -1, "Index of the resource snapshot. -1 selects the newest one before that of RUN.")
	return command
}

func (s *session) rollback(ctx context.Context, h *overview.Hub, name string, to int) error {
	run, err := h.Run(ctx, name)
	if err != nil {
		return err
	}
	placementName := run.GetSpec().PlacementName
	if namespace := run.GetNamespace(); namespace != "" {
		placementName = namespace + "/" + placementName
	}
	placement, err := h.Placement(ctx, placementName)
	if err != nil {
		return err
	}
	if strategy := placement.GetSpec().Strategy.Type; strategy != placementv1beta1.ExternalStrategy {
		return fmt.Errorf("placement %q has strategy %s and follows the resources on the hub: revert them there, with kubectl or Git",
			placementName, cmp.Or(string(strategy), string(placementv1beta1.RollingUpdateStrategy)))
	}
	indexes, err := h.SnapshotIndexes(ctx, placement)
	if err != nil {
		return err
	}
	index, err := olderIndex(indexes, run.GetStatus().ResourceSnapshotIndexUsed, to)
	if err != nil {
		return fmt.Errorf("run %q: %w", name, err)
	}
	made, err := h.MakeRun(ctx, run, index)
	if err != nil {
		return err
	}
	s.printf("run %s created: placement %s rolls back to snapshot %d\n", overview.NameOf(made), placementName, index)
	return nil
}

// olderIndex selects the snapshot to roll back to.
func olderIndex(kept []int, used string, to int) (int, error) {
	slices.Sort(kept)
	if to >= 0 {
		if !slices.Contains(kept, to) {
			return 0, fmt.Errorf("snapshot %d does not exist: available are %s (the placement keeps revisionHistoryLimit snapshots)", to, joinInts(kept))
		}
		return to, nil
	}
	now, err := strconv.Atoi(used)
	if err != nil {
		return 0, fmt.Errorf("the run has not used a snapshot yet: set --to to one of %s", joinInts(kept))
	}
	older := slices.DeleteFunc(slices.Clone(kept), func(index int) bool { return index >= now })
	if len(older) == 0 {
		return 0, fmt.Errorf("no snapshot older than %d exists (the placement keeps revisionHistoryLimit snapshots)", now)
	}
	return older[len(older)-1], nil
}

func joinInts(all []int) string {
	texts := make([]string, 0, len(all))
	for _, n := range all {
		texts = append(texts, strconv.Itoa(n))
	}
	return cmp.Or(strings.Join(texts, ", "), "none")
}

func runNames(ctx context.Context, h *overview.Hub) ([]string, error) { return h.RunNames(ctx) }
