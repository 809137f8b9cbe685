// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"maps"
	"net/http"
	"net/url"
	"slices"

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
		}
	}
	return t
}

// placements are all of them, in the hub's own columns.
func (c *Console) placements(w http.ResponseWriter, r *http.Request) {
	rows, err := c.Hub.PlacementRows(r.Context())
	if err != nil {
		c.failed(w, err)
		return
	}
	c.render(w, "placements", http.StatusOK, page{Title: "Placements", Here: "placements", Data: rows})
}

// bar is the members of a placement by how they are, a thousand wide.
type bar struct{ Well, Unwell, WellWidth, UnwellWidth int }

func barOf(root *tree.Node) bar {
	var b bar
	for _, n := range root.Children {
		if n.Well {
			b.Well++
		} else {
			b.Unwell++
		}
	}
	if all := b.Well + b.Unwell; all > 0 {
		b.WellWidth = 1000 * b.Well / all
		b.UnwellWidth = 1000 - b.WellWidth
	}
	return b
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
	facts, err := c.Hub.WhyPlacement(r.Context(), r.URL.Query().Get("name"), "", c.Clock)
	if err != nil {
		c.failed(w, err)
		return
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
		"First": first, "Others": others, "Bar": barOf(&root), "Tree": root, "Refused": notPicked, "Drifts": driftsOf(facts.Bindings),
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
