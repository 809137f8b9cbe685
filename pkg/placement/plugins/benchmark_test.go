// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"

	"fleetgate.io/fleetgate/pkg/placement/framework"
	"fleetgate.io/fleetgate/pkg/placement/plugins/clustereligibility"
)

// fleetOf returns clusters in 10 regions and 30 zones; a tenth lacks the label env, a tenth is
// tainted.
func fleetOf(n int) *framework.Fleet {
	fleet := &framework.Fleet{Now: noon}
	for i := range n {
		c := framework.Cluster{
			Name: fmt.Sprintf("cluster-%05d", i),
			Labels: map[string]string{
				"region": fmt.Sprint("region-", i%10), "zone": fmt.Sprint("zone-", i%30), "host": fmt.Sprint("host-", i),
			},
			Properties: map[string]string{"kubernetes-fleet.io/node-count": fmt.Sprint(3 + i%50), "resources.kubernetes-fleet.io/available-cpu": fmt.Sprint(i%97, "00m")},
			Agent:      framework.Agent{Reported: true, Joined: true, Health: framework.Healthy, LastHeartbeat: noon},
		}
		if i%10 != 3 {
			c.Labels["env"] = "prod"
		}
		if i%10 == 7 {
			c.Taints = []framework.Taint{{Key: "full", Effect: "NoSchedule"}}
		}
		fleet.Clusters = append(fleet.Clusters, c)
	}
	return fleet
}

// cpuTime is the CPU time of this process, including garbage collection. On a machine with other
// work it is more precise than elapsed time.
func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkScheduler makes first decisions, which consider every cluster. "half" wants half of the
// clusters, the others a tenth.
func BenchmarkScheduler(b *testing.B) {
	required := []framework.Term{{
		Labels:     labels.SelectorFromSet(labels.Set{"env": "prod"}),
		Properties: []framework.PropertyRequirement{{Name: "kubernetes-fleet.io/node-count", Operator: framework.GreaterThan, Value: resource.MustParse("2")}},
	}}
	preferred := []framework.Preference{{Weight: 50, SortBy: "resources.kubernetes-fleet.io/available-cpu"}, {Weight: 20, Labels: labels.SelectorFromSet(labels.Set{"region": "region-1"})}}
	spread := func(keys ...string) []framework.SpreadConstraint {
		var all []framework.SpreadConstraint
		for _, key := range keys {
			all = append(all, framework.SpreadConstraint{Label: key, MaxSkew: 1, Soft: key != "region"})
		}
		return all
	}
	policies := []struct {
		name string
		make func(fleet *framework.Fleet) framework.Policy
	}{
		{"PickAll", func(*framework.Fleet) framework.Policy { return framework.Policy{Kind: framework.PickAll} }},
		{"PickAll-affinity", func(*framework.Fleet) framework.Policy {
			return framework.Policy{Kind: framework.PickAll, Required: required}
		}},
		{"PickFixed", func(fleet *framework.Fleet) framework.Policy {
			p := framework.Policy{Kind: framework.PickFixed}
			for i := range min(100, len(fleet.Clusters)) {
				p.Names = append(p.Names, fleet.Clusters[i].Name)
			}
			return p
		}},
		{"PickN", func(fleet *framework.Fleet) framework.Policy {
			return framework.Policy{Kind: framework.PickN, Count: len(fleet.Clusters) / 10}
		}},
		{"PickN-affinity", func(fleet *framework.Fleet) framework.Policy {
			return framework.Policy{Kind: framework.PickN, Count: len(fleet.Clusters) / 10, Required: required, Preferred: preferred}
		}},
		{"PickN-spread", func(fleet *framework.Fleet) framework.Policy {
			return framework.Policy{Kind: framework.PickN, Count: len(fleet.Clusters) / 10, Required: required, Preferred: preferred, Spread: spread("region", "zone")}
		}},
		{"PickN-spread-half", func(fleet *framework.Fleet) framework.Policy {
			return framework.Policy{Kind: framework.PickN, Count: len(fleet.Clusters) / 2, Preferred: preferred, Spread: spread("region", "zone")}
		}},
		{"PickN-spread-hosts", func(fleet *framework.Fleet) framework.Policy {
			return framework.Policy{Kind: framework.PickN, Count: len(fleet.Clusters) / 100, Preferred: preferred, Spread: spread("region", "host")}
		}},
	}
	for _, size := range []int{100, 1000, 10000} {
		fleet := fleetOf(size)
		for _, p := range policies {
			policy, profile := p.make(fleet), Profile(clustereligibility.Rule{})
			profile.MaxUnselected = 20 // As the scheduler does.
			b.Run(fmt.Sprintf("%s/clusters=%d", p.name, size), func(b *testing.B) {
				b.ReportAllocs()
				before := cpuTime(b)
				for b.Loop() {
					decision, err := profile.Decide(&policy, fleet, nil)
					if err != nil || len(decision.Selected) == 0 {
						b.Fatalf("%d selected, error %v", len(decision.Selected), err)
					}
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
				b.ReportMetric(float64((cpuTime(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
			})
		}
	}
}
