// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
)

const (
	// AfterAnnotation is on a placement: the number of seconds without a heartbeat after which the
	// placement leaves a member.
	AfterAnnotation = "fleetgate.io/failover-after-seconds"
	// TaintsAnnotation is on a placement: the keys of taints, separated by commas, for which the
	// placement leaves a member, tolerated or not.
	TaintsAnnotation = "fleetgate.io/failover-taints"
)

const (
	// minAfter is the shortest allowed time: agents report every minute by default, and at most every
	// second.
	minAfter = 2 * time.Second
	// maxAfter is the longest allowed time.
	maxAfter = 7 * 24 * time.Hour
	// maxTaints is the number of keys that a placement can name.
	maxTaints = 20
)

// Terms say when a placement leaves a member. The zero value means never.
type Terms struct {
	// After is how long a member can be without a heartbeat, counted from the last one, once the hub
	// considers it disconnected; 0 means indefinitely.
	After time.Duration
	// Taints are the keys of taints for which the placement leaves.
	Taints []string
}

// TermsOf reads the annotations of a placement. The error is for the user; valid parts are returned
// with it.
func TermsOf(annotations map[string]string) (Terms, error) {
	var terms Terms
	for key := range strings.SplitSeq(annotations[TaintsAnnotation], ",") {
		if key = strings.TrimSpace(key); key != "" && !slices.Contains(terms.Taints, key) {
			terms.Taints = append(terms.Taints, key)
		}
	}
	if len(terms.Taints) > maxTaints {
		return Terms{}, fmt.Errorf("annotation %s names %d taints, at most %d are allowed", TaintsAnnotation, len(terms.Taints), maxTaints)
	}
	text, ok := annotations[AfterAnnotation]
	if !ok {
		return terms, nil
	}
	seconds, err := strconv.Atoi(text)
	after := time.Duration(seconds) * time.Second
	if err != nil || after < minAfter || after > maxAfter {
		return terms, fmt.Errorf("annotation %s is %q: it must be a number of seconds from %d to %d",
			AfterAnnotation, text, int(minAfter.Seconds()), int(maxAfter.Seconds()))
	}
	terms.After = after
	return terms, nil
}

// Never reports whether the placement never leaves a member.
func (t Terms) Never() bool { return t.After == 0 && len(t.Taints) == 0 }

// Met returns why the placement has to leave the member, or "". Then it also returns after how long to
// check again without a change, or 0. A member counts as connected while its condition says so, however
// old its recorded heartbeat is. Missing heartbeats before heard do not count, because most members
// were unreachable then, nor those before awaited, because the hub did not listen.
func (t Terms) Met(member *clusterv1beta1.MemberCluster, heard, awaited, now time.Time) (reason string, again time.Duration) {
	if key := t.taintOf(member); key != "" {
		if wait := heard.Add(taintGrace).Sub(now); wait > 0 && automatic(key) {
			return "", wait
		}
		return "the member has the taint " + key, 0
	}
	if t.After == 0 || member.IsJoined() {
		return "", 0
	}
	agent := member.Status.AgentStatusOf(clusterv1beta1.MemberAgent)
	if agent == nil {
		return "", 0 // It never reported, so nothing can be on it.
	}
	since := agent.LastReceivedHeartbeat.Time
	for _, other := range []time.Time{heard, awaited} {
		if other.After(since) {
			since = other
		}
	}
	left := since.Add(t.After).Sub(now)
	if left <= 0 {
		return fmt.Sprintf("the member has been silent for %s", t.After), 0
	}
	return "", left
}

// taintOf is the key of a member's taint for which the placement leaves, or "".
func (t Terms) taintOf(member *clusterv1beta1.MemberCluster) string {
	key := ""
	for _, taint := range member.Spec.Taints {
		if slices.Contains(t.Taints, taint.Key) && (key == "" || !automatic(taint.Key)) {
			key = taint.Key
		}
	}
	return key
}

// ordered reports whether the member has a taint of the terms that only users set.
func (t Terms) ordered(member *clusterv1beta1.MemberCluster) bool {
	return slices.ContainsFunc(member.Spec.Taints, func(taint clusterv1beta1.Taint) bool {
		return slices.Contains(t.Taints, taint.Key) && !automatic(taint.Key)
	})
}

// automatic reports whether the hub sets a taint on unreachable members.
func automatic(key string) bool {
	return key == clusterv1beta1.TaintUnreachable || key == clusterv1.TaintUnreachable || key == clusterv1.TaintUnavailable
}
