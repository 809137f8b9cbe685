// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

func TestDesiredFlows_ListEachAgentOnce(t *testing.T) {
	member := func(kind, namespace, name string) clusterv1beta1.MemberCluster {
		return clusterv1beta1.MemberCluster{Spec: clusterv1beta1.MemberClusterSpec{Identity: rbacv1.Subject{Kind: kind, Namespace: namespace, Name: name}}}
	}
	level := &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "agents", UID: "uid"}}
	flows := desiredFlows([]clusterv1beta1.MemberCluster{
		member("User", "", "edge"), member("ServiceAccount", "fleet-member-b", "agent"), member("Group", "", "agents"),
		member("ServiceAccount", "fleet-member-a", "agent"), member("User", "", "edge"), member("User", "", ""),
	}, level)
	account := func(namespace string) flowcontrolv1.Subject {
		return flowcontrolv1.Subject{Kind: "ServiceAccount", ServiceAccount: &flowcontrolv1.ServiceAccountSubject{Namespace: namespace, Name: "agent"}}
	}
	want := []flowcontrolv1.Subject{
		{Kind: "Group", Group: &flowcontrolv1.GroupSubject{Name: "agents"}}, account("fleet-member-a"), account("fleet-member-b"),
		{Kind: "User", User: &flowcontrolv1.UserSubject{Name: "edge"}},
	}
	for i, leadsTo := range []string{leaseLevel, "agents"} {
		if diff := cmp.Diff(want, flows[i].Spec.Rules[0].Subjects); diff != "" {
			t.Errorf("%s (-want +got):\n%s", flows[i].Name, diff)
		}
		if got := flows[i].Spec.PriorityLevelConfiguration.Name; got != leadsTo {
			t.Errorf("level of %s = %s, want %s", flows[i].Name, got, leadsTo)
		}
	}
	for _, flow := range desiredFlows(nil, level) {
		if len(flow.Spec.Rules) != 0 {
			t.Errorf("%s has rules without a member, which the API server rejects: %+v", flow.Name, flow.Spec.Rules)
		}
	}
}
