// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package managedcluster

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
)

func TestRefuseName_RefusesReservedNames(t *testing.T) {
	for name, refused := range map[string]bool{
		"edge": false, "edge-1": false, "kubernetes": false, "fleet": false, strings.Repeat("a", 63): false, "0": false,
		"default": true, "kube-system": true, "kube-public": true, "fleet-system": true, "fleet-member-edge": true,
		"open-cluster-management": true, "open-cluster-management-hub": true, "open-cluster-managements": true,
		"registration": true, "work": true, "works": false, "registrations": false,
		strings.Repeat("a", 64): true, "edge.example.com": true, "Edge": true, "": true,
	} {
		if no := refuseName(name); (no != nil) != refused {
			t.Errorf("%q: got %v, want a refusal: %v", name, no, refused)
		}
	}
}

func TestRefuseNamespace_RefusesForeignNamespaces(t *testing.T) {
	now := metav1.Now()
	for name, tc := range map[string]struct {
		labels  map[string]string
		going   bool
		refused string
	}{
		"made for it":       {labels: map[string]string{clusterv1.ClusterNameLabel: "edge"}},
		"somebody else's":   {refused: "label it open-cluster-management.io/cluster-name=edge"},
		"another cluster's": {labels: map[string]string{clusterv1.ClusterNameLabel: "edge-1"}, refused: "existed before"},
		"on its way out":    {labels: map[string]string{clusterv1.ClusterNameLabel: "edge"}, going: true, refused: "being deleted"},
	} {
		namespace := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "edge", Labels: tc.labels}}
		if tc.going {
			namespace.DeletionTimestamp = &now
		}
		no := refuseNamespace(namespace)
		if (no != nil) != (tc.refused != "") || no != nil && (!strings.Contains(no.Message, tc.refused) || no.Reason != clusterv1.ReasonNamespaceTaken) {
			t.Errorf("%s: got %v, want a refusal that says %q", name, no, tc.refused)
		}
	}
}

