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
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// maxRead bounds each list: of a larger one the page shows the first part, and says so.
	maxRead = 5000
	// maxLines bounds what a section shows.
	maxLines = 40
)

// Reporter reads a hub. Its client's scheme has to know the fleet's kinds.
type Reporter struct {
	// Hub reads from the API server itself, as whoever asks.
	Hub client.Reader
	// Namespace is the gateway's.
	Namespace string
	// Version is that of this command, HubVersion the hub's Kubernetes; empty if it is not known.
	Version, HubVersion string
	Clock               clock.PassiveClock
}

// section is a part of the page: a title, rows of cells, and what is not shown.
type section struct {
	title string
	head  []string
	rows  []row
	// note stands under the rows.
	note string
}

// row is a line of a section; those with a lower rank come first.
type row struct {
	rank  int
	cells []string
}

// Write writes the page. The error is that of the writer.
func (r *Reporter) Write(ctx context.Context, out io.Writer) error {
	text := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(text, "fleetgate %s, hub Kubernetes %s, %s\n", clean(r.Version), clean(cmp.Or(r.HubVersion, "unknown")), r.Clock.Now().UTC().Format(time.RFC3339))
	for _, read := range []func(context.Context) (section, error){
		r.gateways, r.loosened, r.apis, r.members, r.registrationTokens, r.registrations, r.imports, r.accounts, r.placements, r.authors, r.warnings,
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
		_, _ = fmt.Fprintf(out, "and %d more\n", more)
	}
	if s.note != "" {
		_, _ = fmt.Fprintln(out, s.note)
	}
	if len(s.rows) == 0 && s.note == "" {
		_, _ = fmt.Fprintln(out, "none")
	}
}

// list reads a bounded part of a list. A note says if there is more.
func (r *Reporter) list(ctx context.Context, into client.ObjectList, options ...client.ListOption) (note string, err error) {
	if err := r.Hub.List(ctx, into, append(options, client.Limit(maxRead))...); err != nil {
		return "", err
	}
	if into.GetContinue() != "" {
		return fmt.Sprintf("there are more than %d: these are the first", maxRead), nil
	}
	return "", nil
}

// ago is how long ago something was, for people.
func (r *Reporter) ago(then time.Time) string {
	if then.IsZero() {
		return "never"
	}
	if in := then.Sub(r.Clock.Now()); in > 0 {
		return "in " + duration.HumanDuration(in)
	}
	return duration.HumanDuration(r.Clock.Since(then)) + " ago"
}

// states are the statuses of conditions, and what the first one that is not True says.
func states(conditions []metav1.Condition, kinds ...string) (cells []string, why string) {
	for _, kind := range kinds {
		condition := meta.FindStatusCondition(conditions, kind)
		if condition == nil {
			cells = append(cells, "-")
			continue
		}
		cells = append(cells, string(condition.Status))
		if condition.Status != metav1.ConditionTrue && why == "" {
			why = condition.Reason + ": " + condition.Message
		}
	}
	return cells, why
}
