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

// calm is for how long nothing may be written to count as settled.
const calm = 20 * time.Second

// kept are the kinds of objects that programs of the version before wrote, and that those of
// today find right as they are. MemberClusters and InternalMemberClusters are not among them:
// heartbeats are written there; nor are ClusterProfiles, which show more of a member now, and
// AppliedWorks, which remember more of a Work.
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

// versionsOf are the resourceVersions of all objects of kinds in a cluster.
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

// settledVersions are those of hub and members once nothing is written any more.
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

// renew stops processes and has the launcher start those of this commit instead.
func (l *launched) renew(ctx context.Context, names ...string) {
	GinkgoHelper()
	for _, name := range names {
		Expect(l.process(name).Stop(ctx)).To(Succeed())
	}
	out, err := l.launcher(ctx, "up")
	Expect(err).NotTo(HaveOccurred(), out)
}

var _ = Describe("A fleet of the version before", Label("matrix"), func() {
	It("is taken over, and no object that was right is written", func(ctx SpecContext) {
		if skew.program != "" {
			Skip("FLEETGATE_SKEW mixes versions in its own way")
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

		// The gateway first, as in an upgrade; agents are away too shortly to be missed, which
		// placements would tell.
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