// Agents check these permissions before they report that they are connected.
func TestRoles_MatchUpstream(t *testing.T) {
	said := func(rules []rbacv1.PolicyRule) []string {
		var all []string
		for _, rule := range rules {
			all = append(all, strings.Join([]string{
				strings.Join(rule.APIGroups, ","), strings.Join(rule.Resources, ","), strings.Join(rule.ResourceNames, ","), strings.Join(rule.Verbs, ","),
			}, " | "))
		}
		return all
	}
	got := map[string][]string{
		"accepted": said(clusterRole("edge", true).Rules), "denied": said(clusterRole("edge", false).Rules),
	}
	for _, role := range Roles() {
		got[role.Name] = said(role.Rules)
	}
	want := map[string][]string{
		"accepted": {
			"certificates.k8s.io | certificatesigningrequests |  | create,get,list,watch",
			"register.open-cluster-management.io | managedclusters/clientcertificates |  | renew",
			"cluster.open-cluster-management.io | managedclusters | edge | get,list,update,watch",
			"cluster.open-cluster-management.io | managedclusters/status | edge | patch,update",
		},
		"denied": {"cluster.open-cluster-management.io | managedclusters | edge | get,list,watch"},
		"open-cluster-management:managedcluster:registration": {
			"coordination.k8s.io | leases |  | get,list,watch,update",
			"addon.open-cluster-management.io | managedclusteraddons |  | get,list,watch",
			"addon.open-cluster-management.io | managedclusteraddons/status |  | patch,update",
			"events.k8s.io | events |  | create",
		},
		"fleetgate:member-scores": {
			"cluster.open-cluster-management.io | addonplacementscores | resource-usage-score | create,delete,get,patch",
			"cluster.open-cluster-management.io | addonplacementscores/status | resource-usage-score | patch",
		},
		"open-cluster-management:managedcluster:work": {
			",events.k8s.io | events |  | create,patch,update",
			"work.open-cluster-management.io | manifestworks |  | get,list,watch,update,patch",
			"work.open-cluster-management.io | manifestworks/status |  | patch,update",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestBindings_NameOnlyTheClustersAgents(t *testing.T) {
	want := []rbacv1.Subject{
		{APIGroup: "rbac.authorization.k8s.io", Kind: "Group", Name: "system:open-cluster-management:edge"},
		{APIGroup: "rbac.authorization.k8s.io", Kind: "Group", Name: "open-cluster-management:edge"},
	}
	for _, binding := range []*rbacv1.RoleBinding{registrationBinding("edge", Klusterlets("edge")), workBinding("edge", Klusterlets("edge"))} {
		if diff := cmp.Diff(want, binding.Subjects); diff != "" || binding.Namespace != "edge" || !strings.HasPrefix(binding.Name, "open-cluster-management:managedcluster:edge:") {
			t.Errorf("%s/%s (-want +got)\n%s", binding.Namespace, binding.Name, diff)
		}
	}
	if diff := cmp.Diff(want, clusterRoleBinding("edge", Klusterlets("edge")).Subjects); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestBring(t *testing.T) {
	for name, tc := range map[string]struct {
		live, wanted client.Object
		changed      bool
	}{
		"nothing to do":      {clusterRole("edge", true), clusterRole("edge", true), false},
		"denied":             {clusterRole("edge", true), clusterRole("edge", false), true},
		"a subject too many": {&rbacv1.RoleBinding{ObjectMeta: workBinding("edge", Klusterlets("edge")).ObjectMeta, Subjects: append(Klusterlets("edge"), rbacv1.Subject{Name: "x"})}, workBinding("edge", Klusterlets("edge")), true},
		"no label":           {&rbacv1.ClusterRoleBinding{Subjects: Klusterlets("edge")}, clusterRoleBinding("edge", Klusterlets("edge")), true},
		"no finalizer":       {&rbacv1.RoleBinding{ObjectMeta: registrationBinding("edge", Klusterlets("edge")).ObjectMeta, Subjects: Klusterlets("edge")}, workBinding("edge", Klusterlets("edge")), true},
	} {
		live := tc.live.DeepCopyObject().(client.Object)
		if got := update(live, tc.wanted); got != tc.changed || update(live, tc.wanted) {
			t.Errorf("%s: changed %v, want %v, and nothing the second time", name, got, tc.changed)
		}
	}
	others := clusterRole("edge", true)
	others.Labels["team"] = "a"
	if update(others, clusterRole("edge", true)) || others.Labels["team"] != "a" {
		t.Error("a label of others was taken away")
	}
}

func TestFirstToGo_FollowsPriority(t *testing.T) {
	with := func(priorities ...string) []metav1.PartialObjectMetadata {
		var objects []metav1.PartialObjectMetadata
		for _, priority := range priorities {
			object := metav1.PartialObjectMetadata{}
			if priority != "" {
				object.Annotations = map[string]string{clusterv1.CleanupPriorityAnnotation: priority}
			}
			objects = append(objects, object)
		}
		return objects
	}
	for name, tc := range map[string]struct {
		objects []metav1.PartialObjectMetadata
		want    []int
	}{
		"those without":         {with("10", "", "20", ""), []int{1, 3}},
		"the smallest":          {with("100", "20", "20"), []int{1, 2}},
		"what is no priority":   {with("1", "x", "101", "-1"), []int{1, 2, 3}},
		"the largest, if alone": {with("100"), []int{0}},
	} {
		if diff := cmp.Diff(tc.want, slices.Sorted(maps.Keys(firstToGo(tc.objects)))); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

func TestMayForce_RequiresAnnotationAndTime(t *testing.T) {
	deleted := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		annotation string
		after      time.Duration
		want       bool
	}{
		"somebody said so, and it had its time": {"true", 15 * time.Minute, true},
		"it has its time yet":                   {"true", 15*time.Minute - 1, false},
		"nobody said so":                        {"", time.Hour, false},
		"somebody said something else":          {"yes", time.Hour, false},
	} {
		r := &Reconciler{Clock: clocktesting.NewFakePassiveClock(deleted.Add(tc.after))}
		cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: new(metav1.NewTime(deleted)), Annotations: map[string]string{ForceDeleteAnnotation: tc.annotation}}}
		if got := r.mayForce(cluster); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
