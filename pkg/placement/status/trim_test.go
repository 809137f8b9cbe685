// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/objects"
)

// crowd is the status of a placement on n members. The first ones fail, each with as many objects as a
// binding names.
func crowd(t *testing.T, n, failing int) (*placementv1beta1.ClusterResourcePlacement, *placementv1beta1.PlacementStatus) {
	t.Helper()
	const details = 100
	p := placementOf(nil)
	o := &Observed{Placement: p, Snapshot: "p-2-snapshot", Index: "2", IndexOf: func(string) string { return "2" }}
	var names []string
	for i := range n {
		name := fmt.Sprintf("a-member-with-a-name-of-usual-length-%04d", i)
		if i < objects.MaxDecisions {
			names = append(names, name)
		}
		conditions := allReady
		if i < failing {
			conditions = append(append([]string(nil), allReady[:3]...), "Applied=False/NotAllWorkHaveBeenApplied")
		}
		b := bound(name, conditions...)
		b.Spec.ClusterDecision = placementv1beta1.ClusterDecision{ClusterName: name, Selected: true, Reason: "because"}
		for j := range b.Status.Conditions {
			b.Status.Conditions[j].Message = strings.Repeat("why it is so ", 12)
		}
		if i < failing {
			for j := range details {
				b.Status.FailedPlacements = append(b.Status.FailedPlacements, placementv1beta1.FailedResourcePlacement{
					ResourceIdentifier: placementv1beta1.ResourceIdentifier{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: fmt.Sprint("settings-", j)},
					Condition:          metav1.Condition{Type: "Applied", Status: metav1.ConditionFalse, Reason: "ManifestApplyFailed", Message: strings.Repeat("no ", 50)}})
			}
		}
		o.Bindings = append(o.Bindings, b)
	}
	o.Policy = decided(names...)
	return p, Compute(o)
}

func TestTrim_FitsAnyNumberOfFailures(t *testing.T) {
	cases := map[string]struct {
		members, failing int
		trimmed          bool
		entries          int
		count            string
		// first and last are the numbers of conditions and objects of the first and last member.
		first, last [2]int
	}{
		"500 members, all ready":   {members: 500, entries: 500, count: "True on 500 cluster(s)", first: [2]int{6, 0}, last: [2]int{6, 0}},
		"10 members, all failing":  {members: 10, failing: 10, entries: 10, count: "False on 10 cluster(s)", first: [2]int{5, 100}, last: [2]int{5, 100}},
		"501 members, all ready":   {members: 501, trimmed: true, entries: 501, count: "True on 501 cluster(s)", first: [2]int{6, 0}, last: [2]int{6, 0}},
		"100 members, all failing": {members: 100, failing: 100, trimmed: true, entries: 100, count: "False on 100 cluster(s)", first: [2]int{5, 0}, last: [2]int{5, 0}},
		"1000 members, ten failing": {members: 1000, failing: 10, trimmed: true, entries: 1000, count: "False on 10 cluster(s)",
			first: [2]int{5, 0}, last: [2]int{0, 0}},
		"1000 members, all failing": {members: 1000, failing: 1000, trimmed: true, entries: 1000, count: "False on 1000 cluster(s)",
			first: [2]int{1, 0}, last: [2]int{1, 0}},
		"more members than a policy snapshot can name": {members: 1200, failing: 1200, trimmed: true, entries: 1200, count: "False on 1200 cluster(s)",
			first: [2]int{1, 0}, last: [2]int{1, 0}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p, status := crowd(t, c.members, c.failing)
			trim(p, status)
			if size := bytesOf(status); size > fullBytes {
				t.Errorf("the status has %d bytes", size)
			}
			if got := len(status.PlacementStatuses); got != c.entries {
				t.Fatalf("%d members are named, want %d", got, c.entries)
			}
			reported := meta.FindStatusCondition(status.Conditions, placementv1beta1.ConditionStatusTrimmed)
			if (reported != nil) != c.trimmed {
				t.Errorf("StatusTrimmed is %+v", reported)
			}
			if want := fmt.Sprintf("The placement is ready on %d of %d members", c.members-c.failing, c.members); reported != nil && !strings.HasPrefix(reported.Message, want) {
				t.Errorf("StatusTrimmed says %q, want %q", reported.Message, want)
			}
			applied := meta.FindStatusCondition(status.Conditions, "ClusterResourcePlacementApplied")
			if got := string(applied.Status) + applied.Message[strings.Index(applied.Message, " on "):]; !strings.HasPrefix(got, c.count) {
				t.Errorf("Applied is %q, want %q", got, c.count)
			}
			shape := func(m placementv1beta1.PerClusterPlacementStatus) [2]int {
				return [2]int{len(m.Conditions), len(m.FailedPlacements)}
			}
			if got := shape(status.PlacementStatuses[0]); got != c.first {
				t.Errorf("the first member has %v conditions and objects, want %v", got, c.first)
			}
			if got := shape(status.PlacementStatuses[c.entries-1]); got != c.last {
				t.Errorf("the last member has %v conditions and objects, want %v", got, c.last)
			}
		})
	}
}

func TestTrim_RemovesConditionWhenStatusFits(t *testing.T) {
	p, status := crowd(t, 501, 0)
	trim(p, status)
	p.Status = *status
	p.Status.PlacementStatuses = p.Status.PlacementStatuses[:3]
	trim(p, &p.Status)
	if meta.FindStatusCondition(p.Status.Conditions, placementv1beta1.ConditionStatusTrimmed) != nil {
		t.Error("StatusTrimmed still exists")
	}
}

func TestStands_SkipsMeasuringUnchangedStatus(t *testing.T) {
	p, status := crowd(t, 100, 0)
	if isUnchanged(p.GetStatus(), status) {
		t.Error("new status is not measured")
	}
	if !isUnchanged(status.DeepCopy(), status) {
		t.Error("unchanged status is measured")
	}
	_, large := crowd(t, 501, 0)
	trim(p, large)
	if isUnchanged(large.DeepCopy(), large) {
		t.Error("trimmed status is not measured, and would stay trimmed")
	}
}
