// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rolloutstrategy

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Type is a type of rollout.
type Type string

const (
	// All starts all clusters at once, whatever the results.
	All Type = "All"
	// Progressive starts MaxConcurrency clusters at a time, in the order of their names.
	Progressive Type = "Progressive"
	// ProgressivePerGroup starts one decision group at a time, in the order of their indexes.
	ProgressivePerGroup Type = "ProgressivePerGroup"
)

// Strategy says how to roll out. Type All uses only Deadline.
type Strategy struct {
	Type Type
	// MaxConcurrency limits the clusters in progress, as a number, or as a percentage of all except
	// those of mandatory groups, rounded up. Zero, or more than there are, means all. It is for
	// Progressive.
	MaxConcurrency intstr.IntOrString
	// MaxFailures is how many clusters may fail before the rollout stops: of all clusters, or with
	// ProgressivePerGroup of each group. A percentage is rounded up.
	MaxFailures intstr.IntOrString
	// MinSuccessTime is how long a cluster must have succeeded until the next one may start.
	MinSuccessTime time.Duration
	// Deadline is how long a cluster may be unanswered, in progress or failed, until it has timed
	// out and the next one may start. Nil is no limit.
	Deadline *time.Duration
	// Mandatory are the groups that come first, one after another. No cluster of them may fail.
	Mandatory []GroupName
}

// GroupName names decision groups: by name, or by index if the name is empty.
type GroupName struct {
	Name  string
	Index int
}

// Group is a decision group of a placement. Several can have the same name, but not the same index.
type Group struct {
	Name     string
	Index    int
	Clusters []string
}

// State is the state of a cluster that has been given the new version.
type State int

const (
	// Pending means that the cluster has not reported a state yet. Without a time it does not time out.
	Pending State = iota
	// Progressing means that the cluster is in progress.
	Progressing
	// Succeeded means that the cluster is done.
	Succeeded
	// Failed means that the cluster has failed. It may recover.
	Failed
	// TimedOut means that the cluster was in progress, or failed, for longer than the deadline.
	TimedOut
	// Skipped means that the cluster is left out: it takes no room and delays no other.
	Skipped
)

// ClusterRolloutStatus is the state of a cluster that has been given the new version, and its time.
type ClusterRolloutStatus struct {
	State State
	// Since is when the state began. Zero is unknown, and treated as now.
	Since time.Time
}

// Plan is the next step of a rollout.
type Plan struct {
	// Turn are the clusters to start now, in order. None of them has a status.
	Turn []string
	// TimedOut are those whose deadline has passed, by name.
	TimedOut []string
	// Stopped is true if more have failed than allowed: no further cluster starts until that
	// changes.
	Stopped bool
	// Next is when to compute the next step if nothing changes before. Zero is never.
	Next time.Time
}

// deadlines is the format in the public API.
var deadlines = regexp.MustCompile(`^[0-9]+[hms]$`)

// ParseDeadline reads a progressDeadline: nil for None and for an empty one. The error names the
// expected format.
func ParseDeadline(text string) (*time.Duration, error) {
	if text == "" || text == "None" {
		return nil, nil
	}
	if !deadlines.MatchString(text) {
		return nil, fmt.Errorf("progressDeadline %q is neither None nor a whole number of h, m or s", text)
	}
	deadline, err := time.ParseDuration(text)
	if err != nil {
		return nil, fmt.Errorf("progressDeadline %q is too long: %w", text, err)
	}
	return &deadline, nil
}

// amount applies a number or percentage to a total.
func amount(field string, value intstr.IntOrString, total int) (int, error) {
	if value.Type == intstr.Int {
		return value.IntValue(), nil
	}
	text, percent := strings.CutSuffix(value.StrVal, "%")
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s %q is neither a number nor a percentage", field, value.StrVal)
	}
	if percent {
		n = (n*total + 99) / 100
	}
	return n, nil
}
