// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"maps"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/plugin/hub"
	"fleetgate.io/fleetgate/pkg/plugin/why"
)

// failed is the page of what could not be read, with why.
func (c *Console) failed(w http.ResponseWriter, err error) {
	c.render(w, "failed", http.StatusBadGateway, page{Title: "This could not be read", Data: err.Error()})
}

// fleet is every member as a tile.
func (c *Console) fleet(w http.ResponseWriter, r *http.Request) {
	overview, err := c.Hub.Overview(r.Context())
	if err != nil {
		c.failed(w, err)
		return
	}
	by := r.URL.Query().Get("by")
	labels, unwell := map[string]bool{}, 0
	for i := range overview.Members {
		m := &overview.Members[i]
		for key := range m.Labels {
			labels[key] = true
		}
		if state := overview.State(m); state.WhyNot != "" {
			unwell++
		}
	}
	c.render(w, "fleet", http.StatusOK, page{Title: "Fleet", Here: "fleet", Data: map[string]any{
		"Overview": overview, "Unwell": unwell, "By": by, "Labels": slices.Sorted(maps.Keys(labels)), "Picture": drawn(overview, by),
	}})
}

// member is one, with what is placed there and what is wrong.
func (c *Console) member(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("name")
	member, err := c.Hub.Member(r.Context(), name)
	if err != nil {
		c.failed(w, err)
		return
	}
	facts, err := c.Hub.WhyMember(r.Context(), name)
	if err != nil {
		c.failed(w, err)
		return
	}
	placed, err := c.Hub.PlacedOn(r.Context(), name)
	if err != nil {
		c.failed(w, err)
		return
	}
	overview := &hub.Overview{Renewed: map[string]metav1.Time{name: c.Hub.RenewedBy(r.Context(), name)}}
	if facts.Tunnel != nil {
		overview.Tunnels = map[string]hub.Tunnel{name: *facts.Tunnel}
	}
	state := overview.State(member)
	seen := "never"
	if !state.LastSeen.IsZero() {
		seen = duration.HumanDuration(c.Clock.Since(state.LastSeen.Time)) + " ago"
	}
	answers := why.Member(facts)
	first := ""
	if len(answers) > 0 {
		first = answers[0].String()
	}
	c.render(w, "member", http.StatusOK, page{Title: "Member " + name, Here: "fleet", Data: map[string]any{
		"Member": member, "State": state, "Seen": seen, "Answers": answers, "First": first, "Placed": placed, "Asked": c.ask(r.Context(), name),
	}})
}

// trouble is a line of what is wrong now.
type trouble struct {
	Link, What, Why string
	// Remedy is what to do, where that is not part of Why.
	Remedy string
	rank   int
}

// wrong is everything that is not as it should be, the worst first.
func (c *Console) wrong(w http.ResponseWriter, r *http.Request) {
	overview, err := c.Hub.Overview(r.Context())
	if err != nil {
		c.failed(w, err)
		return
	}
	var all []trouble
	for i := range overview.Members {
		m := &overview.Members[i]
		state := overview.State(m)
		if state.WhyNot == "" || state.OnlyPlacements {
			continue // What fails there is told with its placement.
		}
		all = append(all, trouble{Link: "/member?name=" + query(m.Name), What: "Member " + m.Name, Why: state.WhyNot, Remedy: "kubectl fleetgate why member/" + m.Name, rank: rankOf(m)})
	}
	for _, placement := range overview.Unwell {
		all = append(all, ofPlacement(placement))
	}
	slices.SortStableFunc(all, func(a, b trouble) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.What, b.What)) })
	c.render(w, "wrong", http.StatusOK, page{Title: "What is wrong now", Here: "wrong", Data: all})
}

// rankOf has members that are lost first, and those that wait for a person last.
func rankOf(m *clusterv1beta1.MemberCluster) int {
	if !m.IsApproved() {
		return 3
	}
	return 0
}
