// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placementfleet

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/test/support/audit"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/fleet"
)

// Audit logs count requests. Counts do not depend on the load of the machine, except for
// batched statuses: their bound is the number of writes without batching.

const (
	// writesPerWork is the number of writes on the hub until a Work is Available: binding and Work,
	// the status of the Work, and one or two statuses of the binding.
	writesPerWork = 5
	// writesPerJoin is the number of writes of gateway and agent until the member is Joined,
	// without statuses. Requested tokens are not stored.
	writesPerJoin = 12
	// statusesPerJoin is four, plus as many that report what is awaited if that takes long. One of
	// these is the agent's first heartbeat, which may precede Joined.
	statusesPerJoin = 8
	// readsPerJoin is the gateway's read of the Secret to which it binds the agent's token. Reads
	// of missing objects do not count.
	readsPerJoin = 2
	// statusesPerPlacement is the number of status writes of a placement with three members until
	// all are Available: pending, scheduled, and two per binding when none is batched. There is one
	// event per stage.
	statusesPerPlacement, eventsPerPlacement = 8, 8
)

var _ = Describe("The number of writes on the hub", func() {
	It("is small for each Work until it is Available", func(ctx SpecContext) {
		awaitCollector(ctx, running.Hub, "clusterresourcebindings", "works")
		const placements = 6
		began, works := time.Now(), placements*len(members)
		for i := range placements {
			shop(ctx, fmt.Sprintf("counted-%d", i))
		}
		for i := range placements {
			place(ctx, fmt.Sprintf("counted-%d", i), func(*placementv1beta1.PlacementSpec) {})
		}
		for i := range placements {
			Eventually(available).WithContext(ctx).WithArguments(fmt.Sprintf("counted-%d", i)).Should(BeTrue())
		}
		requests := settled(ctx, running.Hub, began)
		ofWorks := func(r audit.Request) bool {
			return strings.HasPrefix(r.Name, "counted-") && (r.Is("works") || r.Is("clusterresourcebindings"))
		}
		perWork := audit.Count(requests, func(r audit.Request) bool { return r.IsWrite() && ofWorks(r) })
		perPlacement := audit.Count(requests, func(r audit.Request) bool {
			return r.IsWrite() && strings.HasPrefix(r.Name, "counted-") && r.User == fleet.GatewayUser && !ofWorks(r)
		})
		collected := audit.Count(requests, func(r audit.Request) bool {
			return ofWorks(r) && strings.HasSuffix(r.User, ":generic-garbage-collector")
		})
		report("for each Work", perWork, works)
		report("for each placement of three members", perPlacement, placements)
		report("by the garbage collector for each Work", collected, works)
		Expect(perWork.Of("create clusterresourcebindings")).To(Equal(works))
		Expect(perWork.Of("create works")).To(Equal(works))
		Expect(perWork.Of("patch clusterresourcebindings", "update clusterresourcebindings", "patch works", "update works")).To(BeZero(), "objects are created complete")
		Expect(perWork.Of()).To(BeNumerically("<=", writesPerWork*works))
		Expect(collected.Of()).To(BeZero(), "owners are named in the version that the collector knows")
		Expect(perPlacement.Of("create events")).To(BeNumerically("<=", eventsPerPlacement*placements))
		Expect(perPlacement.Of("update clusterresourceplacements/status")).To(BeNumerically("<=", statusesPerPlacement*placements))
	})

	It("is small for each join until the member is Joined, and until everything is created", func(ctx SpecContext) {
		const clientID = "counted"
		member, began := registrationv1alpha1.ClusterName(clientID), time.Now()
		startAgent(ctx, clientID)
		Eventually(isJoined).WithContext(ctx).WithArguments(member).Should(BeTrue())
		all := settled(ctx, running.Hub, began)
		until := untilJoined(all, member)
		ofMember := func(r audit.Request) bool {
			if !r.IsWrite() || r.Is("events") || r.Is("works") || r.Is("clusterresourcebindings") {
				return false
			}
			return r.Namespace == clusterv1beta1.MemberNamespace(member) || r.Namespace == fleet.RegistrationNamespace ||
				strings.Contains(r.Name, member)
		}
		ours := func(r audit.Request) bool {
			return ofMember(r) && (r.User == fleet.GatewayUser || strings.HasPrefix(r.User, "system:serviceaccount:"+clusterv1beta1.MemberNamespace(member)+":") ||
				strings.HasPrefix(r.User, "system:serviceaccount:"+fleet.RegistrationNamespace+":"))
		}
		counted := audit.Count(until, ours)
		report("until Joined", counted, 1)
		report("until Joined, by the hub itself", audit.Count(until, func(r audit.Request) bool { return ofMember(r) && !ours(r) }), 1)
		report("in all", audit.Count(all, ours), 1)
		seat := clusterv1beta1.MemberNamespace(member)
		read := audit.Count(until, func(r audit.Request) bool {
			return !r.IsWrite() && r.User == fleet.GatewayUser && (r.Namespace == seat || r.Name == seat)
		})
		report("until Joined, read by the gateway", read, 1)
		Expect(read.Of()).To(BeNumerically("<=", readsPerJoin), "creations in a new namespace need no read before, and the gateway's own writes cause no reads")
		Expect(counted.Of("create memberclusters")).To(Equal(1))
		statuses := counted.Of("patch clusterregistrations/status", "update clusters/status", "update memberclusters/status", "patch internalmemberclusters/status", "patch leases")
		Expect(counted.Of() - statuses).To(BeNumerically("<=", writesPerJoin))
		Expect(statuses).To(BeNumerically("<=", statusesPerJoin))
		Expect(counted.Of("create managedserviceaccounts", "create clusterprofiles")).To(BeZero(), "all are about existing members")
		Expect(audit.Count(all, ours).Of("create managedserviceaccounts", "create clusterprofiles")).To(Equal(2))
	})
})

