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
	placementtrouble "fleetgate.io/fleetgate/pkg/placement/trouble"
	"fleetgate.io/fleetgate/pkg/plugin/hub"
	"fleetgate.io/fleetgate/pkg/plugin/tree"
	"fleetgate.io/fleetgate/pkg/plugin/why"
)

// maxListed is how many reasons a page of a placement lists.
const maxListed = 20

func query(text string) string { return url.QueryEscape(text) }

// ofPlacement is the first trouble of a placement that is not well.
func ofPlacement(placement placementv1beta1.PlacementObject) trouble {
	t := trouble{Link: "/placement?name=" + query(hub.NameOf(placement)), What: "Placement " + hub.NameOf(placement), Why: "it is on its way", rank: 2}
	if found := placementtrouble.Of(placement); len(found) > 0 {
		t.Why = found[0].String()
		if !found[0].Waits {
			t.rank = 1
			t.Remedy = why.Remedy(found[0].Message, found[0].Object, found[0].Member, hub.NameOf(placement))
		}
	}
	return t
}

// placementRow is a placement in the list of all.
type placementRow struct {
	hub.PlacementRow
	Bar bar
}

// placements are all of them, in the hub's own columns.
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
		whole[hub.NameOf(placement)] = placement
	}
	var all []placementRow
	for _, row := range rows {
		// What is available is so on all members, however many they are.
		one := placementRow{row, bar{WellWidth: barWidth, Text: "all have it"}}
		if placement := whole[row.Name]; placement != nil {
			one.Bar, one.Well = barOfStatus(placement), hub.WellPlacement(placement)
		}
		all = append(all, one)
	}
	c.render(w, "placements", http.StatusOK, page{Title: "Placements", Here: "placements", Data: all})
}

// barWidth is that of a whole bar.
const barWidth = 1000

// bar is the members of a placement by how they are, and how wide each part is.
type bar struct {
	Well, Waiting, Failing                int
	WellWidth, WaitingWidth, FailingWidth int
	// Text says the same.
	Text string
}

// drawn completes a bar of which the numbers are known.
func (b bar) drawn() bar {
	b.Text = fmt.Sprintf("%d have it, %d wait, %d fail", b.Well, b.Waiting, b.Failing)
	if all := b.Well + b.Waiting + b.Failing; all > 0 {
		b.FailingWidth = barWidth * b.Failing / all
		b.WaitingWidth = barWidth * b.Waiting / all
		// What rounding leaves over is nobody's: it goes to the part that is first.
		b.WellWidth = barWidth - b.WaitingWidth - b.FailingWidth
	}
	return b
}

// FailingAt is where the last part begins.
func (b bar) FailingAt() int { return b.WellWidth + b.WaitingWidth }

func barOfStatus(placement placementv1beta1.PlacementObject) bar {
	var b bar
	statuses, last := placement.GetStatus().PlacementStatuses, why.LastStage(placement)
	for i := range statuses {
		of := &statuses[i]
		switch {
		case of.ClusterName == "":
		case !hub.Well(of):
			b.Failing++
		case meta.IsStatusConditionTrue(of.Conditions, last):
			b.Well++
		default:
			b.Waiting++
		}
	}
	return b.drawn()
}

// rollout is how many members of a placement had it, minute by minute of the last hour.
type rollout struct {
	// Text says how it was an hour ago, and how it is.
	Text string
	Bars []minute
}

// minute is one of 60 bars of a picture 600 wide and 60 high.
type minute struct{ X, Y, Height int }

// lastHour counts members by the moment since which it is available there.
func lastHour(bindings []placementv1beta1.BindingObject, now time.Time) rollout {
	const minutes, wide, high = 60, 10, 60
	var have [minutes + 1]int
	for _, b := range bindings {
		c := meta.FindStatusCondition(b.GetStatus().Conditions, placementv1beta1.ConditionAvailable)
		if c == nil || c.Status != metav1.ConditionTrue {
			continue
		}
		since := int(now.Sub(c.LastTransitionTime.Time) / time.Minute)
		for ago := 0; ago <= min(max(since, 0), minutes); ago++ {
			have[ago]++
		}
	}
	r := rollout{Text: fmt.Sprintf("%d of %d members have had it for an hour or longer, %d have it now", have[minutes], len(bindings), have[0])}
	for x := range minutes {
		if height := high * have[minutes-1-x] / max(1, len(bindings)); height > 0 {
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

// refused is a member that is not picked.
type refused struct{ Member, Reason string }

// placement is one as a picture: why, members, objects, who is not picked, what differs.
func (c *Console) placement(w http.ResponseWriter, r *http.Request) {
	facts, err := c.Hub.WhyPlacement(r.Context(), r.URL.Query().Get("name"), "")
	if err != nil {
		c.failed(w, err)
		return
	}
	// Where all members have it there is none to ask about.
	if len(facts.Bindings) < len(facts.Members) || !facts.Scheduled() {
		if err := hub.Refuse(facts, c.Clock); err != nil {
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
	answers := why.Placement(facts)
	first, others := "", []why.Answer(nil)
	if len(answers) > 0 {
		first, others = answers[0].String(), answers[1:min(len(answers), maxListed)]
	}
	var notPicked []refused
	for _, member := range slices.Sorted(maps.Keys(facts.Refusals)) {
		notPicked = append(notPicked, refused{member, facts.Refusals[member].Reason})
	}
	c.render(w, "placement", http.StatusOK, page{Title: "Placement " + facts.Name, Here: "placements", Data: map[string]any{
		"First": first, "Others": others, "Bar": barOfStatus(facts.Placement), "Tree": root, "Refused": notPicked, "Drifts": driftsOf(facts.Bindings),
		"Rollout": lastHour(facts.Bindings, c.Clock.Now()),
	}})
}

func driftsOf(bindings []placementv1beta1.BindingObject) []drift {
	var all []drift
	for _, b := range bindings {
		status := b.GetStatus()
		for i := range status.DriftedPlacements {
			d := &status.DriftedPlacements[i]
			all = append(all, drift{why.Ref(&d.ResourceIdentifier), b.GetSpec().TargetCluster, d.ObservedDrifts})
		}
		for i := range status.DiffedPlacements {
			d := &status.DiffedPlacements[i]
			all = append(all, drift{why.Ref(&d.ResourceIdentifier), b.GetSpec().TargetCluster, d.ObservedDiffs})
		}
	}
	return all[:min(len(all), maxListed)]
}
