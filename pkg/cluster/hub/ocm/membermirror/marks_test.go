// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membermirror

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/test/support/build"
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

// Add-on fleetgate-agent made a member of a klusterlet's cluster.
func TestMarks_AreThoseOfAClusterWithAnAddOn(t *testing.T) {
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{
		Name: "a", Labels: map[string]string{"of": "people"}, Annotations: map[string]string{addonv1alpha1.AgentMemberAnnotation: "u"},
	}}
	if uid, labels, _ := Marks(cluster); uid != "u" || labels["of"] != "people" {
		t.Errorf("got %q, %v", uid, labels)
	}
	cluster.DeletionTimestamp = &metav1.Time{}
	if uid, labels, _ := Marks(cluster); uid != "" || labels != nil {
		t.Errorf("being deleted: %q, %v", uid, labels)
	}
}

func TestHasAgent_OnlyOfTheRecordedMember(t *testing.T) {
	member := aMember()
	hub := fake.NewClientBuilder().WithScheme(build.Scheme(clusterv1beta1.AddToScheme)).WithObjects(member).Build()
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        bool
	}{
		"a klusterlet only":    {nil, false},
		"mirror":               {map[string]string{MemberAnnotation: "u"}, true},
		"mirror of a former":   {map[string]string{MemberAnnotation: "former"}, false},
		"by the add-on":        {map[string]string{addonv1alpha1.AgentMemberAnnotation: "u"}, true},
		"another member of it": {map[string]string{addonv1alpha1.AgentMemberAnnotation: "former"}, false},
	} {
		cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: tc.annotations}}
		if got, err := (Members{hub}).HasAgent(t.Context(), cluster); got != tc.want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "b", Annotations: map[string]string{addonv1alpha1.AgentMemberAnnotation: "u"}}}
	if got, err := (Members{hub}).HasAgent(t.Context(), cluster); got || err != nil {
		t.Errorf("no such member: %v, %v", got, err)
	}
}
