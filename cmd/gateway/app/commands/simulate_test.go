// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

const simulatedClusters = `
apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata: {name: east-1, labels: {env: prod, region: east}}
spec: {identity: {kind: ServiceAccount, name: agent}}
---
# A comment alone is a document too.
---
apiVersion: v1
kind: List
items:
- apiVersion: cluster.kubernetes-fleet.io/v1beta1
  kind: MemberCluster
  metadata: {name: east-2, labels: {env: prod, region: east}}
  spec: {identity: {kind: ServiceAccount, name: agent}}
- apiVersion: cluster.kubernetes-fleet.io/v1beta1
  kind: MemberCluster
  metadata: {name: west-1, labels: {env: prod, region: west}}
  spec: {identity: {kind: ServiceAccount, name: agent}, taints: [{key: full, effect: NoSchedule}]}
- apiVersion: cluster.kubernetes-fleet.io/v1beta1
  kind: MemberCluster
  metadata: {name: lab, labels: {env: test}}
  spec: {identity: {kind: ServiceAccount, name: agent}}
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: other}
`

const simulatedPlacement = `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: shop}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: shop}]
  policy:
    placementType: PickN
    numberOfClusters: 2
    affinity:
      clusterAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          clusterSelectorTerms:
          - labelSelector: {matchLabels: {env: prod}}
    topologySpreadConstraints:
    - topologyKey: region
`

const simulatedBinding = `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourceBinding
metadata: {name: shop-lab-1, labels: {kubernetes-fleet.io/parent-CRP: shop}}
spec:
  state: Bound
  resourceSnapshotName: shop-0-snapshot
  schedulingPolicySnapshotName: shop-0
  targetCluster: lab
  clusterDecision: {clusterName: lab, selected: true, reason: picked}
`

// files writes the texts into a folder and returns its path.
func files(t *testing.T, texts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range texts {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func simulated(t *testing.T, stdin string, args ...string) (out string, err error) {
	t.Helper()
	command := &cobra.Command{Use: "gateway"}
	command.AddCommand(All()...)
	var written bytes.Buffer
	command.SetOut(&written)
	command.SetErr(&bytes.Buffer{})
	command.SetIn(strings.NewReader(stdin))
	command.SetArgs(append([]string{"simulate"}, args...))
	err = command.ExecuteContext(t.Context())
	return written.String(), err
}

func TestSimulatePrintsDecisionAndReasons(t *testing.T) {
	dir := files(t, map[string]string{"placement.yaml": simulatedPlacement, "clusters/all.yml": simulatedClusters, "clusters/README": "not YAML: ["})
	got, err := simulated(t, "", "-f", filepath.Join(dir, "placement.yaml"), "-f", filepath.Join(dir, "clusters"))
	if err != nil {
		t.Fatal(err)
	}
	want := `shop (PickN): not fulfilled, 1 of 4 clusters fit: 1 lacked label env=prod, 1 tainted full:NoSchedule, 1 violated topology spread constraint "region" (max skew 1)

CLUSTER   SELECTED   CHANGE   AFFINITY   SPREAD   REASON
east-2    yes        Add      0          -1       picked by scheduling policy
east-1    no                                      TopologySpreadConstraints: violated topology spread constraint "region" (max skew 1)
lab       no                                      ClusterAffinity: cluster does not match with any of the required cluster affinity terms
west-1    no                                      TaintToleration: taint full:NoSchedule is not tolerated
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSimulateKnowsWhatIsPlaced(t *testing.T) {
	clusters, placement := simulatedClusters, simulatedPlacement
	dir := files(t, map[string]string{"in.yaml": clusters + "---" + placement + "---" + simulatedBinding})
	got, err := simulated(t, "", "-f", dir, "-o", "yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"name: lab\n    reason: picked by scheduling policy\n    selected: true", "change: Keep", "fulfilled: true"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	got, err = simulated(t, "", "-f", dir, "-o", "json", "--policy-changed")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"change": "Drop"`, `"rule": "ClusterAffinity"`} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}

func TestSimulateReadsStandardInput(t *testing.T) {
	got, err := simulated(t, simulatedPlacement+"---"+simulatedClusters, "-f", "-")
	if err != nil || !strings.Contains(got, "east-2    yes") {
		t.Errorf("error %v, output\n%s", err, got)
	}
}

func TestSimulateRefusesWhatTheHubWouldRefuse(t *testing.T) {
	cases := map[string]struct {
		text string
		args []string
		want string
	}{
		"no file":        {want: "--filename"},
		"no such file":   {args: []string{"-f", "/does/not/exist"}, want: "no such file"},
		"no placement":   {text: simulatedClusters, want: "no ClusterResourcePlacement"},
		"no clusters":    {text: simulatedPlacement, want: "kubectl get memberclusters"},
		"a typing error": {text: strings.Replace(simulatedPlacement, "numberOfClusters", "numberOfCluster", 1) + "---" + simulatedClusters, want: `unknown field "numberOfCluster"`},
		"an object where a list belongs": {text: strings.Replace(simulatedPlacement, "topologySpreadConstraints:\n    - ", "topologySpreadConstraints:\n      ", 1) + "---" + simulatedClusters,
			want: "topologySpreadConstraints"},
		"a policy that makes no sense": {text: strings.Replace(simulatedPlacement, "numberOfClusters: 2", "clusterNames: [a]", 1) + "---" + simulatedClusters, want: "numberOfClusters"},
		"not YAML":                     {text: "a: [", want: "document 1"},
		"no object":                    {text: "a: b", want: "kind is missing"},
		"an unknown output":            {text: simulatedPlacement, args: []string{"-o", "toml"}, want: "toml"},
		"a strange time":               {text: simulatedPlacement + "---" + simulatedClusters, args: []string{"--at", "noon"}, want: "--at"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			args := tc.args
			if tc.text != "" {
				args = append(args, "-f", files(t, map[string]string{"in.yaml": tc.text}))
			}
			if out, err := simulated(t, "", args...); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, output %q, want an error with %q", err, out, tc.want)
			}
		})
	}
}
