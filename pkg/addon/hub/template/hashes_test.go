// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
)

func TestConcernedBy_AcceptsThoseThatWereGivenTheVersion(t *testing.T) {
	config := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"agentInstallNamespace": "a"}}}
	config.SetNamespace("default")
	config.SetName("deploy")
	sum, err := hashOf(config)
	if err != nil {
		t.Fatal(err)
	}
	deploy, other := referent{Namespace: "default", Name: "deploy"}, referent{Namespace: "default", Name: "other"}
	for name, tc := range map[string]struct {
		named, given referent
		hash         string
		want         bool
	}{
		"given this version":                  {given: deploy, hash: sum, want: true},
		"given an older version":              {given: deploy, hash: "older"},
		"given an older version, but its own": {given: deploy, hash: "older", named: deploy, want: true},
		"given another configuration":         {given: other, hash: sum},
	} {
		addOn := &addonv1alpha1.ManagedClusterAddOn{}
		addOn.Spec.Configs = []addonv1alpha1.AddOnConfig{{ConfigGroupResource: DeploymentConfigs(), ConfigReferent: tc.named}}
		addOn.Status.ConfigReferences = []addonv1alpha1.ConfigReference{{
			ConfigGroupResource: DeploymentConfigs(), DesiredConfig: &addonv1alpha1.ConfigSpecHash{ConfigReferent: tc.given, SpecHash: tc.hash},
		}}
		if got := concernedBy(config, DeploymentConfigs())(addOn); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
