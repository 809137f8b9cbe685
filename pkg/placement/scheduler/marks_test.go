// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/placement/framework"
)

func TestMemberCache_IncludesMarksOfManagedClusters(t *testing.T) {
	member := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", Labels: map[string]string{"env": "prod"}}}
	member.Spec.Taints = []clusterv1beta1.Taint{{Key: "mine", Effect: corev1.TaintEffectNoSchedule}}
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"env": "test", "tier": "1"}}}
	cluster.Spec.Taints = []clusterv1.Taint{
		{Key: "gpu", Value: "yes", Effect: clusterv1.TaintEffectNoSelect}, {Key: "new", Effect: clusterv1.TaintEffectNoSelectIfNew}, {Key: "rather-not", Effect: clusterv1.TaintEffectPreferNoSelect},
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1beta1.AddToScheme, clusterv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(member, cluster).Build()
	of := func(uid types.UID) Marks {
		return func(c *clusterv1.ManagedCluster) (types.UID, map[string]string, []clusterv1.Taint) {
			return uid, c.Labels, c.Spec.Taints
		}
	}
	alone := map[string]string{"env": "prod"}
	own := framework.Taint{Key: "mine", Effect: "NoSchedule"}
	for name, tc := range map[string]struct {
		marks  Marks
		labels map[string]string
		taints []framework.Taint
	}{
		"no Marks":                         {nil, alone, []framework.Taint{own}},
		"ManagedCluster of another member": {of("other"), alone, []framework.Taint{own}},
		"ManagedCluster of the member": {of("u"), map[string]string{"env": "prod", "tier": "1"},
			[]framework.Taint{own, {Key: "gpu", Value: "yes", Effect: "NoSchedule"}, {Key: "new", Effect: "NoSchedule"}}},
	} {
		members := memberCache{}
		for range 2 { // The second time it is cached.
			clusters, err := members.clusters(t.Context(), hub, tc.marks)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.labels, clusters[0].Labels); diff != "" {
				t.Errorf("%s: labels (-want +got)\n%s", name, diff)
			}
			if diff := cmp.Diff(tc.taints, clusters[0].Taints); diff != "" {
				t.Errorf("%s: taints (-want +got)\n%s", name, diff)
			}
		}
	}
}

// The name of a binding is stored, so that another value would be another object.
func TestBindingName_StaysTheSame(t *testing.T) {
	if got, want := bindingName("p", "7f0e2c5a", "member-1"), "p-member-1-1a853c9d"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
