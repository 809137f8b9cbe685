// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// calm is the time without writes after which a cluster counts as settled.
const calm = 20 * time.Second

// kept are the kinds whose stored objects the current programs must not rewrite after an upgrade.
// MemberClusters and InternalMemberClusters are excluded because heartbeats write them;
// ClusterProfiles and AppliedWorks because they have new fields.
func kept() (onHub, onMembers []string) {
	const placement = ".placement.kubernetes-fleet.io"
	for _, resource := range []string{
		"clusterresourceplacements", "resourceplacements", "clusterresourcebindings", "resourcebindings", "works",
		"clusterschedulingpolicysnapshots", "schedulingpolicysnapshots", "clusterresourcesnapshots", "resourcesnapshots",
		"clusterresourceoverrides", "resourceoverrides", "clusterresourceoverridesnapshots", "resourceoverridesnapshots",
		"clusterstagedupdateruns", "clusterstagedupdatestrategies", "clusterresourceplacementevictions",
	} {
		onHub = append(onHub, resource+placement)
	}
	onHub = append(onHub, "managedserviceaccounts", "clusterregistrationtokens", "serviceaccounts", "rolebindings", "resourcequotas")
	return onHub, []string{"deployments", "services", "configmaps", "namespaces", "clusterrolebindings"}
}

// versionsOf returns the resourceVersions of all objects of these kinds in a cluster.
func (l *launched) versionsOf(ctx context.Context, cluster string, kinds []string) map[string]string {
	GinkgoHelper()
	var list struct {
		Items []struct {
			Kind     string
			Metadata struct{ Namespace, Name, ResourceVersion string }
		}
	}
	Expect(l.read(ctx, l.breakGlass(cluster), &list, strings.Join(kinds, ","), "--all-namespaces")).To(Succeed())
	versions := map[string]string{}
	for _, item := range list.Items {
		versions[strings.Join([]string{cluster, item.Kind, item.Metadata.Namespace, item.Metadata.Name}, " ")] = item.Metadata.ResourceVersion
	}
	return versions
}

// settledVersions returns those of hub and members once there are no more writes.
func (l *launched) settledVersions(ctx context.Context) map[string]string {
	GinkgoHelper()
	onHub, onMembers := kept()
	var last map[string]string
	Eventually(func() bool {
		now := l.versionsOf(ctx, "hub", onHub)
		for _, member := range []string{"member-1", "member-2"} {
			maps.Copy(now, l.versionsOf(ctx, member, onMembers))
		}
		before := last
		last = now
		return maps.Equal(before, now)
	}).WithContext(ctx).WithPolling(calm).WithTimeout(5 * time.Minute).Should(BeTrue())
	return last
}

// renew stops processes, and the launcher starts those of this commit.
func (l *launched) renew(ctx context.Context, names ...string) {
	GinkgoHelper()
	for _, name := range names {
		Expect(l.process(name).Stop(ctx)).To(Succeed())
	}
	out, err := l.launcher(ctx, "up")
	Expect(err).NotTo(HaveOccurred(), out)
}

var _ = Describe("A fleet of the previous version", Label("matrix"), func() {
	It("can be upgraded, and no up-to-date object is written", func(ctx SpecContext) {
		if skew.program != "" {
			Skip("FLEETGATE_SKEW mixes other versions")
		}
		revision := previousRevision(ctx)
		if revision == "" {
			Skip("No release before this commit is tagged: say with FLEETGATE_PREVIOUS which commit the former programs are of")
		}
		l := newFolder()
		out, err := l.launcher(ctx, "-gateway="+buildRevision(ctx, revision, "gateway"), "-agent="+buildRevision(ctx, revision, "agent"), "up")
		Expect(err).NotTo(HaveOccurred(), out)
		before := l.settledVersions(ctx)
		for _, kind := range []string{"hub ClusterResourcePlacement ", "hub Work ", "hub ServiceAccount ", "member-1 Service ", "member-2 Deployment "} {
			Expect(before).To(HaveKey(HavePrefix(kind)))
		}

		// Upgrade the gateway first. Agents are disconnected too briefly for placements to report
		// it.
		l.renew(ctx, "gateway")
		l.renew(ctx, "member-1-agent", "member-2-agent")
		after := l.settledVersions(ctx)

		var written []string
		for _, object := range slices.Sorted(maps.Keys(before)) {
			if after[object] != before[object] {
				written = append(written, object)
			}
		}
		AddReportEntry("objects that were there", len(before))
		Expect(written).To(BeEmpty(), "of %d objects these were written", len(before))
	})
})
