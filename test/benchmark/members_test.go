// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "fleetgate.io/fleetgate/pkg/apis/config/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/install"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/fleet"
)

const (
	// membersVariable overrides defaultMembers.
	membersVariable = "FLEETGATE_MEMBERS"
	defaultMembers  = 1000
	// atOnce is how many members begin to join at the same time.
	atOnce = 1000
	// placed is the number of placements on all members, and worksOfMember the number of Works of
	// each, with that of its administrators.
	placed        = 3
	worksOfMember = placed + 1
	// idleVariable overrides idleTime, the time of an idle measurement. Every agent reports once in
	// five minutes.
	idleVariable = "FLEETGATE_IDLE"
	idleTime     = 5 * time.Minute
	// tunnelVariable overrides the tunnels' path, the gateway's own port: "native" is through the
	// hub.
	tunnelVariable = "FLEETGATE_TUNNEL"
)

// BenchmarkMembers measures a fleet of many idle members: each has registered, keeps one tunnel to
// the gateway's own port, renews its Lease, and watches three Works. An agent is the product's own
// code for enrolling, reporting and tunnels, with one connection each to the hub and to a gateway;
// thousands share a process. There are two gateways. Figures:
//
//   - idle: the cost of such a fleet without changes. Memory is the growth of both gateways since
//     before the first member joined.
//   - restart: the hub's API server is killed and restarted. Time until it responds, and the
//     largest number of tunnels down at a time, which can be none at the gateway's own port; if
//     there were any, the time until all are up.
//   - storm: both gateways are killed and restarted. Time until half, 99 % and all tunnels are up,
//     the requests to the hub, and the latency of another client of the hub.
//   - rotate: the next CA signs the gateways' certificates, and all agents reconnect. The largest
//     number of tunnels down at a time, which can be none, and the latency of another client.
//   - storm-other-ca: a storm after which the gateways have a CA that no agent knows.
//
// Baselines without members run first: idle-0, restart-0 and storm-0. A storm with members also has
// bare: the least work by which all of them can reconnect.
func BenchmarkMembers(b *testing.B) {
	bed := newMembersBed(b)
	bed.idle(b)
	bed.restart(b)
	bed.storm(b, "storm", nil)
	bed.join(b)
	bed.idle(b)
	bed.bare(b)
	bed.restart(b)
	bed.storm(b, "storm", nil)
	bed.rotate(b)
	bed.storm(b, "storm-other-ca", bed.forgetAuthority)
}

// membersBed is a hub with two gateways and many members.
type membersBed struct {
	*joiner
	simulators []*simulatorProcess
	members    int
	// before is the gateways' memory before the first member joined, in MiB.
	before   float64
	idleTime time.Duration
	// answersAlone and startsAlone are the start times of the API server and of both gateways
	// without members; reconnectTime is the time of all members to reconnect with the least work.
	answersAlone, startsAlone, reconnectTime time.Duration
}

func newMembersBed(b *testing.B) *membersBed {
	b.Helper()
	members := defaultMembers
	if text := os.Getenv(membersVariable); text != "" {
		var err error
		if members, err = strconv.Atoi(text); err != nil {
			b.Fatalf("%s: %v", membersVariable, err)
		}
	}
	level, err := env.ConfigFlag(b.TempDir(), configv1alpha1.GatewayKind, "members: {agentsPriorityLevel: "+agentsLevel+"}")
	if err != nil {
		b.Fatal(err)
	}
	f := startFleetWith(b, "members", fleet.Options{
		Replicas: 2, Tunnel: cmp.Or(os.Getenv(tunnelVariable), fleet.TunnelPort), GatewayArgs: append(furtherFlags(), level),
		Patience: crowdPatience, // All agents reconnect while the hub's API server starts.
	})
	shareOut(b, f)
	bed := &membersBed{joiner: newJoiner(b, f), members: members, idleTime: idleTimeOf(b)}
	for nth := range (members + membersOfSimulator - 1) / membersOfSimulator {
		bed.simulators = append(bed.simulators, startSimulator(b, bed.values, filepath.Join(f.Dir, fmt.Sprintf("simulator-%d.log", nth+1))))
	}
	return bed
}

// idleTimeOf returns the time of an idle measurement.
func idleTimeOf(b *testing.B) time.Duration {
	b.Helper()
	text := os.Getenv(idleVariable)
	if text == "" {
		return idleTime
	}
	idle, err := time.ParseDuration(text)
	if err != nil {
		b.Fatalf("%s: %v", idleVariable, err)
	}
	return idle
}

// counts returns the counts of all simulators together.
func (m *membersBed) counts() simulatorCounts {
	var sum simulatorCounts
	for _, s := range m.simulators {
		counts := s.counts()
		sum.Connected += counts.Connected
		sum.Settled += counts.Settled
	}
	return sum
}

// start distributes members over the simulators.
func (m *membersBed) start(name string) error {
	return m.simulators[m.joined%len(m.simulators)].join(name)
}

