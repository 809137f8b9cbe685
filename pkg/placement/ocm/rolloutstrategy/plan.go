// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rolloutstrategy

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Next returns the next step. statuses are those of the clusters that have been given the new
// version; those of clusters in no group do not count. The error means that the strategy is
// invalid.
func Next(how Strategy, groups []Group, statuses map[string]ClusterRolloutStatus, now time.Time) (Plan, error) {
	r := &rollout{how: how, statuses: statuses, now: now}
	groups = slices.SortedStableFunc(slices.Values(groups), func(a, b Group) int { return cmp.Compare(a.Index, b.Index) })
	switch how.Type {
	case All, "":
		r.how.MinSuccessTime = 0
		clusters := clustersOf(groups)
		r.perCluster(clusters, len(clusters), len(clusters))
	case Progressive:
		return r.progressive(groups)
	case ProgressivePerGroup:
		return r.progressivePerGroup(groups)
	default:
		return Plan{}, fmt.Errorf("rollout strategy %q is not one of %s, %s and %s", how.Type, All, Progressive, ProgressivePerGroup)
	}
	return r.done(), nil
}

// rollout is one computation in progress.
type rollout struct {
	how      Strategy
	statuses map[string]ClusterRolloutStatus
	now      time.Time
	plan     Plan
}

func (r *rollout) progressive(groups []Group) (Plan, error) {
	failures, err := amount("maxFailures", r.how.MaxFailures, len(clustersOf(groups)))
	if err != nil {
		return Plan{}, err
	}
	first, rest := r.mandatory(groups)
	clusters := clustersOf(rest)
	size, err := amount("maxConcurrency", r.how.MaxConcurrency, len(clusters))
	if err != nil {
		return Plan{}, err
	}
	if size <= 0 {
		size = len(clusters)
	}
	if r.perGroup(first, none) {
		r.perCluster(clusters, size, failures)
	}
	return r.done(), nil
}

func (r *rollout) progressivePerGroup(groups []Group) (Plan, error) {
	tolerated := func(group Group) (int, error) {
		return amount("maxFailures", r.how.MaxFailures, len(group.Clusters))
	}
	if _, err := tolerated(Group{}); err != nil {
		return Plan{}, err
	}
	first, rest := r.mandatory(groups)
	if r.perGroup(first, none) {
		r.perGroup(rest, func(group Group) int {
			n, _ := tolerated(group)
			return n
		})
	}
	return r.done(), nil
}

// none tolerates no failure in a mandatory group.
func none(Group) int { return 0 }

// mandatory separates the mandatory groups, which come first, from the others.
func (r *rollout) mandatory(groups []Group) (first, rest []Group) {
	for _, group := range groups {
		named := slices.ContainsFunc(r.how.Mandatory, func(name GroupName) bool {
			if name.Name != "" {
				return name.Name == group.Name
			}
			return name.Index == group.Index
		})
		if named {
			first = append(first, group)
		} else {
			rest = append(rest, group)
		}
	}
	return first, rest
}

// perCluster starts as many clusters as there is room for. Each cluster in progress takes room, and
// so does a failed one until it has timed out.
func (r *rollout) perCluster(clusters []string, size, tolerated int) {
	var waiting []string
	inProgress, failed := 0, 0
	for _, cluster := range clusters {
		status, given := r.status(cluster)
		if !given {
			waiting = append(waiting, cluster)
			continue
		}
		if r.takesRoom(status) {
			inProgress++
		}
		if status.State == Failed || status.State == TimedOut {
			failed++
		}
	}
	r.plan.Stopped = failed > tolerated
	if r.plan.Stopped {
		return
	}
	r.turn(waiting[:min(len(waiting), max(0, size-inProgress))])
}

// perGroup starts the first group that is not finished, and reports whether all are finished. In a
// finished group no cluster is in progress, and no more than tolerated have failed.
func (r *rollout) perGroup(groups []Group, tolerated func(Group) int) bool {
	for _, group := range groups {
		var waiting []string
		inProgress, failed := 0, 0
		for _, cluster := range clustersOf([]Group{group}) {
			status, given := r.status(cluster)
			switch {
			case !given:
				waiting = append(waiting, cluster)
			case status.State == Failed || status.State == TimedOut:
				failed++
			case r.takesRoom(status):
				inProgress++
			}
		}
		if failed > tolerated(group) {
			r.plan.Stopped = true
		}
		if !r.plan.Stopped {
			r.turn(waiting)
		}
		if r.plan.Stopped || inProgress+len(waiting) > 0 {
			return false
		}
	}
	return true
}

func (r *rollout) turn(clusters []string) { r.plan.Turn = append(r.plan.Turn, clusters...) }

// status is the current status of a cluster, and whether it has been given the new version.
func (r *rollout) status(cluster string) (ClusterRolloutStatus, bool) {
	status, given := r.statuses[cluster]
	if !given {
		return ClusterRolloutStatus{}, false
	}
	timeless := status.Since.IsZero()
	if timeless {
		status.Since = r.now
	}
	switch status.State {
	case Progressing, Failed:
	case Pending:
		if timeless {
			return status, true
		}
	default:
		return status, true
	}
	if r.how.Deadline == nil {
		return status, true
	}
	if !r.pending(status.Since.Add(*r.how.Deadline)) {
		r.plan.TimedOut = append(r.plan.TimedOut, cluster)
		status.State = TimedOut
	}
	return status, true
}

// takesRoom is true if a cluster delays the others.
func (r *rollout) takesRoom(status ClusterRolloutStatus) bool {
	switch status.State {
	case Succeeded:
		return r.how.MinSuccessTime > 0 && r.pending(status.Since.Add(r.how.MinSuccessTime))
	case TimedOut, Skipped:
		return false
	default:
		return true
	}
}

// pending is true if a time is in the future, and records the earliest such time.
func (r *rollout) pending(until time.Time) bool {
	if !r.now.Before(until) {
		return false
	}
	if r.plan.Next.IsZero() || until.Before(r.plan.Next) {
		r.plan.Next = until
	}
	return true
}

func (r *rollout) done() Plan {
	slices.Sort(r.plan.TimedOut)
	return r.plan
}

// clustersOf lists the clusters of groups by name, without duplicates.
func clustersOf(groups []Group) []string {
	var clusters []string
	for _, group := range groups {
		clusters = append(clusters, group.Clusters...)
	}
	slices.Sort(clusters)
	return slices.Compact(clusters)
}
