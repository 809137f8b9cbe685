// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
)

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		agreed                    string
		byMember, byCluster, want bool
	}{
		"nobody changed it":          {accepted, true, true, true},
		"nobody changed it, waiting": {waiting, false, false, false},
		"the taint was taken away":   {waiting, true, false, true},
		"the taint came":             {accepted, false, true, false},
		"it was accepted":            {waiting, false, true, true},
		"it was denied":              {accepted, true, false, false},
		"both say so":                {waiting, true, true, true},
		"nothing was agreed yet":     {"", true, false, true},
	} {
		if got := decide(tc.agreed, tc.byMember, tc.byCluster); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Whoever writes what in which order, and however late one sees the other: in the end both
// say the same, which is what was written last, and nothing is written any more.
func TestDecisionsConverge(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 1))
		member, cluster, agreed := random.IntN(2) == 0, random.IntN(2) == 0, ""
		settle := func() {
			letIn := decide(agreed, member, cluster)
			member, cluster, agreed = letIn, letIn, fmt.Sprint(letIn)
		}
		settle()
		for range random.IntN(10) {
			last := random.IntN(2) == 0
			if random.IntN(2) == 0 {
				member = last
			} else {
				cluster = last
			}
			settle()
			if member != last {
				t.Fatalf("seed %d: %v was written last, %v counts", seed, last, member)
			}
			// Of two writes at a time either may count.
			member, cluster = random.IntN(2) == 0, random.IntN(2) == 0
			settle()
		}
		settle()
		if member != cluster || agreed != fmt.Sprint(member) {
			t.Fatalf("seed %d: member %v, cluster %v, agreed %s", seed, member, cluster, agreed)
		}
	}
}

func aMember() *clusterv1beta1.MemberCluster {
	value := func(text string) clusterv1beta1.PropertyValue { return clusterv1beta1.PropertyValue{Value: text} }
	return &clusterv1beta1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", Labels: map[string]string{"env": "prod"}},
		Status: clusterv1beta1.MemberClusterStatus{
			Properties: map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{
				clusterv1beta1.PropertyKubernetesVersion: value("v1.36.3"), clusterv1beta1.PropertyEntrypoint: value("https://a:6443"),
				"region": value("eu"), "id.k8s.io": value("x"),
			},
			Conditions: []metav1.Condition{{Type: clusterv1beta1.ConditionJoined, Status: metav1.ConditionTrue}},
			AgentStatus: []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent, Conditions: []metav1.Condition{
				{Type: clusterv1beta1.ConditionHealthy, Status: metav1.ConditionTrue},
			}}},
		},
	}
}

func TestAViewFollowsAndIsThenAtRest(t *testing.T) {
	member, cluster := aMember(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"of": "people"}}}
	desired(cluster, member, true)
	if !Shows(cluster, member) || !cluster.Spec.HubAcceptsClient || cluster.Spec.ManagedClusterClientConfigs[0].URL != "https://a:6443" {
		t.Errorf("got %+v", cluster)
	}
	if diff := cmp.Diff(map[string]string{"env": "prod", "of": "people"}, cluster.Labels); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if !desiredStatus(&cluster.Status, member) || desiredStatus(&cluster.Status, member) {
		t.Error("the status is not written, or written twice")
	}
	want := []clusterv1.ManagedClusterClaim{{Name: "id.k8s.io", Value: "x"}, {Name: "region", Value: "eu"}}
	if diff := cmp.Diff(want, cluster.Status.ClusterClaims); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	again := cluster.DeepCopy()
	desired(again, member, true)
	if diff := cmp.Diff(cluster, again); diff != "" {
		t.Errorf("nothing changed, and this is written (-before +after)\n%s", diff)
	}
	member.Labels = map[string]string{"tier": "1"}
	desired(cluster, member, true)
	if diff := cmp.Diff(map[string]string{"tier": "1", "of": "people"}, cluster.Labels); diff != "" {
		t.Errorf("after the member's labels changed (-want +got)\n%s", diff)
	}
}

func TestClaimsAreBounded(t *testing.T) {
	member := aMember()
	for i := range 30 {
		member.Status.Properties[clusterv1beta1.PropertyName(fmt.Sprintf("c%02d", i))] = clusterv1beta1.PropertyValue{Value: "v"}
	}
	claims := claimsOf(member)
	if len(claims) != 1+maxCustomClaims || claims[0].Name != "id.k8s.io" || claims[20].Name != "c19" {
		t.Errorf("got %d claims %v", len(claims), claims)
	}
}

func TestAvailableOf(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*clusterv1beta1.MemberCluster)
		want   string
	}{
		"well": {func(*clusterv1beta1.MemberCluster) {}, "True/ManagedClusterAvailable"},
		"not well": {func(m *clusterv1beta1.MemberCluster) {
			m.Status.AgentStatus[0].Conditions[0].Status = metav1.ConditionFalse
		}, "False/ManagedClusterKubeAPIServerUnavailable"},
		"silent":           {func(m *clusterv1beta1.MemberCluster) { m.Status.Conditions[0].Status = metav1.ConditionUnknown }, "Unknown/ManagedClusterLeaseUpdateStopped"},
		"never reported":   {func(m *clusterv1beta1.MemberCluster) { m.Status.AgentStatus = nil }, ""},
		"has not said how": {func(m *clusterv1beta1.MemberCluster) { m.Status.AgentStatus[0].Conditions = nil }, ""},
	} {
		member, got := aMember(), ""
		tc.change(member)
		if condition := availableOf(member); condition != nil {
			got = string(condition.Status) + "/" + condition.Reason
		}
		if got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}
