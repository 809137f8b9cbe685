// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"strings"
	"testing"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

func namesOf(members []*clusterv1beta1.MemberCluster) string {
	var names []string
	for _, member := range members {
		names = append(names, member.Name+"@"+member.ResourceVersion)
	}
	return strings.Join(names, " ")
}

// Every request reads the inventory. A watcher that is notified must not delay it.
func TestInventory_IsReadWhileWatchersAreNotified(t *testing.T) {
	m := NewInventory()
	for i, name := range []string{"b", "c", "a"} {
		m.set(memberAt(name, i+1, ""), false)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if member, ok := m.Get("b"); !ok || member.Name != "b" {
		t.Errorf("got %v, %v", member, ok)
	}
	if all, version := m.List(); namesOf(all) != "a@3 b@1 c@2" || version != "3" {
		t.Errorf("got %s at %s", namesOf(all), version)
	}
}

func TestInventory_ListIsNotChangedAfterwards(t *testing.T) {
	m := NewInventory()
	for i, name := range []string{"a", "b", "c"} {
		m.set(memberAt(name, i+1, ""), false)
	}
	before, _ := m.List()
	m.set(memberAt("b", 4, ""), false)
	m.remove(memberAt("a", 5, ""))
	m.set(memberAt("aa", 6, ""), false)
	m.remove(memberAt("unknown", 7, ""))
	m.SetCredential("c", true, "8", false)
	if namesOf(before) != "a@1 b@2 c@3" {
		t.Errorf("the earlier list became %s", namesOf(before))
	}
	if now, version := m.List(); namesOf(now) != "aa@6 b@4 c@3" || version != "8" {
		t.Errorf("got %s at %s", namesOf(now), version)
	}
	if _, ok := m.Get("a"); ok {
		t.Error("a deleted member is there")
	}
}
