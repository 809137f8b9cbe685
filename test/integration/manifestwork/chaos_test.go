// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
	"fleetgate.io/fleetgate/test/support/program"
)

// rollout is a set of ManifestWorkReplicaSets for one cluster, with a ManifestWork each: one object
// stays in all versions, and one exists in a single version.
type rollout struct {
	c               client.Client
	team, namespace string
	works           int
}

func (r rollout) texts(work, version int) []string {
	value := fmt.Sprint(version)
	return []string{
		build.ConfigMapText(r.namespace, fmt.Sprintf("stays-%d", work), "version", value),
		build.ConfigMapText(r.namespace, fmt.Sprintf("only-%d-in-%d", work, version), "version", value),
	}
}

func (r rollout) set(work, version int) *workv1alpha1.ManifestWorkReplicaSet {
	GinkgoHelper()
	return setOf(r.team, fmt.Sprintf("set-%d", work), r.texts(work, version)...)
}

// each calls a function for every set, eight at a time.
func (r rollout) each(do func(work int) error) error {
	var group errgroup.Group
	group.SetLimit(8)
	for work := range r.works {
		group.Go(func() error { return do(work) })
	}
	return group.Wait()
}

// deliver writes all sets while the spec continues.
func (r rollout) deliver(ctx context.Context, version int) {
	GinkgoHelper()
	sets := make([]*workv1alpha1.ManifestWorkReplicaSet, r.works)
	for work := range sets {
		sets[work] = r.set(work, version)
	}
	done := make(chan error, 1)
	go func() {
		done <- r.each(func(work int) error {
			if version == 1 {
				return r.c.Create(ctx, sets[work])
			}
			return r.c.Patch(ctx, sets[work], client.MergeFrom(&workv1alpha1.ManifestWorkReplicaSet{ObjectMeta: *sets[work].ObjectMeta.DeepCopy()}))
		})
	}()
	DeferCleanup(func() { Eventually(done).Should(Receive(BeNil())) })
}

// found returns the objects of the rollout on the cluster, with their UIDs.
func (r rollout) found(ctx context.Context) map[string]types.UID {
	GinkgoHelper()
	list := &corev1.ConfigMapList{}
	Expect(memberClient.List(ctx, list, client.InNamespace(r.namespace), client.MatchingLabels{"app": "spec"})).To(Succeed())
	found := map[string]types.UID{}
	for _, object := range list.Items {
		found[object.Name+"="+object.Data["version"]] = object.UID
	}
	return found
}

func (r rollout) names(ctx context.Context) func() []string {
	return func() []string {
		names := []string{}
		for name := range r.found(ctx) {
			names = append(names, name)
		}
		return names
	}
}

func (r rollout) wanted(version int) []string {
	var wanted []string
	for work := range r.works {
		wanted = append(wanted, fmt.Sprintf("stays-%d=%d", work, version), fmt.Sprintf("only-%d-in-%d=%d", work, version, version))
	}
	return wanted
}

// arrived counts the sets that have reached a version on the cluster.
func (r rollout) arrived(ctx context.Context, version int) func() int {
	return func() int {
		count := 0
		for name := range r.found(ctx) {
			if strings.HasPrefix(name, "stays-") && strings.HasSuffix(name, fmt.Sprintf("=%d", version)) {
				count++
			}
		}
		return count
	}
}

// amid waits until a version has made some progress.
func (r rollout) amid(ctx context.Context, version int) {
	GinkgoHelper()
	before := r.arrived(ctx, version)()
	Eventually(r.arrived(ctx, version)).WithTimeout(2 * time.Minute).Should(BeNumerically(">=", min(before+r.works/20, r.works)))
}

// wrongly lists objects that should not have been deleted, from all deletions during the rollout
// from version 1 to 2.
func (r rollout) wrongly(deleted []string) []string {
	right := map[string]bool{}
	for work := range r.works {
		right[fmt.Sprintf("only-%d-in-1", work)] = true
	}
	return slices.DeleteFunc(slices.Clone(deleted), func(name string) bool { return right[name] })
}