// settled returns all requests once there was no write for a while.
func settled(ctx context.Context, cluster *env.Cluster, began time.Time) []audit.Request {
	GinkgoHelper()
	const quiet = 6 * time.Second // An agent reports its tunnel after five.
	var all []audit.Request
	last := -1
	Eventually(func() (bool, error) {
		var err error
		all, err = audit.Requests(cluster.Dir, began)
		before := last
		last = audit.Count(all, func(r audit.Request) bool { return r.IsWrite() && !r.Is("leases") && !r.Is("events") }).Of()
		return last == before, err
	}).WithContext(ctx).WithPolling(quiet).Should(BeTrue())
	return all
}

// awaitCollector returns once the cluster's garbage collector watches these kinds, which it discovers
// every 30 s. Until then it reads the owner of each object of such a kind.
func awaitCollector(ctx context.Context, cluster *env.Cluster, kinds ...string) {
	GinkgoHelper()
	const informers = "system:kube-controller-manager" // This user lists and watches; the garbage collector's own user reads and deletes.
	for _, kind := range kinds {
		Eventually(audit.Watched).WithContext(ctx).WithArguments(cluster.Dir, informers, kind).WithPolling(time.Second).Should(BeTrue(), "the garbage collector does not watch %s", kind)
	}
}

var _ = Describe("The garbage collector of a member", func() {
	It("reads no placed object", func(ctx SpecContext) {
		const name = "collected"
		member := running.Members[0].Cluster
		awaitCollector(ctx, member, "appliedworks")
		began := time.Now()
		shop(ctx, name)
		place(ctx, name, func(*placementv1beta1.PlacementSpec) {})
		Eventually(available).WithContext(ctx).WithArguments(name).Should(BeTrue())
		requests := settled(ctx, member, began)
		placed := func(r audit.Request) bool {
			return r.Is("namespaces") && r.Name == name || r.Is("configmaps") && r.Namespace == name
		}
		Expect(audit.Count(requests, placed).Of("create configmaps")).To(BeNumerically(">=", 1), "the log has what the agent writes")
		Expect(audit.Count(requests, func(r audit.Request) bool {
			return placed(r) && strings.HasSuffix(r.User, ":generic-garbage-collector")
		}).Of()).To(BeZero(), "owner references have the preferred version of AppliedWork")
	})
})

// untilJoined ends with the hub's first write of the member's status after the agent's first
// report.
func untilJoined(requests []audit.Request, member string) []audit.Request {
	GinkgoHelper()
	requests = slices.SortedFunc(slices.Values(requests), func(a, b audit.Request) int { return a.At.Compare(b.At) })
	first := func(from int, resource string) int {
		at := slices.IndexFunc(requests[from:], func(r audit.Request) bool {
			return r.IsWrite() && strings.HasSuffix(r.What, " "+resource) && r.Name == member
		})
		Expect(at).To(BeNumerically(">=", 0))
		return from + at
	}
	return requests[:first(first(0, "internalmemberclusters/status"), "memberclusters/status")+1]
}

func report(what string, c audit.Counted, n int) {
	AddReportEntry("writes "+what, ReportEntryVisibilityAlways, c.Per(n))
}

func isJoined(ctx context.Context, member string) (bool, error) {
	m := &clusterv1beta1.MemberCluster{}
	err := hub.Get(ctx, client.ObjectKey{Name: member}, m)
	return meta.IsStatusConditionTrue(m.Status.Conditions, clusterv1beta1.ConditionJoined), client.IgnoreNotFound(err)
}

// startAgent registers one more cluster, whose agent runs beside that of member-1. The member is
// removed after the spec.
func startAgent(ctx context.Context, clientID string) {
	GinkgoHelper()
	kubeconfig, err := running.Members[0].Cluster.Kubeconfig(fleet.AgentUser, "system:masters")
	Expect(err).NotTo(HaveOccurred())
	agent, err := env.NewProcess(env.ProcessOptions{
		Name: clientID, Dir: running.Dir, Path: filepath.Join(running.BinDir, "agent"),
		Args: []string{
			"--member-kubeconfig=" + kubeconfig, "--bootstrap-file=" + filepath.Join(running.Dir, "member-1-values.yaml"),
			"--client-id=" + clientID, "--namespace=" + clientID, "--account-namespace=" + clientID + "-accounts",
			"--metrics-bind-address=0", "--health-probe-bind-address=127.0.0.1:0",
		},
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(agent.Start(ctx)).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		cluster := &registrationv1alpha1.Cluster{}
		cluster.Namespace, cluster.Name = fleet.RegistrationNamespace, registrationv1alpha1.ClusterName(clientID)
		Expect(client.IgnoreNotFound(hub.Delete(ctx, cluster))).To(Succeed())
		Eventually(func(ctx context.Context) error {
			return client.IgnoreNotFound(hub.Get(ctx, client.ObjectKey{Name: cluster.Name}, &clusterv1beta1.MemberCluster{}))
		}).WithContext(ctx).Should(Succeed())
		Expect(agent.Stop(ctx)).To(Succeed())
	})
}
