// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const simulatedOCM = `
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSet
metadata: {name: prod}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {namespace: team-a, name: prod}
spec: {clusterSet: prod}
---
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: east-1, labels: {env: prod, cluster.open-cluster-management.io/clusterset: prod}}
---
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: east-2, labels: {env: prod, cluster.open-cluster-management.io/clusterset: prod}}
---
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: lab, labels: {env: test, cluster.open-cluster-management.io/clusterset: prod}}
---
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: west, labels: {env: prod, cluster.open-cluster-management.io/clusterset: prod}}
spec:
  taints:
  - {key: cluster.open-cluster-management.io/unreachable, effect: NoSelect, timeAdded: "2026-01-31T12:00:00Z"}
---
apiVersion: cluster.open-cluster-management.io/v1alpha1
kind: AddOnPlacementScore
metadata: {namespace: east-2, name: usage}
status: {scores: [{name: cpu, value: 50}]}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: PlacementDecision
metadata: {namespace: team-a, name: shop-decision-1, labels: {cluster.open-cluster-management.io/placement: shop}}
status: {decisions: [{clusterName: west, reason: ""}]}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {namespace: team-a, name: shop}
spec:
  numberOfClusters: 1
  predicates:
  - requiredClusterSelector: {labelSelector: {matchLabels: {env: prod}}}
  tolerations:
  - {key: cluster.open-cluster-management.io/unreachable, operator: Exists, tolerationSeconds: 300}
  prioritizerPolicy:
    configurations:
    - {scoreCoordinate: {type: AddOn, addOn: {resourceName: usage, scoreName: cpu}}, weight: 1}
`

func TestSimulateDecidesAboutPlacementsOfOCM(t *testing.T) {
	for name, c := range map[string]struct{ at, want string }{
		"while the taint is tolerated": {"2026-01-31T12:04:59Z", `team-a/shop (Placement): fulfilled, 1 of 4 clusters fit: 2 scored lower, 1 lacked label env=prod

CLUSTER   SELECTED   CHANGE   SCORE   REASON
west      yes        Keep     200     
east-2    no                  150     scored lower
east-1    no                  100     scored lower
lab       no                          Predicate: lacked label env=prod
`},
		"afterwards": {"2026-01-31T12:05:01Z", `team-a/shop (Placement): fulfilled, 1 of 4 clusters fit: 1 lacked label env=prod, 1 scored lower, 1 tainted cluster.open-cluster-management.io/unreachable:NoSelect

CLUSTER   SELECTED   CHANGE   SCORE   REASON
east-2    yes        Add      150     
west      no         Drop             TaintToleration: taint cluster.open-cluster-management.io/unreachable:NoSelect is not tolerated
east-1    no                  100     scored lower
lab       no                          Predicate: lacked label env=prod
`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := simulated(t, simulatedOCM, "-f", "-", "--at", c.at)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSimulateSaysWhyAPlacementOfOCMHasNothing(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no binding":       {strings.Replace(simulatedOCM, "namespace: team-a, name: prod", "namespace: team-b, name: prod", 1), "No valid ManagedClusterSetBindings found in placement namespace"},
		"a wrong operator": {strings.Replace(simulatedOCM, "operator: Exists, tol", "operator: Exists, value: x, tol", 1), "TaintToleration:If the operator is Exists, the value should be empty."},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := simulated(t, c.text, "-f", "-"); err != nil || !strings.Contains(got, "not fulfilled, "+c.want) {
				t.Errorf("error %v, got\n%s", err, got)
			}
		})
	}
	if _, err := simulated(t, simulatedOCM[strings.LastIndex(simulatedOCM, "---"):], "-f", "-"); err == nil || !strings.Contains(err.Error(), "no ManagedCluster") {
		t.Errorf("got %v", err)
	}
}