var _ = Describe("A rollout by the programs of agent and gateway", func() {
	DescribeTable("completes although both are killed and the cluster is disconnected", func(ctx SpecContext, works int, cutOff time.Duration) {
		link, err := env.NewLink(strings.TrimPrefix(member.Config().Host, "https://"))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(link.Close)
		over := filepath.Join(GinkgoT().TempDir(), "member.kubeconfig")
		Expect(env.WriteKubeconfig(over, link.Config(member.Config()))).To(Succeed())
		r := rollout{c: servePlacements(), team: expect.FreshNamespace(ctx, hubClient), namespace: expect.FreshNamespace(ctx, memberClient), works: works}
		decided(ctx, r.c, r.team)
		bound(ctx, r.c, r.team)
		doomed := []*env.Process{startProgram(ctx, over), program.Gateway(ctx, hub, "--ocm=works", "--components=controllers", "--leader-elect=false")}
		kill := func(which *env.Process) {
			GinkgoHelper()
			Expect(which.Kill()).To(Succeed())
			Expect(which.Restart(ctx)).To(Succeed())
		}
		foreign := foreignConfigMap(ctx, r.namespace, map[string]string{"x": "theirs"})
		seen := expect.DeletedConfigMaps(ctx, build.Unlimited(member.Config()), r.namespace)

		By("killing both during the rollout of the first version")
		r.deliver(ctx, 1)
		for _, which := range append(doomed, doomed...) {
			r.amid(ctx, 1)
			kill(which)
		}
		Eventually(r.names(ctx)).Should(ConsistOf(r.wanted(1)))
		first := r.found(ctx)

		By("disconnecting the cluster during the rollout of the second")
		r.deliver(ctx, 2)
		r.amid(ctx, 2)
		link.Cut()
		Consistently(func() int { return len(r.found(ctx)) }).WithTimeout(cutOff).WithPolling(time.Second).
			Should(BeNumerically(">=", r.works), "the permanent objects exist")
		for _, which := range doomed {
			kill(which)
		}
		link.Mend()

		By("checking which objects exist")
		Eventually(r.names(ctx)).WithTimeout(2 * time.Minute).Should(ConsistOf(r.wanted(2)))
		last := r.found(ctx)
		for work := range r.works {
			before, after := fmt.Sprintf("stays-%d=1", work), fmt.Sprintf("stays-%d=2", work)
			Expect(last[after]).To(Equal(first[before]), "object stays-%d was never deleted", work)
			Eventually(conditionsOf(ctx, r.c, r.set(work, 2))).Should(HaveExactElements(setComplete()))
		}
		Expect(expect.ConfigMap(ctx, memberClient, r.namespace, "a").UID).To(Equal(foreign.UID), "the object of another client")
		Expect(records(ctx, agentID, "")).To(HaveLen(r.works), "no set has two ManifestWorks")
		Eventually(seen.Names).Should(ContainElement(fmt.Sprintf("only-%d-in-1", r.works-1)), "the watch reports deletions")
		Expect(r.wrongly(seen.Names())).To(BeEmpty())

		By("removing everything under the same conditions")
		Expect(r.each(func(work int) error { return r.c.Delete(ctx, r.set(work, 2)) })).To(Succeed())
		for _, which := range doomed {
			kill(which)
		}
		Eventually(r.names(ctx)).WithTimeout(2 * time.Minute).Should(BeEmpty())
		Eventually(func() int { return len(records(ctx, agentID, "")) }).Should(BeZero())
		for work := range r.works {
			Eventually(expect.Gone(ctx, r.c, r.set(work, 2))).Should(BeTrue())
		}
		Expect(expect.ConfigMap(ctx, memberClient, r.namespace, "a").UID).To(Equal(foreign.UID), "the object of another client")
	},
		Entry("with 20 ManifestWorks, for a moment", 20, 3*time.Second),
		Entry("with 200 ManifestWorks, for a minute", Label("matrix"), 200, time.Minute),
	)

	It("fails if an object was deleted that must stay", func() {
		Expect(rollout{works: 200}.wrongly([]string{"only-7-in-1", "stays-7", "only-7-in-2", "only-200-in-1", "a"})).
			To(HaveExactElements("stays-7", "only-7-in-2", "only-200-in-1", "a"))
	})
})
