// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/inspect/overview"
)

// run, stage and runMember show a run as lanes.
type run struct {
	Name, Placement, State string
	// Ended is true if the run can no longer be approved or stopped.
	Ended  bool
	Stages []stage
}

type stage struct {
	Name    string
	Members []runMember
}

type runMember struct{ Name, Class, State string }

// runs renders all update runs, the newest first.
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
	c.render(w, "runs", http.StatusOK, page{Title: "Update runs", Here: "runs", Data: all})
}

func runOf(f placementv1beta1.UpdateRunObject) run {
	state, message := overview.StateOfRun(f)
	one := run{Name: overview.NameOf(f), Placement: placementOf(f), State: state, Ended: state == "Succeeded" || state == "Failed"}
	if message != "" {
		one.State += ": " + message
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

// placementOf returns the name of a run's placement.
func placementOf(f placementv1beta1.UpdateRunObject) string {
	if f.GetNamespace() == "" {
		return f.GetSpec().PlacementName
	}
	return f.GetNamespace() + "/" + f.GetSpec().PlacementName
}

func runMemberOf(c *placementv1beta1.ClusterUpdatingStatus) runMember {
	m := runMember{Name: c.ClusterName, Class: "pending", State: "pending"}
	if meta.IsStatusConditionTrue(c.Conditions, placementv1beta1.ConditionClusterUpdatingStarted) {
		m.Class, m.State = "updating", "updating"
	}
	if done := meta.FindStatusCondition(c.Conditions, placementv1beta1.ConditionClusterUpdatingSucceeded); done != nil {
		m.Class, m.State = "updated", "updated"
		if done.Status != metav1.ConditionTrue {
			m.Class, m.State = "failed", "failed: "+done.Message
		}
	}
	return m
}

// changes returns the requests of a button of a run.
func (c *Console) changes(r *http.Request, what, run string) ([]overview.Change, error) {
	switch what {
	case "stop":
		change, err := c.Hub.Steering(r.Context(), run, placementv1beta1.UpdateRunStop)
		return []overview.Change{change}, err
	case "approve":
		changes, err := c.Hub.Approvals(r.Context(), run, "", "kubectl fleetgate console")
		if err == nil && len(changes) == 0 {
			err = fmt.Errorf("run %q has no pending approval requests", run)
		}
		return changes, err
	}
	return nil, fmt.Errorf("unknown action %q", what)
}

// shownRequest is a request that is waiting for confirmation.
type shownRequest struct{ Name, Request string }

// confirm shows the exact requests before anything is sent.
func (c *Console) confirm(w http.ResponseWriter, r *http.Request) {
	what, name := r.URL.Query().Get("what"), r.URL.Query().Get("run")
	changes, err := c.changes(r, what, name)
	if err != nil {
		c.failed(w, err)
		return
	}
	var requests []shownRequest
	for _, change := range changes {
		request, err := c.Hub.Request(change)
		if err != nil {
			c.failed(w, err)
			return
		}
		requests = append(requests, shownRequest{change.Name(), request})
	}
	id, err := c.pending.keep(what, changes, c.Clock.Now())
	if err != nil {
		c.failed(w, err)
		return
	}
	c.render(w, "confirm", http.StatusOK, page{Title: "Run " + name, Here: "runs", Data: map[string]any{"What": what, "Shown": id, "Requests": requests}})
}

// approve and stop send exactly the requests that confirm has shown.
func (c *Console) approve(w http.ResponseWriter, r *http.Request) { c.send(w, r, "approve") }

func (c *Console) stop(w http.ResponseWriter, r *http.Request) { c.send(w, r, "stop") }

func (c *Console) send(w http.ResponseWriter, r *http.Request, what string) {
	changes, err := c.pending.take(what, r.PostFormValue("shown"), c.Clock.Now())
	if err != nil {
		c.failed(w, err)
		return
	}
	for _, change := range changes {
		err := c.Hub.Send(r.Context(), change)
		if apierrors.IsConflict(err) {
			err = fmt.Errorf("%s has changed since the request was shown: return to the update runs and review it again: %w", change.Name(), err)
		}
		if err != nil {
			c.failed(w, err)
			return
		}
	}
	http.Redirect(w, r, "/runs", http.StatusSeeOther)
}
