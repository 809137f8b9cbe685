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

// Type is a way to roll out.
type Type string

const (
	// All gives it to all clusters at once, whatever becomes of them.
	All Type = "All"
	// Progressive gives it to MaxConcurrency clusters at a time, in the order of their names.
	Progressive Type = "Progressive"
	// ProgressivePerGroup gives it to one decision group at a time, in the order of their
	// indexes.
	ProgressivePerGroup Type = "ProgressivePerGroup"
)

// Strategy is how something is rolled out. Of type All only Deadline counts.
type Strategy struct {
	Type Type
	// MaxConcurrency is how many clusters may be under way, as a number, or as a percentage
	// of all but those of mandatory groups, rounded up. Zero, or more than there are: all.
	// It is for Progressive.
	MaxConcurrency intstr.IntOrString
	// MaxFailures is how many clusters may have failed before nobody gets it any more: of
	// all clusters, or with ProgressivePerGroup of each group. A percentage is rounded up.
	MaxFailures intstr.IntOrString
	// MinSuccessTime is for how long a cluster has to have succeeded until it makes room
	// for another.
	MinSuccessTime time.Duration
	// Deadline is for how long a cluster may not have answered, be under way, or have
	// failed, until it has timed out and makes room for another. Nil: for ever.
	Deadline *time.Duration
	// Mandatory are the groups that come first, one after another. No cluster of them may
	// fail.
	Mandatory []GroupName
}

// GroupName names decision groups: by name, or by index if the name is empty.
type GroupName struct {
	Name  string
	Index int
}

// Group is a decision group of a placement. Several can have one name, no two one index.
type Group struct {
	Name     string
	Index    int
	Clusters []string
}

// State is how a cluster stands that has been given the new.
type State int

const (
	// Asked means that the cluster has not answered yet. Without a time it does not time out.
	Asked State = iota
	// Progressing means that it is under way.
	Progressing
	// Succeeded means that it is done.
	Succeeded
	// Failed means that it went wrong. It may come right again.
	Failed
	// TimedOut means that it was under way, or had failed, for longer than the deadline.
	TimedOut
	// Skipped means that the cluster is left out: it takes no place and holds nobody up.
	Skipped
)

// Standing is how a cluster stands that has been given the new.
type Standing struct {
	State State
	// Since is when it came to that. Zero: it is not known, and taken for now.
	Since time.Time
}

// Plan is what to do now.
type Plan struct {
	// Turn are the clusters to give it to now, in the order in which they come. None of
	// them has a standing.
	Turn []string
	// TimedOut are those whose deadline has passed, by name.
	TimedOut []string
	// Stopped says that more failed than may: nobody gets it until that changes.
	Stopped bool
	// Next is when to ask again if nothing changes before. Zero: never.
	Next time.Time
}

// deadlines is the form in which the public API has them.
var deadlines = regexp.MustCompile(`^[0-9]+[hms]$`)

// ParseDeadline reads a progressDeadline: nil for None and for none at all. The error says
// what it has to look like.
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

// amount is how many of a total a number or percentage means.
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
