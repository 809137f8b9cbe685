// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/inspect/explain"
	"fleetgate.io/fleetgate/pkg/inspect/tree"
)

// The benchmark fleet. Failing placements fail on all members.
const (
	benchMembers, benchPlacements, benchFailing = 1000, 100, 10
)

// BenchmarkOverview_ThousandMembers is what the commands cost this side of the
// hub, whose answers are ready: reading and deciding.
func BenchmarkOverview_ThousandMembers(b *testing.B) {
	h := benchHub(b)
	b.Run("command=members", func(b *testing.B) {
		for b.Loop() {
			o, err := h.Overview(b.Context())
			if err != nil || len(o.Members) != benchMembers || len(o.Failing["member-7"]) != benchFailing {
				b.Fatal(err, len(o.Members), o.Failing["member-7"])
			}
			for i := range o.Members {
				_ = o.State(&o.Members[i])
			}
		}
	})
	b.Run("command=why", func(b *testing.B) {
		for b.Loop() {
			f, err := h.WhyPlacement(b.Context(), "placement-0", "")
			if err != nil || len(explain.Placement(f)) == 0 {
				b.Fatal(err)
			}
		}
	})
	b.Run("command=tree", func(b *testing.B) {
		for b.Loop() {
			placement, err := h.Placement(b.Context(), "placement-0")
			if err != nil {
				b.Fatal(err)
			}
			bindings, err := h.BindingsOf(b.Context(), placement)
			if err != nil {
				b.Fatal(err)
			}
			root := tree.Of("placement-0", placement, bindings, nil)
			if _, err := h.WorksOfMembers(b.Context(), placement, root.First(20)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// benchHub answers from memory.
func benchHub(b *testing.B) *Hub {
	b.Helper()
	answers := map[string][]byte{}
	keep := func(path string, object any) {
		text, err := json.Marshal(object)
		if err != nil {
			b.Fatal(err)
		}
		answers[path] = text
	}
	members, gateways, bindings := &clusterv1beta1.MemberClusterList{}, &gatewayv1alpha1.ClusterGatewayList{}, &placementv1beta1.ClusterResourceBindingList{}
	placement := &placementv1beta1.ClusterResourcePlacement{Status: placementv1beta1.PlacementStatus{Conditions: conditions("ClusterResourcePlacement", "Scheduled", "Applied")}}
	for i := range benchMembers {
		name := fmt.Sprintf("member-%d", i)
		members.Items = append(members.Items, benchMember(name))
		gateways.Items = append(gateways.Items, gatewayv1alpha1.ClusterGateway{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: gatewayv1alpha1.ClusterGatewayStatus{Healthy: true}})
		failing := append(conditions("", "RolloutStarted", "Overridden", "WorkSynchronized"), metav1.Condition{Type: "Applied", Status: metav1.ConditionFalse, Message: strings.Repeat("refused ", 20)})
		placement.Status.PlacementStatuses = append(placement.Status.PlacementStatuses, placementv1beta1.PerClusterPlacementStatus{ClusterName: name, Conditions: failing})
		binding := placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "b-" + name}}
		binding.Spec.TargetCluster, binding.Status.Conditions = name, failing
		bindings.Items = append(bindings.Items, binding)
	}
	table := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Scheduled"}, {Name: "Available"}}}
	const placements = "/apis/placement.kubernetes-fleet.io/v1beta1/"
	for i := range benchPlacements {
		name, available := fmt.Sprintf("placement-%d", i), any("True")
		if i < benchFailing {
			available = nil
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: []any{"True", available}, Object: runtime.RawExtension{Raw: []byte(`{"metadata":{"name":"` + name + `"}}`)}})
		placement.Name = name
		keep(placements+"clusterresourceplacements/"+name, placement)
	}
	keep("/apis/cluster.kubernetes-fleet.io/v1beta1/memberclusters", members)
	keep("/apis/cluster.core.oam.dev/v1alpha1/clustergateways", gateways)
	keep(placements+"clusterresourcebindings", bindings)
	keep(placements+"clusterresourceplacements", table)
	keep(placements+"resourceplacements", &metav1.Table{})
	keep(placements+"clusterresourceplacementevictions", &placementv1beta1.ClusterResourcePlacementEvictionList{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := answers[r.URL.Path]
		if !ok {
			text = []byte(`{"items":[]}`) // Works.
		}
		if name, only := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name="); only && answers[r.URL.Path+"/"+name] != nil {
			text = fmt.Appendf(nil, `{"items":[%s]}`, answers[r.URL.Path+"/"+name])
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text)
	}))
	b.Cleanup(server.Close)
	scheme, err := Scheme()
	if err != nil {
		b.Fatal(err)
	}
	config := &rest.Config{Host: server.URL, QPS: -1}
	c, err := newClient(config, scheme, benchMapper(scheme))
	if err != nil {
		b.Fatal(err)
	}
	return &Hub{WithWatch: c, Config: config}
}

func conditions(prefix string, types ...string) []metav1.Condition {
	var all []metav1.Condition
	for _, kind := range types {
		all = append(all, metav1.Condition{Type: prefix + kind, Status: metav1.ConditionTrue, Reason: "Succeeded", Message: strings.Repeat("no problems ", 8)})
	}
	return all
}

func benchMember(name string) clusterv1beta1.MemberCluster {
	m := clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"region": "eu", "env": "production"}}}
	m.Status.Conditions = conditions("", clusterv1beta1.ConditionReadyToJoin, clusterv1beta1.ConditionJoined)
	m.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent, Conditions: conditions("", "Joined", "Healthy", "TunnelConnected")}}
	m.Status.Properties = map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{}
	for i := range 10 {
		m.Status.Properties[clusterv1beta1.PropertyName(fmt.Sprintf("example.com/property-%d", i))] = clusterv1beta1.PropertyValue{Value: strings.Repeat("v", 100)}
	}
	return m
}

// benchMapper knows the kinds that are asked for.
func benchMapper(scheme *runtime.Scheme) meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for kind := range scheme.AllKnownTypes() {
		scope := meta.RESTScopeRoot
		if kind.Kind == "Work" {
			scope = meta.RESTScopeNamespace
		}
		m.Add(kind, scope)
	}
	m.AddSpecific(gatewayv1alpha1.GroupVersion.WithKind("ClusterGateway"), gatewayv1alpha1.GroupVersion.WithResource("clustergateways"), gatewayv1alpha1.GroupVersion.WithResource("clustergateway"), meta.RESTScopeRoot)
	return m
}
