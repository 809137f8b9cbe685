// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membermirror

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
)

func TestMarks_AreSetByPeople(t *testing.T) {
	member := aMember()
	member.Spec.Taints = []clusterv1beta1.Taint{{Key: "maintenance", Effect: corev1.TaintEffectNoSchedule}}
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"of": "people", clusterv1.ClusterSetLabel: "eu"}}}
	cluster.Spec.Taints = []clusterv1.Taint{
		{Key: "gpu", Effect: clusterv1.TaintEffectNoSelect}, {Key: clusterv1.TaintUnreachable, Effect: clusterv1.TaintEffectNoSelect},
	}
	if uid, labels, taints := Marks(cluster); uid != "" || labels != nil || taints != nil {
		t.Errorf("of a klusterlet's cluster: %q, %v, %v", uid, labels, taints)
	}
	desired(cluster, member, true)
	uid, labels, taints := Marks(cluster)
	if diff := cmp.Diff(map[string]string{"of": "people", clusterv1.ClusterSetLabel: "eu"}, labels); diff != "" || uid != member.UID {
		t.Errorf("%q, labels (-want +got)\n%s", uid, diff)
	}
	if diff := cmp.Diff([]clusterv1.Taint{{Key: "gpu", Effect: clusterv1.TaintEffectNoSelect}}, taints); diff != "" {
		t.Errorf("taints (-want +got)\n%s", diff)
	}
	if cluster.Labels["env"] != "prod" {
		t.Error("the ManagedCluster itself was changed")
	}
}
