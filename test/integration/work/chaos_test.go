// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/retention"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
)

// agentEnvironment turns the test binary into an agent that a spec can kill. Its value has the
// paths of the kubeconfigs of hub and member.
const agentEnvironment = "FLEETGATE_TEST_WORK_AGENT"

func TestMain(m *testing.M) {
	if paths := os.Getenv(agentEnvironment); paths != "" {
		if err := beAgent(paths); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func beAgent(paths string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	hubPath, memberPath, _ := strings.Cut(paths, ",")
	hubConfig, err := clientcmd.BuildConfigFromFlags("", hubPath)
	if err != nil {
		return err
	}
	memberConfig, err := clientcmd.BuildConfigFromFlags("", memberPath)
	if err != nil {
		return err
	}
	manager, err := newAgent(ctx, hubConfig, memberConfig)
	if err != nil {
		return err
	}
	return manager.Start(ctx)
}

// agentProcess is an agent in a process of its own.
type agentProcess struct {
	paths string
	run   *exec.Cmd
}

func (a *agentProcess) start() {
	GinkgoHelper()
	a.run = exec.Command(os.Args[0])
	a.run.Env = append(os.Environ(), agentEnvironment+"="+a.paths)
	a.run.Stdout, a.run.Stderr = GinkgoWriter, GinkgoWriter
	Expect(a.run.Start()).To(Succeed())
}

// kill sends SIGKILL.
func (a *agentProcess) kill() {
	GinkgoHelper()
	Expect(a.run.Process.Kill()).To(Succeed())
	_ = a.run.Wait() // the error says that it was killed
}

// rollout is a set of Works. Each has one object that stays in all versions and one for each
// version; some of them share another object.
type rollout struct {
	namespace string
	works     int
}

func (r rollout) name(work int) string { return fmt.Sprintf("%s-%d", r.namespace, work) }

func (r rollout) manifests(work, version int) []string {
	value := fmt.Sprint(version)
	texts := []string{
		build.ConfigMapText(r.namespace, fmt.Sprintf("stays-%d", work), "version", value),
		build.ConfigMapText(r.namespace, fmt.Sprintf("only-%d-in-%d", work, version), "version", value),
	}
	if r.shares(work) {
		texts = append(texts, shared(build.ConfigMapText(r.namespace, "shared", "version", "1")))
	}
	return texts
}

// shares reports whether a Work contains the shared object.
func (rollout) shares(work int) bool { return work%20 == 5 }

// each calls a function for a range of Works, eight at a time.
func (r rollout) each(from, to int, do func(work int) error) error {
	var group errgroup.Group
	group.SetLimit(8)
	for work := from; work < to; work++ {
		group.Go(func() error { return do(work) })
	}
	return group.Wait()
}

func (r rollout) deliver(ctx context.Context, version int) error {
	contents := make([][]placementv1beta1.Manifest, r.works)
	for work := range contents {
		contents[work] = manifests(r.manifests(work, version)...)
	}
	return r.each(0, r.works, func(work int) error {
		object := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: r.name(work)}}
		object.Spec.ApplyStrategy = &placementv1beta1.ApplyStrategy{AllowCoOwnership: true}
		object.Spec.Workload.Manifests = contents[work]
		if version == 1 {
			return hubClient.Create(ctx, object)
		}
		patch := &placementv1beta1.Work{ObjectMeta: *object.ObjectMeta.DeepCopy()}
		return hubClient.Patch(ctx, object, client.MergeFrom(patch))
	})
}

// found returns the objects of the rollout on the member, with their UIDs.
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

// wanted returns the objects that must exist if only Works from an index on remain.
func (r rollout) wanted(from, version int) []string {
	wanted := []string{"shared=1"}
	for work := from; work < r.works; work++ {
		wanted = append(wanted, fmt.Sprintf("stays-%d=%d", work, version), fmt.Sprintf("only-%d-in-%d=%d", work, version, version))
	}
	return wanted
}

