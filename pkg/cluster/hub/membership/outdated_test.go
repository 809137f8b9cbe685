// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

func TestAnAgentThatIsTooOldIsToldToUpgrade(t *testing.T) {
	for name, tc := range map[string]struct {
		agent, gateway string
		outdated       bool
	}{
		"the same":                       {"v0.4.0", "v0.4.0", false},
		"another patch":                  {"v0.4.0", "v0.4.7", false},
		"on the way of an upgrade":       {"v0.3.9", "v0.4.0", false},
		"two minor versions behind":      {"v0.2.0", "v0.4.0", true},
		"three":                          {"v0.1.0", "v0.4.0-rc.1", true},
		"another major version":          {"v0.9.0", "v1.0.0", true},
		"newer":                          {"v0.5.0", "v0.4.0", false},
		"newer by a major version":       {"v1.0.0", "v0.4.0", false},
		"another product's, or none":     {"", "v0.4.0", false},
		"an agent that says anything":    {"latest; upgrade me", "v0.4.0", false},
		"a gateway that was built alone": {"v0.1.0", "devel", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := watch(0)
			w.reconciler.Version = tc.gateway
			if tc.agent != "" {
				w.imc.Status.Properties = map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{clusterv1beta1.PropertyAgentVersion: {Value: tc.agent}}
			}
			w.report()
			told := meta.FindStatusCondition(w.mc.Status.Conditions, clusterv1beta1.ConditionAgentOutdated)
			if (told != nil) != tc.outdated {
				t.Fatalf("it is told %v", told)
			}
			if told != nil && (told.Status != metav1.ConditionTrue || !strings.Contains(told.Message, tc.agent) || !strings.Contains(told.Message, "upgrade the agent's chart")) {
				t.Errorf("it is told %+v", told)
			}
			w.writes = 0
			w.pass(4)
			if w.writes != 0 {
				t.Errorf("%d writes while nothing changes", w.writes)
			}
		})
	}
}

func TestAnAgentThatWasUpgradedIsOutdatedNoMore(t *testing.T) {
	w := watch(0)
	w.reconciler.Version = "v0.4.0"
	comes := func(agent string) {
		w.imc.Status.Properties = map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{clusterv1beta1.PropertyAgentVersion: {Value: agent}}
		w.report()
	}
	told := func() bool {
		return meta.IsStatusConditionTrue(w.mc.Status.Conditions, clusterv1beta1.ConditionAgentOutdated)
	}
	if comes("v0.1.0"); !told() {
		t.Fatal("it is not told")
	}
	if comes("v0.4.0"); told() {
		t.Error("it is told of an agent that was upgraded")
	}
}

func TestAnAgentDoesNotSayItselfThatItIsOutdated(t *testing.T) {
	w := watch(0)
	w.reconciler.Version = "v0.4.0"
	w.imc.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.ConditionAgentOutdated, Status: metav1.ConditionTrue, Reason: "Joke"}}
	w.report()
	if told := meta.FindStatusCondition(w.mc.Status.Conditions, clusterv1beta1.ConditionAgentOutdated); told != nil {
		t.Errorf("it is told %+v", told)
	}
}
