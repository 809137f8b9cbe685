// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/inspect/explain"
	"fleetgate.io/fleetgate/pkg/inspect/overview"
	"fleetgate.io/fleetgate/pkg/inspect/tree"
	placementtrouble "fleetgate.io/fleetgate/pkg/placement/problems"
)

// maxListed limits the reasons on the page of a placement.
const maxListed = 20

func query(text string) string { return url.QueryEscape(text) }

// ofPlacement is the first problem of a placement that is not ready.
func ofPlacement(placement placementv1beta1.PlacementObject) problem {
	p := problem{Link: "/placement?name=" + query(overview.NameOf(placement)), Object: "Placement " + overview.NameOf(placement), Reason: "in progress", rank: 2}
	if found := placementtrouble.Of(placement); len(found) > 0 {
		p.Reason = found[0].String()
		if !found[0].Waits {
			p.rank = 1
			p.Remedy = explain.Remedy(found[0].Message, found[0].Object, found[0].Member, overview.NameOf(placement))
		}
	}
	return p
}

// placementRow is a row of the list of placements.
type placementRow struct {
	overview.PlacementRow
	Ready bool
	Bar   bar
}

// placements renders the list of placements with the columns of the hub.
func (c *Console) placements(w http.ResponseWriter, r *http.Request) {
	rows, err := c.Hub.PlacementRows(r.Context())
	if err != nil {
		c.failed(w, err)
		return
	}
	read, err := c.Hub.ReadUnavailable(r.Context(), rows)
	if err != nil {
		c.failed(w, err)
		return
	}
	whole := map[string]placementv1beta1.PlacementObject{}
	for _, placement := range read {
		whole[overview.NameOf(placement)] = placement
	}
	var all []placementRow
	for _, row := range rows {
		// An available placement is ready on all members, so its status need not be read.
		one := placementRow{row, row.Available, bar{ReadyWidth: barWidth, Text: "ready on all members"}}
		if placement := whole[row.Name]; placement != nil {
			one.Bar, one.Ready = barOfStatus(placement), overview.IsReady(placement)
		}
		all = append(all, one)
	}
	c.render(w, "placements", http.StatusOK, page{Title: "Placements", Here: "placements", Data: all})
}

// barWidth is the width of a complete bar.
const barWidth = 1000

// bar shows the members of a placement by status: their numbers, and the width of each part.
type bar struct {
	Ready, Pending, Failing                int
	ReadyWidth, PendingWidth, FailingWidth int
	// Text describes the bar.
	Text string
}

// drawn computes the widths and the text from the numbers.
func (b bar) drawn() bar {
	b.Text = fmt.Sprintf("%d ready, %d pending, %d failing", b.Ready, b.Pending, b.Failing)
	if all := b.Ready + b.Pending + b.Failing; all > 0 {
		b.FailingWidth = barWidth * b.Failing / all
		b.PendingWidth = barWidth * b.Pending / all
		// The first part gets the rounding difference.
		b.ReadyWidth = barWidth - b.PendingWidth - b.FailingWidth
	}
	return b
}

// FailingAt is where the last part starts.
func (b bar) FailingAt() int { return b.ReadyWidth + b.PendingWidth }

func barOfStatus(placement placementv1beta1.PlacementObject) bar {
	var b bar
	statuses, last := placement.GetStatus().PlacementStatuses, explain.LastStage(placement)
	for i := range statuses {
		of := &statuses[i]
		switch {
		case of.ClusterName == "":
		case overview.IsFailing(of):
			b.Failing++
		case meta.IsStatusConditionTrue(of.Conditions, last):
			b.Ready++
		default:
			b.Pending++
		}
	}
	return b.drawn()
}

// rollout is the number of members on which a placement was available, for each minute of the last
// hour.
type rollout struct {
	// Text describes the picture.
	Text string
	Bars []minute
}

// minute is one of 60 bars of a picture that is 600 wide and 60 high.
type minute struct{ X, Y, Height int }

// lastHour counts members by the time since which the placement is available on them.
func lastHour(bindings []placementv1beta1.BindingObject, now time.Time) rollout {
	const minutes, wide, high = 60, 10, 60
	var available [minutes + 1]int
	for _, b := range bindings {
		c := meta.FindStatusCondition(b.GetStatus().Conditions, placementv1beta1.ConditionAvailable)
		if c == nil || c.Status != metav1.ConditionTrue {
			continue
		}
		since := int(now.Sub(c.LastTransitionTime.Time) / time.Minute)
		for ago := 0; ago <= min(max(since, 0), minutes); ago++ {
			available[ago]++
		}
	}
	r := rollout{Text: fmt.Sprintf("Available on %d of %d members for an hour or longer, on %d now", available[minutes], len(bindings), available[0])}
	for x := range minutes {
		if height := high * available[minutes-1-x] / max(1, len(bindings)); height > 0 {
			r.Bars = append(r.Bars, minute{X: x * wide, Y: high - height, Height: height})
		}
	}
	return r
}

// drift is an object that differs on a member.
type drift struct {
	Object, Member string
	Fields         []placementv1beta1.PatchDetail
}

// rejected is a member that is not selected.
type rejected struct{ Member, Reason string }

// placement renders a placement: problems, members, resources, members that are not selected, and
// differences.
func (c *Console) placement(w http.ResponseWriter, r *http.Request) {
	facts, err := c.Hub.WhyPlacement(r.Context(), r.URL.Query().Get("name"), "")
	if err != nil {
		c.failed(w, err)
		return
	}
	// If all members are selected, the scheduler need not be run.
	if len(facts.Bindings) < len(facts.Members) || !facts.Scheduled() {
		if err := overview.Refuse(facts, c.Clock); err != nil {
			c.failed(w, err)
			return
		}
	}
	root := tree.Of(facts.Name, facts.Placement, facts.Bindings, nil)
	works, err := c.Hub.WorksOfMembers(r.Context(), facts.Placement, root.First(maxListed))
	if err != nil {
		c.failed(w, err)
		return
	}
	root = tree.Of(facts.Name, facts.Placement, facts.Bindings, works)
	problems := explain.Placement(facts)
	first, others := "", []explain.Problem(nil)
	if len(problems) > 0 {
		first, others = problems[0].String(), problems[1:min(len(problems), maxListed)]
	}
	var notSelected []rejected
	for _, member := range slices.Sorted(maps.Keys(facts.Refusals)) {
		notSelected = append(notSelected, rejected{member, facts.Refusals[member].Reason})
	}
	c.render(w, "placement", http.StatusOK, page{Title: "Placement " + facts.Name, Here: "placements", Data: map[string]any{
		"First": first, "Others": others, "Bar": barOfStatus(facts.Placement), "Tree": root, "Rejected": notSelected, "Drifts": driftsOf(facts.Bindings),
		"Rollout": lastHour(facts.Bindings, c.Clock.Now()),
	}})
}

func driftsOf(bindings []placementv1beta1.BindingObject) []drift {
	var all []drift
	for _, b := range bindings {
		status := b.GetStatus()
		for i := range status.DriftedPlacements {
			d := &status.DriftedPlacements[i]
			all = append(all, drift{explain.Ref(&d.ResourceIdentifier), b.GetSpec().TargetCluster, d.ObservedDrifts})
		}
		for i := range status.DiffedPlacements {
			d := &status.DiffedPlacements[i]
			all = append(all, drift{explain.Ref(&d.ResourceIdentifier), b.GetSpec().TargetCluster, d.ObservedDiffs})
		}
	}
	return all[:min(len(all), maxListed)]
}
