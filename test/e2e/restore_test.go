// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"

	"fleetgate.io/fleetgate/test/support/env"
)

// members are the members of the launcher's fleet.
func members() []string { return []string{"member-1", "member-2"} }

// deletions are all deletions on members that watches reported.
type deletions struct {
	mu   sync.Mutex // guards seen
	seen []string
}

func (d *deletions) all() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.seen)
}

// watchDeletions watches placed kinds on members until the spec ends.
func (l *launched) watchDeletions(ctx context.Context) *deletions {
	GinkgoHelper()
	d := &deletions{}
	for _, name := range members() {
		cluster, err := env.Load(filepath.Join(l.dir, name))
		Expect(err).NotTo(HaveOccurred())
		objects, err := metadata.NewForConfig(cluster.Config())
		Expect(err).NotTo(HaveOccurred())
		for _, resource := range []schema.GroupVersionResource{
			{Version: "v1", Resource: "namespaces"}, {Version: "v1", Resource: "configmaps"}, {Version: "v1", Resource: "services"}, {Version: "v1", Resource: "pods"},
			{Version: "v1", Resource: "serviceaccounts"}, {Group: "work.open-cluster-management.io", Version: "v1", Resource: "appliedmanifestworks"},
			{Group: "apps", Version: "v1", Resource: "deployments"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
			{Group: "placement.kubernetes-fleet.io", Version: "v1beta1", Resource: "appliedworks"},
		} {
			w, err := objects.Resource(resource).Watch(ctx, metav1.ListOptions{})
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(w.Stop)
			go d.note(name+" "+resource.Resource, w)
		}
	}
	return d
}

func (d *deletions) note(where string, w watch.Interface) {
	for event := range w.ResultChan() {
		object, is := event.Object.(*metav1.PartialObjectMetadata)
		if !is || event.Type != watch.Deleted && object.DeletionTimestamp == nil {
			continue
		}
		d.mu.Lock()
		d.seen = append(d.seen, fmt.Sprintf("%s %s/%s", where, object.Namespace, object.Name))
		d.mu.Unlock()
	}
}

// apply applies a manifest on the hub as user admin.
func (l *launched) apply(ctx context.Context, manifest string) {
	GinkgoHelper()
	Eventually(func() error {
		_, err := l.fleet.Kubectl(ctx, l.fleet.HubKubeconfig(), manifest, "apply", "--filename=-")
		return err
	}).Should(Succeed())
}

// held returns what a member reports about objects unknown to its hub.
func (l *launched) held(ctx context.Context, member string) func() string {
	return l.condition(ctx, member, "PlacementsRetained")
}

// heldMetric returns their number by the metric of the member's agent.
func (l *launched) heldMetric(ctx context.Context, member string) func() string {
	return func() string {
		arguments, err := argumentsOf(l.process(member + "-agent").PID())
		Expect(err).NotTo(HaveOccurred())
		for _, argument := range arguments {
			if address, is := strings.CutPrefix(argument, "--metrics-bind-address="); is {
				_, after, _ := strings.Cut(get(ctx, "http://"+address+"/metrics"), "\nfleetgate_agent_retained_objects ")
				value, _, _ := strings.Cut(after, "\n")
				return value
			}
		}
		return "the agent has no port for metrics"
	}
}

// restartGateway restarts the gateway with these additional flags.
func (l *launched) restartGateway(ctx context.Context, flags string) {
	GinkgoHelper()
	out, err := l.launcher(ctx, "-gateway-flags="+flags, "up")
	Expect(err).NotTo(HaveOccurred(), out)
}

// keepAsking sends requests to all members through the hub until the spec ends. The returned
// function summarizes them.
func (l *launched) keepAsking(ctx context.Context) func() string {
	ctx, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	var asked, failed atomic.Int64
	for _, member := range members() {
		group.Go(func() {
			for ctx.Err() == nil {
				_, err := l.fleet.Kubectl(ctx, l.fleet.MemberKubeconfig(member), "", "get", "namespace", "default", "--request-timeout=5s")
				if asked.Add(1); err != nil && ctx.Err() == nil {
					failed.Add(1)
				}
			}
		})
	}
	end := func() string {
		stop()
		group.Wait()
		return fmt.Sprintf("%d requests, %d failed, some while the gateway restarted", asked.Load(), failed.Load())
	}
	DeferCleanup(func() { _ = end() })
	return end
}

// condition returns a condition of a MemberCluster, or an empty string.
func (l *launched) condition(ctx context.Context, member, kind string) func() string {
	return func() string {
		out, err := l.fleet.Kubectl(ctx, l.breakGlass("hub"), "", "get", "membercluster", member,
			`--output=jsonpath={range .status.conditions[?(@.type=="`+kind+`")]}{.status} {.reason}: {.message}{end}`)
		if err != nil {
			return err.Error()
		}
		return out
	}
}

// workCondition returns a condition of a member's ManifestWork, or an empty string.
func (l *launched) workCondition(ctx context.Context, member, name, kind string) func() string {
	return func() string {
		return l.hub(ctx, "get", "manifestwork", name, "--namespace="+member, `--output=jsonpath={range .status.conditions[?(@.type=="`+kind+`")]}{.status} {.reason}: {.message}{end}`)
	}
}

// on returns a field of an object on a member, or the error.
func (l *launched) on(ctx context.Context, member, field string, object ...string) func() string {
	return func() string {
		out, err := l.fleet.Kubectl(ctx, l.breakGlass(member), "", append([]string{"get", "--output=jsonpath={" + field + "}"}, object...)...)
		if err != nil {
			return err.Error()
		}
		return out
	}
}

const placedSince = `
{apiVersion: v1, kind: Namespace, metadata: {name: since}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: since, name: one}, data: {text: placed since}}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: since}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: since}]
  policy: {placementType: PickAll, tolerations: [{key: maintenance, operator: Exists}]}
`

// brought is delivered to each member in addition to placements: a ManifestWork with two
// ConfigMaps, of which the backup has one, another ManifestWork, and an account, both unknown to
// the backup.
const (
	broughtBefore = `
apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata: {name: lasting, namespace: %[1]s}
spec:
  workload:
    manifests:
    - {apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: lasting}, data: {text: as ever}}
`
	broughtSince = broughtBefore + `
    - {apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: grown}, data: {text: brought since}}
---
apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata: {name: work-since, namespace: %[1]s}
spec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: work-since}, data: {text: brought since}}]}}
---
apiVersion: authentication.open-cluster-management.io/v1beta1
kind: ManagedServiceAccount
metadata: {name: since, namespace: fleet-member-%[1]s}
spec: {rotation: {validity: 24h0m0s}}
`
)

// bring delivers to each member a manifest with the member's name.
func (l *launched) bring(ctx context.Context, manifest string) {
	GinkgoHelper()
	for _, member := range members() {
		l.apply(ctx, fmt.Sprintf(manifest, member))
	}
}

// account returns the name of a ManagedServiceAccount's account on a member.
func account(name string) []string {
	return []string{"serviceaccount", name, "--namespace=open-cluster-management-managed-serviceaccount"}
}

const changedSince = `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: later}, data: {text: added since}}`

const (
	placedAgain  = `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: again}, data: {text: added again}}`
	changedByGit = `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: later}, data: {text: changed by Git}}`
)

// changeAfterBackup makes the changes on the hub that the backup does not have.
func (l *launched) changeAfterBackup(ctx context.Context) {
	GinkgoHelper()
	l.apply(ctx, placedSince)
	l.apply(ctx, changedSince)
	l.bring(ctx, broughtSince)
	l.hub(ctx, "patch", "configmap", "web", "--namespace=shop", "--type=merge", `--patch={"data":{"greeting":"changed since"}}`)
	l.hub(ctx, "delete", "clusterresourceplacement", "admins")
	for _, member := range members() {
		Eventually(l.on(ctx, member, ".data.text", "configmap", "one", "--namespace=since")).Should(Equal("placed since"))
		Eventually(l.on(ctx, member, ".data.text", "configmap", "later", "--namespace=shop")).Should(Equal("added since"))
		Eventually(l.on(ctx, member, ".data.greeting", "configmap", "web", "--namespace=shop")).Should(Equal("changed since"))
		Eventually(l.on(ctx, member, ".metadata.name", "clusterrolebinding", "fleetgate-admins")).Should(ContainSubstring("NotFound"))
		Eventually(l.on(ctx, member, ".data.text", "configmap", "grown")).Should(Equal("brought since"))
		Eventually(l.on(ctx, member, ".data.text", "configmap", "work-since")).Should(Equal("brought since"))
		Eventually(l.on(ctx, member, ".metadata.name", account("since")...)).Should(Equal("since"))
	}
}

// These specs follow the steps and results of docs/how-to/restore.md.
var _ = Describe("Disaster recovery of a hub", Ordered, func() {
	var l *launched

	BeforeAll(func(ctx context.Context) {
		l = newFolder()
		out, err := l.launcher(ctx, "-ocm", "up")
		Expect(err).NotTo(HaveOccurred(), out)
	})

	It("moves its agents to another URL with another CA, without a restart or a new registration", func(ctx SpecContext) {
		hub, err := env.Load(filepath.Join(l.dir, "hub"))
		Expect(err).NotTo(HaveOccurred())
		other, err := env.Load(filepath.Join(l.dir, "member-1"))
		Expect(err).NotTo(HaveOccurred())
		bundle := filepath.Join(l.dir, "next-ca.pem")
		Expect(os.WriteFile(bundle, append(slices.Clone(other.CABundle), hub.CABundle...), 0o600)).To(Succeed())
		agents := map[string]int{}
		for _, member := range members() {
			agents[member] = l.process(member + "-agent").PID()
		}
		registrations := l.hub(ctx, "get", "clusterregistrations", "--all-namespaces", "--output=jsonpath={.items[*].metadata.uid}")
		asked := l.keepAsking(ctx)

		next := strings.Replace(hub.URL, "127.0.0.1", "localhost", 1)
		l.restartGateway(ctx, "--move-agents --hub-url="+next+" --hub-ca-file="+bundle)
		for _, member := range members() {
			Eventually(l.on(ctx, member, ".data.server", "secret", "agent-credential", "--namespace=fleet-system")).Should(Equal(base64.StdEncoding.EncodeToString([]byte(next))))
			Eventually(l.condition(ctx, member, "HubURLReachable")).Should(HavePrefix("True HubURLReachable: the agent uses " + next))
		}
		Eventually(func() error { return l.fleet.AwaitAnswers(ctx, settle) }).Should(Succeed())

		By("announcing a wrong URL")
		l.restartGateway(ctx, "--move-agents --hub-url=https://localhost:1 --hub-ca-file="+bundle)
		for _, member := range members() {
			Eventually(l.condition(ctx, member, "HubURLReachable")).Should(And(HavePrefix("False HubURLUnreachable: the agent stays with "+next), ContainSubstring("https://localhost:1 does not answer")))
		}
		AddReportEntry("what a member says of it", l.condition(ctx, "member-1", "HubURLReachable")())
		Eventually(func() error { return l.fleet.AwaitAnswers(ctx, settle) }).Should(Succeed())
		l.restartGateway(ctx, "")
		for _, member := range members() {
			Eventually(l.condition(ctx, member, "HubURLReachable")).Should(BeEmpty())
			Expect(l.process(member+"-agent").PID()).To(Equal(agents[member]), "the agent was not restarted")
		}
		Expect(l.hub(ctx, "get", "clusterregistrations", "--all-namespaces", "--output=jsonpath={.items[*].metadata.uid}")).To(Equal(registrations))
		AddReportEntry("requests to members meanwhile", asked())
	}, NodeTimeout(5*time.Minute))

	It("removes nothing from its members after a restore from a backup, and continues", func(ctx SpecContext) {
		hub, err := env.Load(filepath.Join(l.dir, "hub"))
		Expect(err).NotTo(HaveOccurred())
		backup := filepath.Join(GinkgoT().TempDir(), "etcd")
		l.bring(ctx, broughtBefore)
		for _, member := range members() {
			Eventually(l.on(ctx, member, ".data.text", "configmap", "lasting")).Should(Equal("as ever"))
		}
		Expect(hub.Backup(ctx, backup)).To(Succeed())
		l.changeAfterBackup(ctx)
		uids := func() (all []string) {
			for _, member := range members() {
				all = append(all, l.on(ctx, member, ".metadata.uid", "configmap", "one", "--namespace=since")(),
					l.on(ctx, member, ".metadata.uid", "configmap", "later", "--namespace=shop")(),
					l.on(ctx, member, ".items[*].metadata.uid", "pods", "--namespace=shop")(),
					l.on(ctx, member, ".metadata.uid", "configmap", "grown")(), l.on(ctx, member, ".metadata.uid", "configmap", "work-since")(),
					l.on(ctx, member, ".metadata.uid", account("since")...)())
			}
			return all
		}
		before := uids()
		seen := l.watchDeletions(ctx)

		By("restoring the backup")
		gateway := l.process("gateway")
		Expect(gateway.Stop(ctx)).To(Succeed())
		Expect(hub.Restore(ctx, backup)).To(Succeed())
		Expect(gateway.Start(ctx)).To(Succeed())
		for _, member := range members() {
			Eventually(l.held(ctx, member)).Should(HavePrefix("True HubRestored: the hub was restored to an earlier state, or is another hub: the member retains 6 objects of 5 ManagedServiceAccounts and ManifestWorks and Works, one of them %q,", "lasting"))
			Eventually(l.on(ctx, member, ".data.greeting", "configmap", "web", "--namespace=shop")).Should(Equal("Welcome to the shop"), "the change is reverted")
			Eventually(l.on(ctx, member, ".metadata.name", "clusterrolebinding", "fleetgate-admins")).Should(Equal("fleetgate-admins"), "the deleted object is re-created")
		}
		for _, member := range members() {
			Eventually(l.heldMetric(ctx, member)).Should(Equal("6"))
			Eventually(l.workCondition(ctx, member, "lasting", "Retained")).Should(HavePrefix("True HubRestored"))
		}
		AddReportEntry("what the member says", l.held(ctx, "member-1")())
		report, err := l.fleet.Run(ctx, "gateway", "", "diagnose", "--kubeconfig="+l.fleet.HubKubeconfig())
		Expect(err).NotTo(HaveOccurred())
		Expect(report).To(ContainSubstring("HubRestored: the hub was restored to an earlier state, or is another hub"))

		By("applying from Git what was applied since the backup")
		l.apply(ctx, placedSince)
		l.apply(ctx, changedSince)
		l.bring(ctx, broughtSince)
		for _, member := range members() {
			Eventually(l.held(ctx, member)).Should(HavePrefix("False NothingRetained"))
		}
		Expect(uids()).To(Equal(before), "nothing was re-created, and no Pod restarted")
		Eventually(func() string {
			return l.hub(ctx, "get", "clusterresourceplacements", `--output=jsonpath={.items[*].status.conditions[?(@.type=="ClusterResourcePlacementAvailable")].status}`)
		}).Should(Equal("True True True"))
		Expect(seen.all()).To(BeEmpty(), "deletions on members")

		By("deleting unwanted resources through the hub")
		l.hub(ctx, "delete", "clusterresourceplacement", "since", "--wait=false")
		for _, member := range members() {
			l.hub(ctx, "delete", "managedserviceaccount", "since", "--namespace=fleet-member-"+member)
			l.hub(ctx, "delete", "manifestwork", "work-since", "--namespace="+member, "--wait=false")
			l.apply(ctx, fmt.Sprintf(broughtBefore, member))
			Eventually(l.on(ctx, member, ".metadata.name", account("since")...)).Should(ContainSubstring("NotFound"))
			Eventually(l.on(ctx, member, ".metadata.name", "configmap", "work-since")).Should(ContainSubstring("NotFound"))
			Eventually(l.on(ctx, member, ".metadata.name", "configmap", "grown")).Should(ContainSubstring("NotFound"))
			Eventually(l.on(ctx, member, ".metadata.name", "configmap", "one", "--namespace=since")).Should(ContainSubstring("NotFound"))
			Eventually(l.on(ctx, member, ".metadata.name", "appliedwork", "since-work")).Should(ContainSubstring("NotFound"))
		}
		Expect(seen.all()).NotTo(BeEmpty(), "the watches see deletions")
	}, NodeTimeout(5*time.Minute))

	It("removes nothing also when agents were stopped and Git was faster, until resources are released on all members at once", func(ctx SpecContext) {
		hub, err := env.Load(filepath.Join(l.dir, "hub"))
		Expect(err).NotTo(HaveOccurred())
		backup := filepath.Join(GinkgoT().TempDir(), "etcd")
		Expect(hub.Backup(ctx, backup)).To(Succeed())
		l.apply(ctx, placedAgain)
		l.bring(ctx, broughtSince)
		agents := map[string]*env.Process{}
		for _, member := range members() {
			agents[member] = l.process(member + "-agent")
			Eventually(l.on(ctx, member, ".data.text", "configmap", "again", "--namespace=shop")).Should(Equal("added again"))
			Eventually(l.on(ctx, member, ".data.text", "configmap", "grown")).Should(Equal("brought since"))
			Eventually(l.on(ctx, member, ".data.text", "configmap", "work-since")).Should(Equal("brought since"))
			Eventually(l.on(ctx, member, ".metadata.name", account("since")...)).Should(Equal("since"))
			Expect(agents[member].Stop(ctx)).To(Succeed())
		}
		seen := l.watchDeletions(ctx)
		gateway := l.process("gateway")
		Expect(gateway.Stop(ctx)).To(Succeed())
		Expect(hub.Restore(ctx, backup)).To(Succeed())
		Expect(gateway.Start(ctx)).To(Succeed())
		l.apply(ctx, changedByGit)
		// The Work has the generation that its agent saw, with other contents.
		Eventually(func() string {
			return l.hub(ctx, "get", "works", "--all-namespaces", "--output=jsonpath={.items[*].spec.workload.manifests[*].data.text}")
		}).Should(ContainSubstring("changed by Git"))
		for _, member := range members() {
			Expect(agents[member].Start(ctx)).To(Succeed())
		}
		for _, member := range members() {
			Eventually(l.on(ctx, member, ".data.text", "configmap", "later", "--namespace=shop")).Should(Equal("changed by Git"))
			Eventually(l.held(ctx, member)).Should(HavePrefix("True HubRestored: the hub was restored to an earlier state, or is another hub: the member retains 4 objects of 4 ManagedServiceAccounts and ManifestWorks and Works"))
			Eventually(l.heldMetric(ctx, member)).Should(Equal("4"))
			Expect(l.on(ctx, member, ".data.text", "configmap", "again", "--namespace=shop")()).To(Equal("added again"))
		}
		Expect(seen.all()).To(BeEmpty(), "deletions on members")

		By("releasing the resources on all members at once")
		l.hub(ctx, "annotate", "memberclusters", "--all", "--overwrite", "fleetgate.io/release="+time.Now().UTC().Format(time.RFC3339))
		var ids []string
		for _, member := range members() {
			Eventually(l.held(ctx, member)).Should(HaveSuffix("(its present value contains none of these ids)"))
			ids = append(ids, regexp.MustCompile(`release=([0-9a-f,]+)`).FindStringSubmatch(l.held(ctx, member)())[1])
		}
		Expect(seen.all()).To(BeEmpty(), "deletions on members")
		l.hub(ctx, "annotate", "memberclusters", "--all", "--overwrite", "fleetgate.io/release="+strings.Join(ids, ","))
		for _, member := range members() {
			Eventually(l.on(ctx, member, ".metadata.name", "configmap", "again", "--namespace=shop")).Should(ContainSubstring("NotFound"))
			for _, name := range []string{"grown", "work-since"} {
				Eventually(l.on(ctx, member, ".metadata.name", "configmap", name)).Should(ContainSubstring("NotFound"))
			}
			Eventually(l.on(ctx, member, ".metadata.name", account("since")...)).Should(ContainSubstring("NotFound"))
			Eventually(l.held(ctx, member)).Should(HavePrefix("False NothingRetained"))
			Eventually(l.heldMetric(ctx, member)).Should(Equal("0"))
		}
	}, NodeTimeout(5*time.Minute))

	It("readmits its members by their keys after it was lost and rebuilt from Git, with one command", func(ctx SpecContext) {
		l.buildAnew(ctx)
	}, NodeTimeout(5*time.Minute))
})
