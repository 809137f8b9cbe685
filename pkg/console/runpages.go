// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/plugin/hub"
)

// run, stage and runMember are a run as lanes.
type run struct {
	Name, Placement, State string
	Stages                 []stage
}

type stage struct {
	Name    string
	Members []runMember
}

type runMember struct{ Name, Class, State string }

// runs are all of them, the newest first.
func (c *Console) runs(w http.ResponseWriter, r *http.Request) {
	found, err := c.Hub.Runs(r.Context())
	if err != nil {
		c.failed(w, err)
		return
	}
	var all []run
	for _, f := range found {
		all = append(all, runOf(f))
	}
	c.render(w, "runs", http.StatusOK, page{Title: "Runs", Here: "runs", Data: all})
}

func runOf(f placementv1beta1.UpdateRunObject) run {
	state, waits := hub.StateOfRun(f)
	one := run{Name: hub.NameOf(f), Placement: f.GetSpec().PlacementName, State: state}
	if waits != "" {
		one.State += ": " + waits
	}
	for i := range f.GetStatus().StagesStatus {
		s := &f.GetStatus().StagesStatus[i]
		lane := stage{Name: s.StageName}
		for j := range s.Clusters {
			lane.Members = append(lane.Members, runMemberOf(&s.Clusters[j]))
		}
		one.Stages = append(one.Stages, lane)
	}
	return one
}

func runMemberOf(c *placementv1beta1.ClusterUpdatingStatus) runMember {
	m := runMember{Name: c.ClusterName, Class: "waiting", State: "waits"}
	if meta.IsStatusConditionTrue(c.Conditions, placementv1beta1.ConditionClusterUpdatingStarted) {
		m.Class, m.State = "started", "is updated"
	}
	if done := meta.FindStatusCondition(c.Conditions, placementv1beta1.ConditionClusterUpdatingSucceeded); done != nil {
		m.Class, m.State = "done", "has it"
		if done.Status != metav1.ConditionTrue {
			m.Class, m.State = "failed", "failed: "+done.Message
		}
	}
	return m
}

// confirm shows the exact request before anything is sent.
func (c *Console) confirm(w http.ResponseWriter, r *http.Request) {
	what, name := r.URL.Query().Get("what"), r.URL.Query().Get("run")
	found, err := c.Hub.Run(r.Context(), name)
	if err != nil {
		c.failed(w, err)
		return
	}
	var request string
	switch what {
	case "stop":
		request = fmt.Sprintf("patch %T %s: {\"spec\": {\"state\": \"Stop\"}}", found, name)
	case "approve":
		waiting, err := c.Hub.WaitingApprovals(r.Context(), found)
		if err != nil {
			c.failed(w, err)
			return
		}
		if len(waiting) == 0 {
			c.failed(w, fmt.Errorf("run %q waits for no approval", name))
			return
		}
		for _, approval := range waiting {
			request += fmt.Sprintf("patch status of approval request %s: condition Approved=True\n", hub.NameOf(approval))
		}
	default:
		c.failed(w, fmt.Errorf("there is no button %q", what))
		return
	}
	c.render(w, "confirm", http.StatusOK, page{Title: "Run " + name, Here: "runs", Data: map[string]any{"What": what, "Run": name, "Request": request}})
}

// approve and stop do what confirm has shown.
func (c *Console) approve(w http.ResponseWriter, r *http.Request) {
	_, err := c.Hub.ApproveRun(r.Context(), r.PostFormValue("run"), "")
	c.done(w, r, err)
}

func (c *Console) stop(w http.ResponseWriter, r *http.Request) {
	c.done(w, r, c.Hub.SetRunState(r.Context(), r.PostFormValue("run"), placementv1beta1.UpdateRunStop))
}

func (c *Console) done(w http.ResponseWriter, r *http.Request, err error) {
	if err != nil {
		c.failed(w, err)
		return
	}
	http.Redirect(w, r, "/runs", http.StatusSeeOther)
}
