// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

func TestTermsOf(t *testing.T) {
	cases := map[string]struct {
		annotations map[string]string
		want        Terms
		fault       string
	}{
		"none":             {nil, Terms{}, ""},
		"seconds":          {map[string]string{AfterAnnotation: "300"}, Terms{After: 5 * time.Minute}, ""},
		"taints":           {map[string]string{TaintsAnnotation: "maintenance, gone,,gone"}, Terms{Taints: []string{"maintenance", "gone"}}, ""},
		"not a number":     {map[string]string{AfterAnnotation: "5m", TaintsAnnotation: "gone"}, Terms{Taints: []string{"gone"}}, `"5m"`},
		"no time at all":   {map[string]string{AfterAnnotation: "0"}, Terms{}, "from 2"},
		"too long":         {map[string]string{AfterAnnotation: "9999999"}, Terms{}, "to 604800"},
		"too many taints":  {map[string]string{TaintsAnnotation: "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u"}, Terms{}, "21 taints"},
		"larger than ints": {map[string]string{AfterAnnotation: "99999999999999999999"}, Terms{}, "number of seconds"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := TermsOf(tc.annotations)
			if (err == nil) != (tc.fault == "") || err != nil && !strings.Contains(err.Error(), tc.fault) {
				t.Errorf("TermsOf() error = %v, want %q", err, tc.fault)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("TermsOf() (-want +got):\n%s", diff)
			}
		})
	}
}

// A MemberCluster shows a new heartbeat only every few minutes. Placements with a limit of one minute
// left healthy members.
func TestTerms_OldHeartbeatOfConnectedMember(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	member := &clusterv1beta1.MemberCluster{}
	member.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: metav1.NewTime(noon)}}
	member.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.ConditionJoined, Status: metav1.ConditionTrue}}
	terms := Terms{After: time.Minute, Taints: []string{"maintenance"}}

	for _, later := range []time.Duration{0, 3 * time.Minute, time.Hour} {
		if reason, again := terms.Met(member, time.Time{}, time.Time{}, noon.Add(later)); reason != "" || again != 0 {
			t.Errorf("Joined, with a heartbeat of %s ago: %q, again after %s; want to stay while the member is connected", later, reason, again)
		}
	}
	member.Status.Conditions[0].Status = metav1.ConditionUnknown
	if reason, again := terms.Met(member, time.Time{}, time.Time{}, noon.Add(59*time.Second)); reason != "" || again != time.Second {
		t.Errorf("silent for 59 s: %q, again after %s; want to stay for another second", reason, again)
	}
	if reason, _ := terms.Met(member, time.Time{}, time.Time{}, noon.Add(3*time.Minute)); !strings.Contains(reason, "silent for 1m0s") {
		t.Errorf("silent for three minutes: %q, want to leave", reason)
	}
	member.Status.Conditions[0].Status = metav1.ConditionTrue
	member.Spec.Taints = []clusterv1beta1.Taint{{Key: "maintenance"}}
	if reason, _ := terms.Met(member, time.Time{}, time.Time{}, noon); !strings.Contains(reason, "maintenance") {
		t.Errorf("connected, with the taint: %q, want to leave", reason)
	}
}

// One second decides.
func TestTerms_LeavesAfterTheTimeAndNotBefore(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	member := &clusterv1beta1.MemberCluster{}
	member.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: metav1.NewTime(noon)}}
	terms := Terms{After: 300 * time.Second, Taints: []string{"maintenance"}}

	if reason, again := terms.Met(member, time.Time{}, time.Time{}, noon.Add(299*time.Second)); reason != "" || again != time.Second {
		t.Errorf("after 299 s: %q, again after %s; want to stay for another second", reason, again)
	}
	if reason, _ := terms.Met(member, time.Time{}, time.Time{}, noon.Add(301*time.Second)); !strings.Contains(reason, "silent") {
		t.Errorf("after 301 s: %q, want to leave", reason)
	}
	member.Spec.Taints = []clusterv1beta1.Taint{{Key: "other"}}
	if reason, _ := terms.Met(member, time.Time{}, time.Time{}, noon); reason != "" {
		t.Errorf("other taint: %q, want to stay", reason)
	}
	member.Spec.Taints = []clusterv1beta1.Taint{{Key: "maintenance"}}
	if reason, _ := terms.Met(member, time.Time{}, time.Time{}, noon); !strings.Contains(reason, "maintenance") {
		t.Errorf("tainted: %q, want to leave", reason)
	}
	if reason, again := (Terms{}).Met(member, time.Time{}, time.Time{}, noon.Add(time.Hour)); reason != "" || again != 0 {
		t.Errorf("without terms: %q, again after %s", reason, again)
	}
	if reason, again := terms.Met(&clusterv1beta1.MemberCluster{}, time.Time{}, time.Time{}, noon); reason != "" || again != 0 {
		t.Errorf("member that never reported: %q, again after %s", reason, again)
	}
}

// The name of an eviction is stored, so that another value would be another object.
func TestEvictionName_StaysTheSame(t *testing.T) {
	if got, want := evictionName("p", "member-1", "7f0e2c5a"), "failover-p-member-1-acd178f3"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
