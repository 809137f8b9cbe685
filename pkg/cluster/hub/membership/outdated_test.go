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

func TestTellOutdated(t *testing.T) {
	for name, tc := range map[string]struct {
		agent, gateway string
		outdated       bool
	}{
		"same version":              {"v0.4.0", "v0.4.0", false},
		"other patch version":       {"v0.4.0", "v0.4.7", false},
		"one minor version behind":  {"v0.3.9", "v0.4.0", false},
		"two minor versions behind": {"v0.2.0", "v0.4.0", true},
		"three":                     {"v0.1.0", "v0.4.0-rc.1", true},
		"other major version":       {"v0.9.0", "v1.0.0", true},
		"newer":                     {"v0.5.0", "v0.4.0", false},
		"newer by a major version":  {"v1.0.0", "v0.4.0", false},
		"no version":                {"", "v0.4.0", false},
		"invalid version":           {"latest; upgrade me", "v0.4.0", false},
		"development gateway":       {"v0.1.0", "devel", false},
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
				t.Fatalf("condition = %v", told)
			}
			if told != nil && (told.Status != metav1.ConditionTrue || !strings.Contains(told.Message, tc.agent) || !strings.Contains(told.Message, "upgrade the agent's chart")) {
				t.Errorf("condition = %+v", told)
			}
			w.writes = 0
			w.pass(4)
			if w.writes != 0 {
				t.Errorf("%d writes without a change", w.writes)
			}
		})
	}
}

func TestTellOutdated_RemovesConditionAfterUpgrade(t *testing.T) {
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
		t.Fatal("condition is missing")
	}
	if comes("v0.4.0"); told() {
		t.Error("condition of an upgraded agent")
	}
}

func TestDesiredStatus_IgnoresReportedOutdatedCondition(t *testing.T) {
	w := watch(0)
	w.reconciler.Version = "v0.4.0"
	w.imc.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.ConditionAgentOutdated, Status: metav1.ConditionTrue, Reason: "Joke"}}
	w.report()
	if told := meta.FindStatusCondition(w.mc.Status.Conditions, clusterv1beta1.ConditionAgentOutdated); told != nil {
		t.Errorf("condition = %+v", told)
	}
}