// join joins all members and waits for their Works.
func (m *membersBed) join(b *testing.B) {
	b.Helper()
	m.awaitLeader(b)
	m.before = m.resident(b)
	began := time.Now()
	for left := m.members; left > 0; left -= atOnce {
		more := min(left, atOnce)
		took, err := m.joinSimulated(b.Context(), m.start, more)
		if err != nil {
			b.Fatal(err)
		}
		b.Logf("%d of %d members joined, the last %d within %s", m.members-left+more, m.members, more, took)
	}
	for nth := range placed {
		m.place(b, nth)
	}
	m.await(b, "tunnels and Works", func(now simulatorCounts) bool {
		return now.Connected == m.members && now.Settled >= worksOfMember*m.members
	})
	b.Logf("all have their tunnels and Works after %s", time.Since(began))
	// Statuses of placements with this many members are written for a while longer.
	const quiet = 3 * time.Second
	err := m.rest(b.Context(), quiet, crowdPatience, func(w written) bool {
		return w.verb == "create" || strings.HasSuffix(w.resource, "."+placementv1beta1.GroupVersion.Group)
	})
	if err != nil {
		b.Fatal(err)
	}
}

// awaitLeader waits until a gateway is the leader. A killed leader keeps the Lease until it ends.
func (m *membersBed) awaitLeader(b *testing.B) {
	b.Helper()
	began := metav1.NowMicro()
	err := wait.PollUntilContextTimeout(b.Context(), time.Second, patience, true, func(ctx context.Context) (bool, error) {
		var lease coordinationv1.Lease
		err := m.hub.Get(ctx, client.ObjectKey{Namespace: gatewayNamespace, Name: install.LeaderLease}, &lease)
		return err == nil && began.Before(lease.Spec.RenewTime), err
	})
	if err != nil {
		b.Fatalf("no gateway leads: %v", err)
	}
}

// place creates a placement with a Work for every member.
func (m *membersBed) place(b *testing.B, nth int) {
	b.Helper()
	name := fmt.Sprintf("%s%02d", measuredPrefix, nth)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	crp := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name}}
	crp.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: name}}
	if err := errors.Join(m.hub.Create(b.Context(), namespace), m.hub.Create(b.Context(), crp)); err != nil {
		b.Fatal(err)
	}
}

func (m *membersBed) await(b *testing.B, what string, done func(simulatorCounts) bool) {
	b.Helper()
	const interval = 20 * time.Millisecond
	for began := time.Now(); ; time.Sleep(interval) {
		now := m.counts()
		if done(now) {
			return
		}
		if patience := m.patience(); time.Since(began) > patience {
			b.Fatalf("%s did not complete within %s: %d of %d tunnels are up, %d Works are settled", what, patience, now.Connected, m.members, now.Settled)
		}
	}
}

// patience bounds what all of them do together.
func (m *membersBed) patience() time.Duration {
	return crowdPatience * time.Duration(max(1, m.members/atOnce))
}

// resident is the memory of the gateways together, in MiB.
func (m *membersBed) resident(b *testing.B) float64 {
	b.Helper()
	sum := 0.0
	for _, gateway := range m.fleet.Gateways {
		sum += mebibytes(residentOf(b, gateway.PID()))
	}
	return sum
}

// agentsWrite are the resources that idle agents write.
var agentsWrite = map[string]bool{"leases.coordination.k8s.io": true, "internalmemberclusters.cluster.kubernetes-fleet.io": true}

func (m *membersBed) idle(b *testing.B) {
	b.Helper()
	during := m.idleTime
	if m.joined == 0 {
		during = min(during, time.Minute)
	}
	all, err := m.allWrites(b.Context())
	writes, writesErr := m.writes(b.Context())
	if err := errors.Join(err, writesErr); err != nil {
		b.Fatal(err)
	}
	used, began := m.cpuByProgram(b), time.Now()
	profiled := profiles(b, fmt.Sprintf("idle-%d", m.joined), map[string]apiClient{"hub": m.api})
	time.Sleep(during)
	profiled()
	took := time.Since(began).Seconds()
	now := m.cpuByProgram(b)
	percentOf := func(programs ...string) float64 {
		sum := time.Duration(0)
		for _, program := range programs {
			sum += now[program] - used[program]
		}
		return 100 * sum.Seconds() / took
	}
	allAfter, err := m.allWrites(b.Context())
	writesAfter, writesErr := m.writes(b.Context())
	if err := errors.Join(err, writesErr); err != nil {
		b.Fatal(err)
	}
	own := 0
	for _, w := range since(writes, writesAfter) {
		b.Logf("idle: %-7s %7d x %s", w.verb, w.count, w.resource)
		if !agentsWrite[w.resource] {
			own += w.count
		}
	}
	b.Run(fmt.Sprintf("idle-%d", m.joined), func(b *testing.B) {
		b.ReportMetric((allAfter-all)/took, "writes/s")
		b.ReportMetric(percentOf("the API server", "etcd"), "hub-cpu-%")
		b.ReportMetric(percentOf("the gateways"), "gateways-cpu-%")
		if m.joined > 0 {
			b.ReportMetric(float64(own)/took/float64(m.joined), "gateway-writes/s/member")
			b.ReportMetric((m.resident(b)-m.before)*1024/float64(m.joined), "gateways-KiB/member")
		}
	})
}

// cpuByProgram returns the CPU time of each program so far, zero for one that does not run.
func (m *membersBed) cpuByProgram(b *testing.B) map[string]time.Duration {
	b.Helper()
	all := map[string]time.Duration{"the benchmark": cpuOf(b, os.Getpid())}
	for _, simulator := range m.simulators {
		all["the simulators"] += cpuOf(b, simulator.pid)
	}
	hub := m.fleet.Hub
	for name, processes := range map[string][]*env.Process{
		"the API server": {hub.APIServer}, "etcd": {hub.Etcd}, "the controller manager": {hub.ControllerManager}, "the gateways": m.fleet.Gateways,
	} {
		for _, process := range processes {
			if process.Running() {
				all[name] += cpuOf(b, process.PID())
			}
		}
	}
	return all
}
