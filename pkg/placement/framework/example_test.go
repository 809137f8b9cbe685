// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package framework_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"

	"fleetgate.io/fleetgate/pkg/placement/framework"
	"fleetgate.io/fleetgate/pkg/placement/plugins/clusteraffinity"
	"fleetgate.io/fleetgate/pkg/placement/plugins/topologyspread"
)

// A caller translates its objects into a policy and a fleet, chooses the rules, and writes the text
// about the result.
func ExampleProfile_Decide() {
	profile := framework.Profile{
		Rules:    map[framework.Kind][]framework.Rule{framework.PickN: {clusteraffinity.Rule{}}},
		Affinity: clusteraffinity.Ranker{}, Spread: topologyspread.Spreader{},
	}
	production := framework.Term{Labels: labels.SelectorFromSet(labels.Set{"env": "prod"})}
	policy := &framework.Policy{Kind: framework.PickN, Count: 2, Required: []framework.Term{production}}
	fleet := &framework.Fleet{Clusters: []framework.Cluster{
		{Name: "berlin", Labels: labels.Set{"env": "prod"}},
		{Name: "lisbon", Labels: labels.Set{"env": "test"}},
		{Name: "oslo", Labels: labels.Set{"env": "prod"}},
	}}
	oslo := []framework.Holding{{Cluster: "oslo", State: framework.Bound, Current: true}}

	decision, err := profile.Decide(policy, fleet, oslo)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("new:", decision.Add)
	for _, choice := range decision.Selected {
		fmt.Println("has it:", choice.Cluster)
	}
	fmt.Println(profile.Diagnose(policy, fleet, &decision))
	// Output:
	// new: [berlin]
	// has it: berlin
	// has it: oslo
	// 2 of 3 clusters fit: 1 lacked label env=prod
}
