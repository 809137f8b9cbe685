// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
)

func memberAt(name string, version int, team string) *clusterv1beta1.MemberCluster {
	return &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{
		Name: name, ResourceVersion: fmt.Sprint(version), Labels: map[string]string{"team": team},
	}}
}

func watchFrom(t *testing.T, m *Inventory, o watchOptions) *memberWatch {
	t.Helper()
	if o.matches == nil {
		o.matches = func(*clusterv1beta1.MemberCluster) bool { return true }
	}
	o.view = func(s state) runtime.Object { return view(s) }
	o.bookmark = bookmark
	w, err := m.watch(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

// told returns the events that a watch has received so far.
func told(w *memberWatch) []string {
	var all []string
	for {
		select {
		case event, ok := <-w.ResultChan():
			if !ok {
				return append(all, "end")
			}
			gateway := event.Object.(*gatewayv1alpha1.ClusterGateway)
			all = append(all, fmt.Sprintf("%s %s@%s", event.Type, gateway.Name, gateway.ResourceVersion))
		default:
			return all
		}
	}
}

func TestInventory_WatchReportsChangesAfterList(t *testing.T) {
	m := NewInventory()
	m.set(memberAt("a", 5, "x"), true)
	m.set(memberAt("b", 7, "x"), true)
	_, version := m.List()
	if version != "7" {
		t.Fatalf("got version %s, want 7", version)
	}
	m.set(memberAt("c", 8, "x"), false)
	w := watchFrom(t, m, watchOptions{from: version})
	m.set(memberAt("a", 9, "y"), false)
	m.set(memberAt("a", 9, "y"), false)
	m.remove(memberAt("b", 10, "x"))
	want := []string{"ADDED c@8", "MODIFIED a@9", "DELETED b@10"}
	if diff := cmp.Diff(want, told(w)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, version := m.List(); version != "10" {
		t.Errorf("got version %s after a deletion, want its own, 10", version)
	}
}

func TestInventory_WatchWithoutVersionBeginsWithPresentMembers(t *testing.T) {
	m := NewInventory()
	m.set(memberAt("b", 7, "x"), true)
	m.set(memberAt("a", 5, "x"), true)
	for name, tc := range map[string]struct {
		options watchOptions
		want    []string
	}{
		"None":         {want: []string{"ADDED a@5", "ADDED b@7"}},
		"Zero":         {options: watchOptions{from: "0"}, want: []string{"ADDED a@5", "ADDED b@7"}},
		"Old":          {options: watchOptions{initial: true}, want: []string{"ADDED a@5", "ADDED b@7"}},
		"AsListStream": {options: watchOptions{from: "7", initial: true, bookmarks: true}, want: []string{"ADDED a@5", "ADDED b@7", "BOOKMARK @7"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, told(watchFrom(t, m, tc.options))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestInventory_WatchWithSelectorReportsMatchChanges(t *testing.T) {
	m := NewInventory()
	w := watchFrom(t, m, watchOptions{matches: func(m *clusterv1beta1.MemberCluster) bool { return m.Labels["team"] == "x" }})
	m.set(memberAt("a", 1, "y"), false)
	m.set(memberAt("a", 2, "x"), false)
	m.set(memberAt("a", 3, "y"), false)
	m.set(memberAt("a", 4, "y"), false)
	if diff := cmp.Diff([]string{"ADDED a@2", "DELETED a@3"}, told(w)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestInventory_WatchFromOldVersionIsExpired(t *testing.T) {
	m := NewInventory()
	m.set(memberAt("a", 100, "x"), true)
	o := watchOptions{from: "99", matches: func(*clusterv1beta1.MemberCluster) bool { return true }}
	if _, err := m.watch(o); !apierrors.IsResourceExpired(err) {
		t.Errorf("got %v, want 410", err)
	}
	for i := range historyLength + 1 {
		m.set(memberAt("a", 101+i, "x"), false)
	}
	o.from = "100"
	if _, err := m.watch(o); !apierrors.IsResourceExpired(err) {
		t.Errorf("got %v, want 410", err)
	}
	o.from = "nonsense"
	if _, err := m.watch(o); !apierrors.IsBadRequest(err) {
		t.Errorf("got %v, want 400", err)
	}
}

func TestInventory_SlowWatcherEndsWithoutBlockingOthers(t *testing.T) {
	m := NewInventory()
	slow := watchFrom(t, m, watchOptions{})
	for i := range watchBacklog + 10 {
		m.set(memberAt("a", 1+i, "x"), false)
	}
	events := told(slow)
	if events[len(events)-1] != "end" {
		t.Error("the watch was not closed although events were lost")
	}
	slow.Stop()
}

func TestInventory_WatchReportsCredentialChanges(t *testing.T) {
	m := NewInventory()
	m.SetCredential("b", true, "4", true)
	m.set(memberAt("a", 5, "x"), true)
	m.set(memberAt("b", 1, "x"), true)
	_, version := m.List()
	if version != "5" {
		t.Fatalf("got version %s, want 5", version)
	}
	w := watchFrom(t, m, watchOptions{from: version})
	m.SetCredential("a", true, "8", false)
	m.SetCredential("a", true, "8", false)
	m.SetCredential("a", true, "6", false)
	m.SetCredential("unknown", true, "9", false)
	m.SetCredential("a", false, "10", false)
	m.set(memberAt("a", 7, "x"), false)
	m.remove(memberAt("b", 11, "x"))
	want := []string{"MODIFIED a@8", "MODIFIED a@10", "MODIFIED a@10", "DELETED b@11"}
	if diff := cmp.Diff(want, told(w)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// A watch that starts in between gets every later event, even a late one.
	for from, want := range map[string][]string{
		"8":  {"MODIFIED a@10", "MODIFIED a@10", "DELETED b@11"},
		"10": {"MODIFIED a@10", "DELETED b@11"},
		"11": nil,
	} {
		if diff := cmp.Diff(want, told(watchFrom(t, m, watchOptions{from: from}))); diff != "" {
			t.Errorf("from %s (-want +got):\n%s", from, diff)
		}
	}
	if _, version := m.List(); version != "11" {
		t.Errorf("got version %s, want 11", version)
	}
}

func TestInventory_DropsStoppedWatch(t *testing.T) {
	m := NewInventory()
	w := watchFrom(t, m, watchOptions{})
	w.Stop()
	m.set(memberAt("a", 1, "x"), false)
	if _, open := <-w.ResultChan(); open || len(m.watchers) != 0 {
		t.Error("the watch was not closed")
	}
}

var _ watch.Interface = (*memberWatch)(nil)
