// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package managednamespace

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/event"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
)

// Other programs select this exact label.
func TestLabel_ShortensTheHashToTheSizeOfAKey(t *testing.T) {
	hash := strings.Repeat("0123456789abcdef", 4)
	if got, want := Label(hash), "clusterset.open-cluster-management.io/"+hash[:63]; got != want || len(validation.IsQualifiedName(got)) > 0 {
		t.Errorf("got %s, want %s, which has to be the key of a label", got, want)
	}
	if got := Label("short"); got != "clusterset.open-cluster-management.io/short" {
		t.Errorf("got %s", got)
	}
}

func TestRefuseName_OfReservedNamespaces(t *testing.T) {
	for name, refused := range map[string]bool{
		"team-a": false, "kubernetes": false, "fleet": false, "defaults": false, "open-cluster": false,
		"default": true, "kube-system": true, "kube-node-lease": true, "fleet-system": true, "fleet-system-two": true, "fleet-member-a": true,
		"open-cluster-management-agent": true, "open-cluster-management-managed-serviceaccount": true, "agents": true, "accounts": true,
	} {
		if why := refuseName(name, []string{"agents", "accounts"}); (why != "") != refused {
			t.Errorf("%s: got %q, want a refusal: %v", name, why, refused)
		}
	}
}

func clusterWith(of ...clusterv1.ClusterSetManagedNamespaceStatus) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{Status: clusterv1.ManagedClusterStatus{ManagedNamespaces: of}}
}

func TestWantedOn_HasNoDuplicates(t *testing.T) {
	got := wantedOn(clusterWith(
		clusterv1.ClusterSetManagedNamespaceStatus{ClusterSet: "a", Name: "y"}, clusterv1.ClusterSetManagedNamespaceStatus{ClusterSet: "a", Name: "x"},
		clusterv1.ClusterSetManagedNamespaceStatus{ClusterSet: "b", Name: "x"}))
	if diff := cmp.Diff([]string{"x", "y"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestTell_SetsConditionsForEachSetAndKeepsUnknownOnes(t *testing.T) {
	said := metav1.Condition{Type: clusterv1.ConditionNamespaceAvailable, Status: metav1.ConditionTrue, Reason: "Before"}
	others := metav1.Condition{Type: "Others", Status: metav1.ConditionTrue, Reason: "Theirs"}
	cluster := clusterWith(
		clusterv1.ClusterSetManagedNamespaceStatus{ClusterSet: "a", Name: "x", Conditions: []metav1.Condition{others}},
		clusterv1.ClusterSetManagedNamespaceStatus{ClusterSet: "a", Name: "y", Conditions: []metav1.Condition{said}},
		clusterv1.ClusterSetManagedNamespaceStatus{ClusterSet: "b", Name: "x", Conditions: []metav1.Condition{said}},
		clusterv1.ClusterSetManagedNamespaceStatus{ClusterSet: "b", Name: "z"})
	setConditions(cluster, map[string]metav1.Condition{"x": applied(), "z": failed("no")})
	want := []clusterv1.ClusterSetManagedNamespaceStatus{
		{ClusterSet: "a", Name: "x", Conditions: []metav1.Condition{others, applied()}},
		{ClusterSet: "a", Name: "y", Conditions: []metav1.Condition{said}},
		{ClusterSet: "b", Name: "x", Conditions: []metav1.Condition{applied()}},
		{ClusterSet: "b", Name: "z", Conditions: []metav1.Condition{failed("no")}},
	}
	if diff := cmp.Diff(want, cluster.Status.ManagedNamespaces, cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestFailed_LimitsTheMessage(t *testing.T) {
	message := failed(strings.Repeat("é", maxMessage)).Message
	if len(message) > maxMessage || strings.ContainsRune(message, '�') || !strings.HasSuffix(message, "é...") {
		t.Errorf("%d bytes, ending with %q", len(message), message[len(message)-4:])
	}
}

// ManagedClusters change often; changes of other fields must not cause requests to the member.
func TestSomethingToDo(t *testing.T) {
	with := func(change func(*clusterv1.ManagedCluster)) *clusterv1.ManagedCluster {
		cluster := clusterWith(clusterv1.ClusterSetManagedNamespaceStatus{ClusterSet: "a", Name: "x"})
		change(cluster)
		return cluster
	}
	for name, tc := range map[string]struct {
		change func(*clusterv1.ManagedCluster)
		want   bool
	}{
		"nothing":           {func(*clusterv1.ManagedCluster) {}, false},
		"a label":           {func(c *clusterv1.ManagedCluster) { c.Labels = map[string]string{"a": "b"} }, false},
		"another condition": {func(c *clusterv1.ManagedCluster) { c.Status.Conditions = []metav1.Condition{{Type: "A"}} }, false},
		"acceptance": {func(c *clusterv1.ManagedCluster) {
			c.Status.Conditions = []metav1.Condition{{Type: clusterv1.ConditionHubAccepted, Status: metav1.ConditionTrue}}
		}, true},
		"deletion":            {func(c *clusterv1.ManagedCluster) { c.DeletionTimestamp = new(metav1.Now()) }, true},
		"a removed namespace": {func(c *clusterv1.ManagedCluster) { c.Status.ManagedNamespaces = nil }, true},
		"a condition of a namespace": {func(c *clusterv1.ManagedCluster) {
			c.Status.ManagedNamespaces[0].Conditions = []metav1.Condition{{Type: "A"}}
		}, true},
	} {
		before := with(func(*clusterv1.ManagedCluster) {})
		if got := requestChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: with(tc.change)}); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