func (r rollout) arrived(ctx context.Context, version int) func() int {
	return func() int {
		count := 0
		for name := range r.found(ctx) {
			if strings.HasSuffix(name, fmt.Sprintf("=%d", version)) && strings.HasPrefix(name, "stays-") {
				count++
			}
		}
		return count
	}
}

// keys returns the names of objects.
func keys(found map[string]types.UID) []string {
	names := []string{}
	for name := range found {
		names = append(names, name)
	}
	return names
}

var _ = Describe("A rollout of 200 Works", Label("matrix"), func() {
	It("completes although the agent is killed five times and the member is disconnected for a minute", func(ctx SpecContext) {
		link, err := env.NewLink(strings.TrimPrefix(member.Config().Host, "https://"))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(link.Close)
		agent.Stop()
		DeferCleanup(restartAgent)
		doomed := &agentProcess{paths: agentKubeconfigs(link)}
		doomed.start()
		DeferCleanup(func() { doomed.kill() })

		r := rollout{namespace: expect.FreshNamespace(ctx, memberClient), works: 200}
		foreign := foreignConfigMap(ctx, r.namespace, "x", "theirs")
		seen := expect.DeletedConfigMaps(ctx, build.Unlimited(member.Config()), r.namespace)
		DeferCleanup(func(ctx SpecContext) { r.removeAll(ctx) })
		amid := func(version int) { // waits until the agent has applied some of the Works, but not all
			GinkgoHelper()
			before := r.arrived(ctx, version)()
			Eventually(r.arrived(ctx, version)).WithTimeout(2 * time.Minute).Should(BeNumerically(">=", before+10))
			Expect(r.arrived(ctx, version)()).To(BeNumerically("<", r.works), "the rollout is in progress")
		}
		deliver := func(version int) {
			done := make(chan error, 1)
			go func() {
				defer GinkgoRecover()
				done <- r.deliver(ctx, version)
			}()
			DeferCleanup(func() { Eventually(done).Should(Receive(BeNil())) })
		}

		By("killing it while it applies the first version")
		deliver(1)
		for range 3 {
			amid(1)
			doomed.kill()
			doomed.start()
		}
		Eventually(func() []string { return keys(r.found(ctx)) }).Should(ConsistOf(r.wanted(0, 1)))
		first := r.found(ctx)

		By("disconnecting the member while it applies the second")
		deliver(2)
		amid(2)
		link.Cut()
		Consistently(func() int { return len(r.found(ctx)) }).WithTimeout(time.Minute).WithPolling(time.Second).
			Should(BeNumerically(">=", r.works+1), "the permanent objects exist")
		link.Mend()

		By("killing it twice more, with Works deleted and Works gone meanwhile")
		amid(2)
		doomed.kill()
		const deleted, vanished = 20, 30
		Expect(r.each(0, vanished, func(work int) error { return r.remove(ctx, work, work >= deleted) })).To(Succeed())
		doomed.start()
		amid(2)
		doomed.kill()
		doomed.start()

		By("releasing the retained objects of deleted Works")
		Eventually(func() int { return len(r.heldRecords(ctx)) }).WithTimeout(2 * time.Minute).Should(Equal(vanished - deleted))
		release(ctx)

		By("checking which objects exist")
		Eventually(func() []string { return keys(r.found(ctx)) }).WithTimeout(2 * time.Minute).Should(ConsistOf(r.wanted(vanished, 2)))
		last := r.found(ctx)
		Expect(last["shared=1"]).To(Equal(first["shared=1"]), "other Works needed it throughout")
		for work := vanished; work < r.works; work++ {
			before, after := fmt.Sprintf("stays-%d=1", work), fmt.Sprintf("stays-%d=2", work)
			Expect(last[after]).To(Equal(first[before]), "object stays-%d was never deleted", work)
		}
		Expect(expect.ConfigMap(ctx, memberClient, r.namespace, "a").UID).To(Equal(foreign.UID), "the object of another client")
		for work := vanished; work < r.works; work++ {
			Eventually(reported(ctx, r.name(work))).Should(beDone())
		}
		records := r.records(ctx)
		Expect(records).To(HaveLen(r.works - vanished))
		for _, owner := range expect.ConfigMap(ctx, memberClient, r.namespace, "shared").OwnerReferences {
			Expect(records).To(ContainElement(owner.Name))
		}

		By("checking which objects were ever deleted")
		Eventually(seen.Names).Should(ContainElement(fmt.Sprintf("only-%d-in-1", r.works-1)), "the watch sees deletions")
		Expect(r.wrongly(seen.Names(), vanished)).To(BeEmpty())
	})

	It("fails if an object was deleted that must stay", func() {
		r := rollout{works: 200}
		Expect(r.wrongly([]string{"only-7-in-1", "only-150-in-1", "stays-29", "only-29-in-2"}, 30)).To(BeEmpty())
		for _, name := range []string{"stays-30", "only-150-in-2", "shared", "a", "kube-root-ca.crt"} {
			Expect(r.wrongly([]string{"stays-1", name}, 30)).To(HaveExactElements(name))
		}
	})
})

