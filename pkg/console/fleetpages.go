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
	"fleetgate.io/fleetgate/pkg/inspect/explain"
	"fleetgate.io/fleetgate/pkg/inspect/overview"
)

// failed renders an error.
func (c *Console) failed(w http.ResponseWriter, err error) {
	c.render(w, "failed", http.StatusBadGateway, page{Title: "Request failed", Data: err.Error()})
}

// fleet renders every member as a tile.
func (c *Console) fleet(w http.ResponseWriter, r *http.Request) {
	overview, err := c.Hub.Overview(r.Context())
	if err != nil {
		c.failed(w, err)
		return
	}
	by := r.URL.Query().Get("by")
	labels, notReady := map[string]bool{}, 0
	for i := range overview.Members {
		m := &overview.Members[i]
		for key := range m.Labels {
			labels[key] = true
		}
		if state := overview.State(m); state.Reason != "" {
			notReady++
		}
	}
	c.render(w, "fleet", http.StatusOK, page{Title: "Fleet", Here: "fleet", Data: map[string]any{
		"Overview": overview, "NotReady": notReady, "By": by, "Labels": slices.Sorted(maps.Keys(labels)), "Picture": drawn(overview, by),
	}})
}

// member renders a member with its problems and placed resources.
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
	fleet := &overview.Overview{Renewed: map[string]metav1.Time{name: c.Hub.RenewedBy(r.Context(), name)}}
	if facts.Tunnel != nil {
		fleet.Tunnels = map[string]overview.Tunnel{name: *facts.Tunnel}
	}
	state := fleet.State(member)
	seen := "never"
	if !state.LastSeen.IsZero() {
		seen = duration.HumanDuration(c.Clock.Since(state.LastSeen.Time)) + " ago"
	}
	problems := explain.Member(facts)
	first := ""
	if len(problems) > 0 {
		first = problems[0].String()
	}
	c.render(w, "member", http.StatusOK, page{Title: "Member " + name, Here: "fleet", Data: map[string]any{
		"Member": member, "State": state, "Seen": seen, "Answers": problems, "First": first, "Placed": placed, "Live": c.readMember(r.Context(), name),
	}})
}

// problem is an entry of the problems page.
type problem struct {
	Link, Object, Reason string
	// Remedy is empty if Reason contains it.
	Remedy string
	rank   int
}

// problems renders the members and placements that are not ready, the most severe first.
func (c *Console) problems(w http.ResponseWriter, r *http.Request) {
	overview, err := c.Hub.Overview(r.Context())
	if err != nil {
		c.failed(w, err)
		return
	}
	var all []problem
	for i := range overview.Members {
		m := &overview.Members[i]
		state := overview.State(m)
		if state.Reason == "" || state.OnlyPlacements {
			continue // The placement itself is listed.
		}
		all = append(all, problem{Link: "/member?name=" + query(m.Name), Object: "Member " + m.Name, Reason: state.Reason, Remedy: "kubectl fleetgate why member/" + m.Name, rank: rankOf(m)})
	}
	for _, placement := range overview.NotReady {
		all = append(all, ofPlacement(placement))
	}
	slices.SortStableFunc(all, func(a, b problem) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.Object, b.Object))
	})
	c.render(w, "problems", http.StatusOK, page{Title: "Problems", Here: "problems", Data: all})
}

// rankOf ranks members with problems first, and those waiting for approval last.
func rankOf(m *clusterv1beta1.MemberCluster) int {
	if !m.IsApproved() {
		return 3
	}
	return 0
}
