// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/test/support/fleet"
)

// worksOfAgent is the number of Works of the measured agent.
const worksOfAgent = 10

// BenchmarkAgent measures an idle agent: the program itself, on its own member, with one tunnel to
// the gateway's own port. Figures:
//
//   - idle/works=0/agent: memory, and CPU time in thousandths of a core, before it has a Work of ours.
//   - idle/works=10/agent: the same with ten Works, each of a namespace with three ConfigMaps.
//   - .../kubectl: the baseline, a program that watches the same Works and does nothing else.
//
// Memory is the process's private memory; pages of its program file are reported separately. CPU
// time is taken over FLEETGATE_IDLE or five minutes, in which an agent reports once and renews its
// Lease five times.
func BenchmarkAgent(b *testing.B) {
	f := startFleetWith(b, "agent", fleet.Options{Members: []string{"member-1"}, Tunnel: fleet.TunnelPort})
	kubectl := func(input string, args ...string) {
		b.Helper()
		if out, err := f.Kubectl(b.Context(), f.HubKubeconfig(), input, args...); err != nil {
			b.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
		}
	}
	programs := map[string]int{"agent": f.Members[0].Agent.PID(), "kubectl": watchWorks(b, f)}
	idlePrograms(b, programs, 0)
	for nth := range worksOfAgent {
		kubectl(smallNamespace(fmt.Sprintf("%s%02d", measuredPrefix, nth)), "apply", "-f", "-")
	}
	kubectl("", "wait", "--for=condition=ClusterResourcePlacementAvailable", "--timeout="+patience.String(), "clusterresourceplacement", "--all")
	idlePrograms(b, programs, worksOfAgent)
}

// watchWorks starts a kubectl that watches the first member's Works, and returns its process ID.
func watchWorks(b *testing.B, f *fleet.Fleet) int {
	b.Helper()
	watching := exec.CommandContext(b.Context(), filepath.Join(f.BinDir, "kubectl"), "--kubeconfig="+f.HubKubeconfig(),
		"get", "works", "--namespace="+clusterv1beta1.MemberNamespace(f.Members[0].Name), "--watch")
	if err := watching.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = watching.Wait() }) // It ends with the benchmark's context.
	return watching.Process.Pid
}

// idlePrograms reports the usage of each program while the member has this many Works.
func idlePrograms(b *testing.B, programs map[string]int, works int) {
	b.Helper()
	const settled = 15 * time.Second // By then the last changes are processed and reported.
	time.Sleep(settled)
	used, began := map[string]time.Duration{}, time.Now()
	for name, pid := range programs {
		used[name] = cpuOf(b, pid)
	}
	time.Sleep(idleTimeOf(b))
	took := time.Since(began)
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		pid := programs[name]
		worked := cpuOf(b, pid) - used[name]
		b.Run(fmt.Sprintf("idle/works=%d/%s", works, name), func(b *testing.B) {
			resident, files := memoryOf(b, pid)
			b.ReportMetric(mebibytes(resident-files), "MiB")
			b.ReportMetric(mebibytes(files), "MiB-of-files")
			b.ReportMetric(1000*worked.Seconds()/took.Seconds(), "mCPU")
		})
	}
}

// smallNamespace creates a namespace with three ConfigMaps, and a placement of it on all members.
func smallNamespace(name string) string {
	var objects strings.Builder
	fmt.Fprintf(&objects, "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", name)
	for nth := range 3 {
		fmt.Fprintf(&objects, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: %s, name: settings-%d}\ndata: {value: %s}\n",
			name, nth, strings.Repeat("x", 512))
	}
	fmt.Fprintf(&objects, `---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: %[1]s}
spec: {resourceSelectors: [{group: "", version: v1, kind: Namespace, name: %[1]s}]}
`, name)
	return objects.String()
}
