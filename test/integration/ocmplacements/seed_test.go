// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ocmplacements_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
	"fleetgate.io/fleetgate/test/support/program"
)

// admin runs kubectl as an administrator and returns the output.
func admin(ctx context.Context, stdin string, args ...string) string {
	GinkgoHelper()
	out, err := program.Kubectl(ctx, hub, stdin, args...)
	Expect(err).NotTo(HaveOccurred(), out)
	return out
}

// masked replaces what differs between two runs.
func masked(printed string) string {
	for pattern, by := range map[string]string{
		`uid: [0-9a-f-]{36}`: "uid: UID", `resourceVersion: "\d+"`: "resourceVersion: RV", `creationTimestamp: "[^"]+"`: "creationTimestamp: TIME",
	} {
		printed = regexp.MustCompile(pattern).ReplaceAllString(printed, by)
	}
	return printed
}

// twoClusters are the clusters of the documents, in set default, which is bound to a namespace.
func twoClusters(ctx context.Context, namespace string) *bed {
	GinkgoHelper()
	b := &bed{namespace: "default"}
	b.join(ctx, "cluster1")
	b.join(ctx, "cluster2")
	b.set(ctx, "default")
	b.namespace = namespace
	expect.CreatedForSpec(ctx, hubClient, b.binding("default"))
	return b
}

func placementOf(namespace, name string) *clusterv1beta1.Placement {
	return &clusterv1beta1.Placement{ObjectMeta: build.In(namespace, name)}
}

// createWork does what clusteradm create work does with --placement and --overwrite: one
// ManifestWork per decided cluster, and none of that name for others.
func createWork(ctx context.Context, name string, placement *clusterv1beta1.Placement) {
	GinkgoHelper()
	wanted := sets.New(chosen(ctx, placement)(Default)...)
	var works workv1.ManifestWorkList
	Expect(hubClient.List(ctx, &works)).To(Succeed())
	for i := range works.Items {
		if work := &works.Items[i]; work.Name == name && !wanted.Has(work.Namespace) {
			Expect(hubClient.Delete(ctx, work)).To(Succeed())
		}
	}
	for cluster := range wanted {
		work := &workv1.ManifestWork{ObjectMeta: build.In(cluster, name)}
		work.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{
			Raw: []byte(`{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": "default", "name": "my-sa"}}`),
		}}}
		Expect(client.IgnoreAlreadyExists(hubClient.Create(ctx, work))).To(Succeed())
	}
}

// namespacesOfClusters creates the namespaces that registration would create.
func namespacesOfClusters(ctx context.Context) {
	GinkgoHelper()
	for _, name := range []string{"cluster1", "cluster2"} {
		namespace := &corev1.Namespace{ObjectMeta: build.Named(name)}
		Expect(client.IgnoreAlreadyExists(hubClient.Create(ctx, namespace))).To(Succeed())
	}
}

// table returns what clusteradm get placements prints for a namespace with one Placement: its first
// condition, without which clusteradm panics, and the decided clusters.
func table(ctx context.Context, namespace string) func(Gomega) string {
	return func(g Gomega) string {
		var placements clusterv1beta1.PlacementList
		g.Expect(hubClient.List(ctx, &placements, client.InNamespace(namespace))).To(Succeed())
		g.Expect(placements.Items).To(HaveLen(1))
		p := &placements.Items[0]
		g.Expect(p.Status.Conditions).NotTo(BeEmpty())
		first := p.Status.Conditions[0]
		return fmt.Sprint("NAME STATUS REASON SELETEDCLUSTERS\n", p.Name, " ", first.Status, " ", first.Reason, " ", chosen(ctx, p)(g))
	}
}

// noGarbage deletes what the garbage collector would delete later, because the next spec uses the
// same names.
func noGarbage(of *clusterv1beta1.Placement) {
	GinkgoHelper()
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(hubClient.Delete(ctx, of))).To(Succeed())
		Expect(hubClient.DeleteAllOf(ctx, &clusterv1beta1.PlacementDecision{}, client.InNamespace(of.Namespace))).To(Succeed())
	})
}

