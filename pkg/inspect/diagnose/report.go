// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

const (
	// maxRead limits each list. The report notes if a list was longer.
	maxRead = 5000
	// maxLines limits the rows of a section.
	maxLines = 40
)

// Reporter writes the report of a hub. The scheme of its client must have the fleet's kinds.
type Reporter struct {
	// Hub reads from the API server without a cache, with the credentials of the user.
	Hub client.Reader
	// Namespace is that of the gateway.
	Namespace string
	// Version is that of this command, HubVersion the hub's Kubernetes version; empty if unknown.
	Version, HubVersion string
	Clock               clock.PassiveClock
}

// section is a part of the report.
type section struct {
	title string
	head  []string
	rows  []row
	// note is printed below the rows.
	note string
}

// row is a line of a section. Rows with a lower rank come first.
type row struct {
	rank  int
	cells []string
}

// Write writes the report. It only returns errors of the writer.
func (r *Reporter) Write(ctx context.Context, out io.Writer) error {
	text := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(text, "fleetgate %s, hub Kubernetes %s, %s\n", clean(r.Version), clean(cmp.Or(r.HubVersion, "unknown")), r.Clock.Now().UTC().Format(time.RFC3339))
	for _, read := range []func(context.Context) (section, error){
		r.gateways, r.permissiveSettings, r.apis, r.members, r.registrationTokens, r.registrations, r.imports, r.accounts, r.placements, r.authors, r.warnings,
	} {
		s, err := read(ctx)
		if err != nil {
			s.rows, s.note = nil, "could not be read: "+clean(err.Error())
		}
		s.write(text)
	}
	return text.Flush()
}

func (s section) write(out io.Writer) {
	_, _ = fmt.Fprintf(out, "\n%s\n", strings.ToUpper(s.title))
	slices.SortStableFunc(s.rows, func(a, b row) int { return cmp.Compare(a.rank, b.rank) })
	shown := s.rows[:min(len(s.rows), maxLines)]
	if len(shown) > 0 && len(s.head) > 0 {
		_, _ = fmt.Fprintln(out, strings.Join(s.head, "\t"))
	}
	for _, line := range shown {
		cells := make([]string, len(line.cells))
		for i, cell := range line.cells {
			cells[i] = cmp.Or(clean(cell), "-")
		}
		_, _ = fmt.Fprintln(out, strings.Join(cells, "\t"))
	}
	if more := len(s.rows) - len(shown); more > 0 {
		_, _ = fmt.Fprintf(out, "... and %d more\n", more)
	}
	if s.note != "" {
		_, _ = fmt.Fprintln(out, s.note)
	}
	if len(s.rows) == 0 && s.note == "" {
		_, _ = fmt.Fprintln(out, "none")
	}
}

// list reads at most maxRead objects. The note says if there are more.
func (r *Reporter) list(ctx context.Context, into client.ObjectList, options ...client.ListOption) (note string, err error) {
	if err := r.Hub.List(ctx, into, append(options, client.Limit(maxRead))...); err != nil {
		return "", err
	}
	if into.GetContinue() != "" {
		return fmt.Sprintf("more than %d objects: only the first are considered", maxRead), nil
	}
	return "", nil
}

// allPlacements lists the placements of both scopes.
func (r *Reporter) allPlacements(ctx context.Context) (all []placementv1beta1.PlacementObject, note string, err error) {
	for _, list := range []client.ObjectList{&placementv1beta1.ClusterResourcePlacementList{}, &placementv1beta1.ResourcePlacementList{}} {
		more, err := r.list(ctx, list)
		if err == nil {
			err = meta.EachListItem(list, func(item runtime.Object) error {
				all = append(all, item.(placementv1beta1.PlacementObject))
				return nil
			})
		}
		if err != nil {
			return nil, "", err
		}
		note = cmp.Or(note, more)
	}
	return all, note, nil
}

// ago formats the time since then.
func (r *Reporter) ago(then time.Time) string {
	if then.IsZero() {
		return "never"
	}
	if in := then.Sub(r.Clock.Now()); in > 0 {
		return "in " + duration.HumanDuration(in)
	}
	return duration.HumanDuration(r.Clock.Since(then)) + " ago"
}

// states returns the statuses of conditions, and reason and message of the first that is not True.
func states(conditions []metav1.Condition, kinds ...string) (cells []string, reason string) {
	for _, kind := range kinds {
		condition := meta.FindStatusCondition(conditions, kind)
		if condition == nil {
			cells = append(cells, "-")
			continue
		}
		cells = append(cells, string(condition.Status))
		if condition.Status != metav1.ConditionTrue && reason == "" {
			reason = condition.Reason + ": " + condition.Message
		}
	}
	return cells, reason
}
