// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	multiclusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/multicluster/v1alpha1"
)

func TestDesiredStatus_KeepsWhatOthersWrote(t *testing.T) {
	provider, err := accessProvider("edge", "https://hub:6443/", []byte("ca"))
	if err != nil {
		t.Fatal(err)
	}
	other := multiclusterv1alpha1.AccessProviderStatus{Name: "other", Cluster: clientcmdv1.Cluster{Server: "https://elsewhere"}}
	stale := provider
	stale.Cluster.Server = "https://old"
	shown := multiclusterv1alpha1.ClusterProfileStatus{
		Conditions:          []metav1.Condition{{Type: "Theirs", Status: metav1.ConditionTrue, Reason: "X"}},
		AccessProviders:     []multiclusterv1alpha1.AccessProviderStatus{other, stale},
		CredentialProviders: []multiclusterv1alpha1.AccessProviderStatus{other},
		Properties:          []multiclusterv1alpha1.Property{{Name: "gone", Value: "1"}, {Name: "theirs", Value: "1"}},
	}
	mc := &clusterv1beta1.MemberCluster{}
	mc.Status.Properties = map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{clusterv1beta1.PropertyKubernetesVersion: {Value: "v1.36.3"}}

	status := desiredStatus(shown, mc, provider, []string{"gone"}, 1)
	if diff := cmp.Diff([]multiclusterv1alpha1.AccessProviderStatus{other, provider}, status.AccessProviders); diff != "" {
		t.Errorf("access providers (-want +got):\n%s", diff)
	}
	if want := "https://hub:6443/apis/cluster.core.oam.dev/v1alpha1/clustergateways/edge/proxy"; provider.Cluster.Server != want {
		t.Errorf("server %s, want %s", provider.Cluster.Server, want)
	}
	if want := `{"clusterName":"edge"}`; string(provider.Cluster.Extensions[0].Extension.Raw) != want {
		t.Errorf("extension %s, want %s", provider.Cluster.Extensions[0].Extension.Raw, want)
	}
	if len(status.Conditions) != 3 || status.Conditions[0].Type != "Theirs" || len(status.CredentialProviders) != 1 {
		t.Errorf("what others wrote is gone: %+v", status)
	}
	want := []multiclusterv1alpha1.Property{{Name: "k8s.io/k8s-version", Value: "v1.36.3"}, {Name: "theirs", Value: "1"}}
	if diff := cmp.Diff(want, status.Properties); diff != "" {
		t.Errorf("properties (-want +got):\n%s", diff)
	}
	if status.Version.Kubernetes != "v1.36.3" {
		t.Errorf("version %q", status.Version.Kubernetes)
	}
}

func TestHealthOf_FollowsMember(t *testing.T) {
	agent := func(conditions ...metav1.Condition) []clusterv1beta1.AgentStatus {
		return []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent, Conditions: conditions}}
	}
	is := func(kind string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: "X"}
	}
	joined, healthy := clusterv1beta1.ConditionJoined, clusterv1beta1.ConditionHealthy
	tests := map[string]struct {
		agents []clusterv1beta1.AgentStatus
		joined metav1.ConditionStatus
		want   string
	}{
		"never heard of": {nil, metav1.ConditionUnknown, multiclusterv1alpha1.ReasonAgentReportedNoStatus},
		"no word of health": {agent(is(joined, metav1.ConditionTrue)), metav1.ConditionTrue,
			multiclusterv1alpha1.ReasonAgentReportedNoHealthInfo},
		"silent": {agent(is(joined, metav1.ConditionTrue), is(healthy, metav1.ConditionTrue)), metav1.ConditionUnknown,
			multiclusterv1alpha1.ReasonAgentHeartbeatLost},
		"not ready": {agent(is(joined, metav1.ConditionTrue), is(healthy, metav1.ConditionFalse)), metav1.ConditionTrue,
			multiclusterv1alpha1.ReasonAPIServerUnhealthy},
		"without a tunnel": {agent(is(joined, metav1.ConditionTrue), is(healthy, metav1.ConditionTrue), is(clusterv1beta1.ConditionTunnelConnected, metav1.ConditionFalse)), metav1.ConditionTrue,
			multiclusterv1alpha1.ReasonTunnelDown},
		"well": {agent(is(joined, metav1.ConditionTrue), is(healthy, metav1.ConditionTrue)), metav1.ConditionTrue,
			multiclusterv1alpha1.ReasonAPIServerHealthy},
		"well, with a tunnel": {agent(is(joined, metav1.ConditionTrue), is(healthy, metav1.ConditionTrue), is(clusterv1beta1.ConditionTunnelConnected, metav1.ConditionTrue)), metav1.ConditionTrue,
			multiclusterv1alpha1.ReasonAPIServerHealthy},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			mc := &clusterv1beta1.MemberCluster{}
			mc.Status.AgentStatus = tc.agents
			mc.Status.Conditions = []metav1.Condition{is(joined, tc.joined)}
			if got := healthOf(mc).Reason; got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestPropertiesOf_LeavesOutFrequentlyChangingOnes(t *testing.T) {
	early, late := metav1.NewTime(time.Unix(1000, 0)), metav1.NewTime(time.Unix(2000, 0))
	mc := &clusterv1beta1.MemberCluster{}
	mc.Status.Properties = map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{
		"region": {Value: "west", ObservationTime: late}, "zone": {Value: "b", ObservationTime: late}, "empty": {ObservationTime: late},
		"long":                           {Value: strings.Repeat("x", maxValue+1), ObservationTime: late},
		clusterv1beta1.PropertyNodeCount: {Value: "3", ObservationTime: late}, clusterv1beta1.PropertyEntrypoint: {Value: "https://10.0.0.1", ObservationTime: late},
	}
	present := []multiclusterv1alpha1.Property{{Name: "region", Value: "west", LastObservedTime: &early}, {Name: "zone", Value: "a", LastObservedTime: &early}}
	want := []multiclusterv1alpha1.Property{{Name: "region", Value: "west", LastObservedTime: &early}, {Name: "zone", Value: "b", LastObservedTime: &late}}
	if diff := cmp.Diff(want, desiredProperties(present, mc, []string{"region", "zone"})); diff != "" {
		t.Errorf("properties (-want +got):\n%s", diff)
	}
}

func TestPublishLabels_KeepsLabelsOfOthers(t *testing.T) {
	profile := &multiclusterv1alpha1.ClusterProfile{}
	profile.Labels = map[string]string{"headlamp.dev/ignore": "true"}
	mc := &clusterv1beta1.MemberCluster{}
	mc.Labels = map[string]string{"env": "dev", "region": "west"}
	for range 2 {
		if err := publishLabels(profile, mc); err != nil {
			t.Fatal(err)
		}
		want := maps.Clone(mc.Labels)
		want["headlamp.dev/ignore"] = "true"
		if diff := cmp.Diff(want, profile.Labels); diff != "" {
			t.Errorf("labels (-want +got):\n%s", diff)
		}
		delete(mc.Labels, "region")
	}
}