var _ = Describe("The documents of Open Cluster Management", Serial, func() {
	It("distribute a workload to the clusters of a Placement", func(ctx SpecContext) {
		twoClusters(ctx, "default")
		chosenBy := placementOf("default", "placement1")
		noGarbage(chosenBy)
		admin(ctx, `
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata:
  name: placement1
  namespace: default
spec:
  numberOfClusters: 2
  clusterSets:
    - default
`, "apply", "-f", "-")
		Eventually(chosen(ctx, chosenBy)).Should(Equal([]string{"cluster1", "cluster2"}))
		printed := admin(ctx, "", "get", "placementdecision", "-n", "default", "-l", "cluster.open-cluster-management.io/placement=placement1", "-oyaml")
		Expect(masked(printed)).To(Equal(`apiVersion: v1
items:
- apiVersion: cluster.open-cluster-management.io/v1beta1
  kind: PlacementDecision
  metadata:
    creationTimestamp: TIME
    generation: 1
    labels:
      cluster.open-cluster-management.io/decision-group-index: "0"
      cluster.open-cluster-management.io/decision-group-name: ""
      cluster.open-cluster-management.io/placement: placement1
    name: placement1-decision-1
    namespace: default
    ownerReferences:
    - apiVersion: cluster.open-cluster-management.io/v1beta1
      blockOwnerDeletion: true
      controller: true
      kind: Placement
      name: placement1
      uid: UID
    resourceVersion: RV
    uid: UID
  status:
    decisions:
    - clusterName: cluster1
      reason: ""
    - clusterName: cluster2
      reason: ""
kind: List
metadata:
  resourceVersion: ""
`))
		Expect(admin(ctx, "", "get", "placements", "-n", "default")).To(Equal(
			"NAME         SUCCEEDED   REASON                  SELECTEDCLUSTERS\nplacement1   True        AllDecisionsScheduled   2\n"))
		Expect(admin(ctx, "", "get", "placementdecisions", "-n", "default", "--no-headers", "-o", "custom-columns=NAME:.metadata.name")).To(Equal("placement1-decision-1\n"))

		By("delivering a work to both clusters")
		serve(hub, "manifestworks.work.open-cluster-management.io")
		namespacesOfClusters(ctx)
		createWork(ctx, "my-first-work", chosenBy)
		Expect(admin(ctx, "", "get", "manifestwork", "-A")).To(MatchRegexp(`^NAMESPACE +NAME +AGE\ncluster1 +my-first-work +\d+s\ncluster2 +my-first-work +\d+s\n$`))

		By("selecting one cluster")
		Expect(admin(ctx, "", "patch", "placement", "placement1", "-n", "default", "--patch", `{"spec": {"clusterSets": ["default"],"numberOfClusters": 1}}`, "--type=merge")).
			To(Equal("placement.cluster.open-cluster-management.io/placement1 patched\n"))
		Eventually(chosen(ctx, chosenBy)).Should(Equal([]string{"cluster1"}))
		createWork(ctx, "my-first-work", chosenBy)
		Expect(admin(ctx, "", "get", "manifestwork", "-A")).To(MatchRegexp(`^NAMESPACE +NAME +AGE\ncluster1 +my-first-work +\d+s\n$`))
	})

	It("extend scheduling with custom scores and report them in events", func(ctx SpecContext) {
		twoClusters(ctx, "default")
		namespacesOfClusters(ctx)
		for _, name := range []string{"cluster1", "cluster2"} {
			admin(ctx, `
apiVersion: cluster.open-cluster-management.io/v1alpha1
kind: AddOnPlacementScore
metadata:
  name: resource-usage-score
  namespace: `+name+"\n", "apply", "-f", "-")
			admin(ctx, "", "patch", "addonplacementscore", "resource-usage-score", "-n", name, "--subresource=status", "--type=merge", "--patch",
				`{"status": {"scores": [{"name": "cpuAvailable", "value": 12}, {"name": "memAvailable", "value": 4}]}}`)
		}
		chosenBy := placementOf("default", "placement1")
		noGarbage(chosenBy)
		admin(ctx, `
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata:
  name: placement1
  namespace: default
spec:
  numberOfClusters: 1
  clusterSets:
    - default
  prioritizerPolicy:
    mode: Exact
    configurations:
      - scoreCoordinate:
          type: AddOn
          addOn:
            resourceName: resource-usage-score
            scoreName: cpuAvailable
        weight: 1
`, "apply", "-f", "-")
		Eventually(chosen(ctx, chosenBy)).Should(Equal([]string{"cluster1"}))
		Expect(admin(ctx, "", "describe", "placementdecision", "-n", "default")).To(ContainSubstring("Status:\n  Decisions:\n    Cluster Name:  cluster1\n    Reason:        \n"))
		Expect(admin(ctx, "", "get", "addonplacementscore", "-A")).To(And(
			MatchRegexp(`^NAMESPACE +NAME +AGE\n`),
			MatchRegexp(`(?m)^cluster1 +resource-usage-score +\d+s$`), MatchRegexp(`(?m)^cluster2 +resource-usage-score +\d+s$`)))
		Expect(admin(ctx, "", "get", "addonplacementscore", "-A", `-o=jsonpath={range .items[?(@.metadata.name=="resource-usage-score")]}{.metadata.namespace}{"\t"}{.status.scores}{"\n"}{end}`)).To(Equal(
			"cluster1\t[{\"name\":\"cpuAvailable\",\"value\":12},{\"name\":\"memAvailable\",\"value\":4}]\ncluster2\t[{\"name\":\"cpuAvailable\",\"value\":12},{\"name\":\"memAvailable\",\"value\":4}]\n"))
		for _, line := range []string{
			`Normal +DecisionCreate +\S+ +placementController +Decision placement1-decision-1 is created with placement placement1 in namespace default\n`,
			`Normal +DecisionUpdate +\S+ +placementController +Decision placement1-decision-1 is updated with placement placement1 in namespace default\n`,
			`Normal +ScoreUpdate +\S+ +placementController +cluster1:12 cluster2:12 ?\n`,
		} {
			Eventually(func() string { return admin(ctx, "", "describe", "placement", "-n", "default", "placement1") }).Should(MatchRegexp(line))
		}
		By("adding a blank after each score")
		Eventually(func(g Gomega) []string {
			var events eventsv1.EventList
			g.Expect(hubClient.List(ctx, &events, client.InNamespace("default"))).To(Succeed())
			var notes []string
			for _, event := range events.Items {
				if event.Reason == "ScoreUpdate" && event.Regarding.Name == "placement1" {
					notes = append(notes, event.Note)
				}
			}
			return notes
		}).Should(ContainElement("cluster1:12 cluster2:12 "))
		By("rejecting a score out of range")
		broken := &unstructured.Unstructured{}
		broken.SetAPIVersion("cluster.open-cluster-management.io/v1alpha1")
		broken.SetKind("AddOnPlacementScore")
		broken.SetNamespace("cluster1")
		broken.SetName("resource-usage-score")
		err := hubClient.Status().Patch(ctx, broken, expect.MergePatch(`{"status": {"scores": [{"name": "cpuAvailable", "value": 101}]}}`))
		Expect(expect.StatusOf(err).Code).To(BeEquivalentTo(422))
	})

	It("let Argo CD read decisions with get and list only, and move applications from an unavailable or drained cluster", func(ctx SpecContext) {
		namespace := &corev1.Namespace{ObjectMeta: build.Named("argocd")}
		Expect(client.IgnoreAlreadyExists(hubClient.Create(ctx, namespace))).To(Succeed())
		twoClusters(ctx, "argocd")
		chosenBy := placementOf("argocd", "guestbook-app-placement")
		noGarbage(chosenBy)
		admin(ctx, `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: ocm-placement-consumer
  namespace: argocd
rules:
- apiGroups: ["cluster.open-cluster-management.io"]
  resources: ["placementdecisions"]
  verbs: ["get", "list"]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: ocm-placement-consumer:argocd
  namespace: argocd
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: ocm-placement-consumer
subjects:
- kind: ServiceAccount
  namespace: argocd
  name: argocd-applicationset-controller
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata:
  name: guestbook-app-placement
  namespace: argocd
spec:
  numberOfClusters: 10
`, "apply", "-f", "-")
		// This is what the generator does: it lists by label and reads one field of each element.
		generated := func() []string {
			out, err := program.KubectlAs(ctx, hub, "system:serviceaccount:argocd:argocd-applicationset-controller", nil, "", "get", "placementdecisions", "-n", "argocd",
				"-l", "cluster.open-cluster-management.io/placement=guestbook-app-placement", "-o", "jsonpath={.items[*].status.decisions[*].clusterName}")
			Expect(err).NotTo(HaveOccurred(), out)
			return strings.Fields(out)
		}
		Eventually(generated).Should(Equal([]string{"cluster1", "cluster2"}))
		Eventually(said(ctx, chosenBy)).Should(HaveExactElements(fine, "PlacementSatisfied=False NotAllDecisionsScheduled: 8 cluster decisions unscheduled: 2 of 2 clusters fit"))

		admin(ctx, "", "patch", "placement", "-n", "argocd", "guestbook-app-placement", "--patch", `{"spec": {"numberOfClusters": 1}}`, "--type=merge")
		Eventually(generated).Should(Equal([]string{"cluster1"}))
		printed := "NAME STATUS REASON SELETEDCLUSTERS\nguestbook-app-placement False Succeedconfigured "
		Eventually(table(ctx, "argocd")).Should(Equal(printed + "[cluster1]"))
		By("making cluster1 unreachable")
		cluster(ctx, "cluster1", func(c *clusterv1.ManagedCluster) {
			c.Spec.Taints = []clusterv1.Taint{{Key: clusterv1.TaintUnreachable, Effect: clusterv1.TaintEffectNoSelect}}
		})
		Eventually(generated).Should(Equal([]string{"cluster2"}))
		Eventually(table(ctx, "argocd")).Should(Equal(printed + "[cluster2]"))
		By("reconnecting it, which moves nothing")
		Expect(writes(func() { cluster(ctx, "cluster1", untaint) })).To(BeZero())
		Expect(generated()).To(Equal([]string{"cluster2"}))
		By("draining cluster2")
		Expect(admin(ctx, "", "patch", "managedcluster", "cluster2", "-p", `{"spec":{"taints":[{"effect":"NoSelect","key":"maintenance"}]}}`, "--type=merge")).
			To(Equal("managedcluster.cluster.open-cluster-management.io/cluster2 patched\n"))
		Eventually(generated).Should(Equal([]string{"cluster1"}))
		Eventually(table(ctx, "argocd")).Should(Equal(printed + "[cluster1]"))
		Expect(admin(ctx, "", "get", "placement", "-n", "argocd", "guestbook-app-placement", "--no-headers")).To(MatchRegexp(`^guestbook-app-placement +True +AllDecisionsScheduled +1\n$`))
	})
})
