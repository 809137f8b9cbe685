// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/registration"
)

// Every replica needs the identity of a member's agent, the address of its API server, and its
// health.
func TestWithoutUsage_KeepsIdentityAddressAndHealth(t *testing.T) {
	wanted := &clusterv1beta1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "member-1", UID: "u", Labels: map[string]string{"region": "west"},
			Annotations: map[string]string{clusterv1beta1.AnnotationAPIServer: "member.example:443"}},
		Spec: clusterv1beta1.MemberClusterSpec{Identity: rbacv1.Subject{Kind: rbacv1.UserKind, Name: "agent"}},
		Status: clusterv1beta1.MemberClusterStatus{
			Conditions:  []metav1.Condition{{Type: "Joined", Status: metav1.ConditionTrue}},
			AgentStatus: []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent}},
		},
	}
	whole := wanted.DeepCopy()
	whole.Annotations[registration.AnnotationAgentKey] = "hub/key"
	whole.Status.Properties = map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{"p": {Value: "v"}}
	whole.Status.ResourceUsage.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")}
	if got, err := withoutUsage(whole); err != nil || !reflect.DeepEqual(got, wanted) {
		t.Errorf("%v\ngot  %+v\nwant %+v", err, got, wanted)
	}
}
