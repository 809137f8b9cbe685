// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/base64"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/agent/enroll"
	"fleetgate.io/fleetgate/pkg/cluster/hub/clusterapi"
	"fleetgate.io/fleetgate/pkg/cluster/hub/registration"
	"fleetgate.io/fleetgate/pkg/inspect/overview"
)

// manifestWork is a ManifestWork of a member with a deletion policy.
func manifestWork(name, policy string) client.Object {
	work := &unstructured.Unstructured{}
	work.SetGroupVersionKind(schema.GroupVersionKind{Group: "work.open-cluster-management.io", Version: "v1", Kind: "ManifestWork"})
	work.SetNamespace("edge")
	work.SetName(name)
	if policy != "" {
		work.Object["spec"] = map[string]any{"deleteOption": map[string]any{"propagationPolicy": policy}}
	}
	return work
}

func TestMove_RefusesBeforeChangingAnything(t *testing.T) {
	key := []byte("the agent's key")
	member := func(key []byte) *clusterv1beta1.MemberCluster {
		return &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "edge", Annotations: map[string]string{
			registration.AnnotationAgentKey: "uid-of-its-hub/" + base64.StdEncoding.EncodeToString(key),
		}}}
	}
	cluster := func(clientID string) *registrationv1alpha1.Cluster {
		return &registrationv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "edge"}, Spec: registrationv1alpha1.ClusterSpec{ClientID: clientID}}
	}
	for name, test := range map[string]struct {
		change func(*moving)
		on     []client.Object
		want   string // empty if it can be moved
	}{
		"a joined member":     {func(*moving) {}, nil, ""},
		"it was expected":     {func(m *moving) { m.expected = cluster("the-cluster") }, nil, ""},
		"it has left already": {func(m *moving) { m.was, m.cluster, m.expected = nil, nil, cluster("the-cluster") }, nil, ""},
		"it is there already": {func(m *moving) { m.was, m.cluster, m.expected, m.there = nil, nil, cluster("the-cluster"), member(key) }, nil, ""},
		"no such member":      {func(m *moving) { m.was, m.cluster = nil, nil }, nil, `no member "edge"`},
		"another cluster":     {func(m *moving) { m.agent.Member = "other" }, nil, "is not member"},
		"one of that name":    {func(m *moving) { m.agent.PublicKey = []byte("another") }, nil, "is not member"},
		"its name is taken":   {func(m *moving) { m.there = member([]byte("another")) }, nil, "the other hub already has a different member"},
		"its name is expected of another": {func(m *moving) { m.expected = cluster("another") }, nil,
			`Cluster "edge" in namespace "clusters" with a different client ID: delete it, or set its client ID to "the-cluster"`},
		"its identity is given":       {func(m *moving) { m.cluster = nil }, nil, "change the flags of the agent"},
		"imported by Cluster API":     {func(m *moving) { m.cluster.Annotations = map[string]string{clusterapi.AnnotationOrigin: "made"} }, nil, `from Cluster API Cluster "made"`},
		"with ManifestWorks":          {func(*moving) {}, []client.Object{manifestWork("kept", "Orphan"), manifestWork("a", ""), manifestWork("b", "Foreground")}, `2 ManifestWorks of member "edge", first "a"`},
		"with ManifestWorks that let": {func(*moving) {}, []client.Object{manifestWork("kept", "Orphan")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			kinds, err := overview.Scheme()
			if err != nil {
				t.Fatal(err)
			}
			from := &overview.Hub{WithWatch: fake.NewClientBuilder().WithScheme(kinds).WithObjects(test.on...).Build(), Config: &rest.Config{Host: "https://hub"}}
			m := &moving{
				moveOptions: &moveOptions{token: tokenOptions{Registration: "clusters"}}, name: "edge", from: from, memberConfig: &rest.Config{Host: "https://edge"},
				agent: &enroll.StoredIdentity{Member: "edge", PublicKey: key}, was: member(key), cluster: cluster("the-cluster"),
			}
			test.change(m)
			err = m.refuse(t.Context())
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestMove_TransfersTaintsOnce(t *testing.T) {
	taint := func(key string) clusterv1beta1.Taint {
		return clusterv1beta1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule}
	}
	was := &clusterv1beta1.MemberCluster{Spec: clusterv1beta1.MemberClusterSpec{Taints: []clusterv1beta1.Taint{taint("rack"), taint(clusterv1beta1.TaintUnreachable)}}}
	waits := &clusterv1beta1.MemberCluster{Spec: clusterv1beta1.MemberClusterSpec{Taints: []clusterv1beta1.Taint{taint(clusterv1beta1.TaintUnapproved)}}}
	for name, test := range map[string]struct {
		was  *clusterv1beta1.MemberCluster
		want string
	}{
		"with a taint of people's":           {was, "rack:NoSchedule"},
		"that nobody has approved":           {waits, clusterv1beta1.TaintUnapproved + ":NoSchedule"},
		"that left when it was moved before": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			there := waits.DeepCopy()
			m := &moving{fromUID: "former", was: test.was}
			m.takeOver(there)
			if got := taintsText(there.Spec.Taints); got != test.want {
				t.Errorf("has the taints %q, want %q", got, test.want)
			}
			if got := there.Annotations[clusterv1beta1.AnnotationFormerHub]; got != "former" {
				t.Errorf("its former hub is %q", got)
			}
			there.Spec.Taints = nil // A user removes them on the other hub.
			if m.takeOver(there); len(there.Spec.Taints) > 0 {
				t.Errorf("the next look brings %q back", taintsText(there.Spec.Taints))
			}
		})
	}
}