// wrongly lists objects that should not have been deleted, from all deletions, in a rollout from
// version 1 to 2 after which Works with an index below from were removed.
func (r rollout) wrongly(deleted []string, from int) []string {
	right := map[string]bool{}
	for work := range r.works {
		right[fmt.Sprintf("only-%d-in-1", work)] = true
		if work < from {
			right[fmt.Sprintf("stays-%d", work)], right[fmt.Sprintf("only-%d-in-2", work)] = true, true
		}
	}
	return slices.DeleteFunc(slices.Clone(deleted), func(name string) bool { return right[name] })
}

// records returns the names of the rollout's AppliedWorks.
func (r rollout) records(ctx context.Context) []string {
	GinkgoHelper()
	list := &placementv1beta1.AppliedWorkList{}
	Expect(memberClient.List(ctx, list)).To(Succeed())
	var names []string
	for _, record := range list.Items {
		if strings.HasPrefix(record.Name, r.namespace+"-") {
			names = append(names, record.Name)
		}
	}
	return names
}

// heldRecords returns those of Works with retained objects.
func (r rollout) heldRecords(ctx context.Context) []string {
	GinkgoHelper()
	list := &placementv1beta1.AppliedWorkList{}
	Expect(memberClient.List(ctx, list)).To(Succeed())
	var held []string
	for i := range list.Items {
		if record := &list.Items[i]; strings.HasPrefix(record.Name, r.namespace+"-") && record.Annotations[retention.Annotation] != "" {
			held = append(held, record.Name)
		}
	}
	return held
}

// remove deletes a Work, or makes it disappear without its finalizer.
func (r rollout) remove(ctx context.Context, work int, vanish bool) error {
	object := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: r.name(work)}}
	if vanish {
		if err := hubClient.Patch(ctx, object, expect.MergePatch(`{"metadata":{"finalizers":null}}`)); err != nil {
			return err
		}
	}
	return client.IgnoreNotFound(hubClient.Delete(ctx, object))
}

func (r rollout) removeAll(ctx context.Context) {
	GinkgoHelper()
	Expect(r.each(0, r.works, func(work int) error { return r.remove(ctx, work, false) })).To(Succeed())
	for work := range r.works {
		object := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: r.name(work)}}
		Eventually(expect.Gone(ctx, hubClient, object)).Should(BeTrue())
	}
}

// agentKubeconfigs writes the kubeconfigs of an agent that reaches its member over a link.
func agentKubeconfigs(link *env.Link) string {
	GinkgoHelper()
	hubPath, err := hub.Kubeconfig(agentUser)
	Expect(err).NotTo(HaveOccurred())
	over := filepath.Join(GinkgoT().TempDir(), "member.kubeconfig")
	Expect(env.WriteKubeconfig(over, link.Config(member.Config()))).To(Succeed())
	return hubPath + "," + over
}
