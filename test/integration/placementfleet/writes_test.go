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
	"fleetgate.io/fleetgate/test/audit"
	"fleetgate.io/fleetgate/test/env"
	"fleetgate.io/fleetgate/test/fleet"
)

// What is written is counted by the hub's audit log. The bounds are what docs/performance.md
// says, and a little more where a write is merged with another only if both come at once.

var _ = Describe("What is written on the hub", func() {
	It("is little for each Work until it is Available", func(ctx SpecContext) {
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
		ofPlacements := func(w audit.Write) bool { return strings.HasPrefix(w.Name, "counted-") }
		perWork := settled(ctx, began, func(w audit.Write) bool {
			return ofPlacements(w) && (isOf(w, "works") || isOf(w, "clusterresourcebindings"))
		})
		perPlacement := settled(ctx, began, func(w audit.Write) bool {
			return ofPlacements(w) && w.User == fleet.GatewayUser && !isOf(w, "works") && !isOf(w, "clusterresourcebindings")
		})
		report("for each Work", perWork, works)
		report("for each placement of three members", perPlacement, placements)
		Expect(perWork.Of("create clusterresourcebindings")).To(Equal(works))
		Expect(perWork.Of("create works")).To(Equal(works))
	})

	It("is little for each join until the member is Joined, and until all is there", func(ctx SpecContext) {
		const clientID = "counted"
		member, began := registrationv1alpha1.ClusterName(clientID), time.Now()
		startAgent(ctx, clientID)
		Eventually(isJoined).WithContext(ctx).WithArguments(member).Should(BeTrue())
		ofMember := func(w audit.Write) bool {
			return !isOf(w, "events") && (w.Namespace == clusterv1beta1.MemberNamespace(member) || w.Namespace == fleet.RegistrationNamespace ||
				w.Namespace == "" && (strings.Contains(w.Name, member) || isOf(w, "flowschemas")))
		}
		all := settled(ctx, began, ofMember)
		writes, err := audit.Writes(running.Hub.Dir, began)
		Expect(err).NotTo(HaveOccurred())
		until := audit.Count(untilJoined(writes, member), ofMember)
		report("until Joined", until, 1)
		report("in all", all, 1)
		report("events", audit.Count(writes, func(w audit.Write) bool { return isOf(w, "events") && strings.HasPrefix(w.Name, member) }), 1)
		Expect(until).NotTo(BeEmpty())
	})
})

// isOf reports whether a resource, or a subresource of it, was written.
func isOf(w audit.Write, resource string) bool {
	_, what, _ := strings.Cut(w.What, " ")
	what, _, _ = strings.Cut(what, "/")
	return what == resource
}

// settled counts when nothing more of that is written.
func settled(ctx context.Context, began time.Time, which func(audit.Write) bool) audit.Counted {
	GinkgoHelper()
	const quiet = 6 * time.Second // An agent tells of its tunnel after five.
	var c audit.Counted
	last := -1
	Eventually(func() (bool, error) {
		writes, err := audit.Writes(running.Hub.Dir, began)
		c = audit.Count(writes, which)
		before := last
		last = c.Of()
		return last == before, err
	}).WithContext(ctx).WithPolling(quiet).Should(BeTrue())
	return c
}

// untilJoined ends with the hub's first write of the member's status after the agent's first
// report.
func untilJoined(writes []audit.Write, member string) []audit.Write {
	GinkgoHelper()
	slices.SortFunc(writes, func(a, b audit.Write) int { return a.At.Compare(b.At) })
	reported := slices.IndexFunc(writes, func(w audit.Write) bool {
		return strings.HasSuffix(w.What, " internalmemberclusters/status") && w.Name == member
	})
	Expect(reported).To(BeNumerically(">=", 0))
	told := slices.IndexFunc(writes[reported:], func(w audit.Write) bool {
		return strings.HasSuffix(w.What, " memberclusters/status") && w.Name == member
	})
	Expect(told).To(BeNumerically(">=", 0))
	return writes[:reported+told+1]
}

func report(what string, c audit.Counted, n int) {
	AddReportEntry("writes "+what, ReportEntryVisibilityAlways, c.Per(n))
}

func isJoined(ctx context.Context, member string) (bool, error) {
	m := &clusterv1beta1.MemberCluster{}
	err := hub.Get(ctx, client.ObjectKey{Name: member}, m)
	return meta.IsStatusConditionTrue(m.Status.Conditions, clusterv1beta1.ConditionJoined), client.IgnoreNotFound(err)
}

// startAgent has one more cluster register, whose agent lives beside that of member-1. The
// member goes again after the spec.
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
