// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork_test

import (
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/test/support/expect"
)

// firstWork is the ManifestWork of OCM's first scenario.
const firstWork = `
apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata:
  namespace: cluster1
  name: my-first-work
spec:
  workload:
    manifests:
    - apiVersion: v1
      kind: ServiceAccount
      metadata:
        namespace: default
        name: my-sa
    - apiVersion: apps/v1
      kind: Deployment
      metadata:
        namespace: default
        name: nginx-deployment
        labels:
          app: nginx
      spec:
        replicas: 3
        selector:
          matchLabels:
            app: nginx
        template:
          metadata:
            labels:
              app: nginx
          spec:
            serviceAccountName: my-sa
            containers:
            - name: nginx
              image: nginx:1.14.2
              ports:
              - containerPort: 80
`

// kubectl runs kubectl on the hub or the cluster, as a user does.
func kubectl(ctx SpecContext, kubeconfig, input string, args ...string) string {
	GinkgoHelper()
	command := exec.CommandContext(ctx, filepath.Join("..", "..", "..", ".fleetgate", "bin", "kubectl"), append([]string{"--kubeconfig=" + kubeconfig}, args...)...)
	command.Stdin = strings.NewReader(input)
	out, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	return string(out)
}

var _ = Describe("A user's first ManifestWork", Ordered, func() {
	var atHub, atCluster string

	BeforeAll(func(ctx SpecContext) {
		var err error
		atHub, err = hub.Kubeconfig("first-user", "system:masters")
		Expect(err).NotTo(HaveOccurred())
		atCluster, err = member.Kubeconfig("first-user", "system:masters")
		Expect(err).NotTo(HaveOccurred())
		Expect(kubectl(ctx, atHub, firstWork, "apply", "-f", "-")).To(ContainSubstring("manifestwork.work.open-cluster-management.io/my-first-work created"))
		DeferCleanup(func(ctx SpecContext) { removeWork(ctx, "my-first-work") })
	})

	It("is listed and its kinds exist", func(ctx SpecContext) {
		Expect(kubectl(ctx, atHub, "", "get", "manifestwork", "-A")).To(MatchRegexp(`NAMESPACE +NAME +AGE\ncluster1 +my-first-work +\d`))
		Expect(kubectl(ctx, atHub, "", "get", "crd", "manifestworks.work.open-cluster-management.io")).To(ContainSubstring("manifestworks.work"))
		Expect(kubectl(ctx, atCluster, "", "get", "crd", "appliedmanifestworks.work.open-cluster-management.io")).To(ContainSubstring("appliedmanifestworks.work"))
	})

	It("applies the account and the Deployment, which becomes ready", func(ctx SpecContext) {
		Eventually(func() string { return kubectl(ctx, atCluster, "", "get", "deployment") }).Should(MatchRegexp(`nginx-deployment +3/3 +3 +3`))
		Expect(kubectl(ctx, atCluster, "", "get", "sa", "my-sa")).To(ContainSubstring("my-sa"))
		Expect(kubectl(ctx, atCluster, "", "get", "pod")).To(ContainSubstring("nginx-deployment-"))
	})

	It("reports each manifest as the documentation shows", func(ctx SpecContext) {
		Eventually(conditions(ctx, "my-first-work")).Should(beDone())
		status := &workv1.ManifestWork{}
		Expect(yaml.Unmarshal([]byte(kubectl(ctx, atHub, "", "get", "manifestwork", "my-first-work", "-n", "cluster1", "-oyaml")), status)).To(Succeed())
		reported := status.Status.ResourceStatus.Manifests
		Expect(reported).To(HaveLen(2))
		Expect(reported[1].ResourceMeta).To(Equal(workv1.ManifestResourceMeta{
			Group: "apps", Kind: "Deployment", Name: "nginx-deployment", Namespace: "default", Ordinal: 1, Resource: "deployments", Version: "v1"}))
		Expect(reported[0].ResourceMeta).To(Equal(workv1.ManifestResourceMeta{
			Kind: "ServiceAccount", Name: "my-sa", Namespace: "default", Resource: "serviceaccounts", Version: "v1"}))
		for i := range reported {
			Expect(of(ctx, "my-first-work", i)(Default)).To(HaveExactElements(applied, available, noFeedback))
		}
	})

	It("is identified on the cluster by the hash of the hub's URL", func(ctx SpecContext) {
		Expect(kubectl(ctx, atCluster, "", "get", "appliedmanifestwork")).To(MatchRegexp(`(?m)^[0-9a-f]{64}-my-first-work +\d`))
		noted := record(ctx, "my-first-work")
		Expect(noted.Spec).To(Equal(workv1.AppliedManifestWorkSpec{HubHash: hubHash, AgentID: agentID, ManifestWorkName: "my-first-work"}))
		Expect(noted.Finalizers).To(HaveExactElements("cluster.open-cluster-management.io/applied-manifest-work-cleanup"))
		Eventually(ledger(ctx, "my-first-work")).Should(HaveExactElements("my-sa", "nginx-deployment"))
		for _, resource := range record(ctx, "my-first-work").Status.AppliedResources {
			Expect(resource.UID).NotTo(BeEmpty())
		}
		Expect(getWork(ctx, "my-first-work").Finalizers).To(HaveExactElements("cluster.open-cluster-management.io/manifest-work-cleanup"))
	})

	It("applies a change", func(ctx SpecContext) {
		kubectl(ctx, atHub, strings.Replace(firstWork, "replicas: 3", "replicas: 2", 1), "apply", "-f", "-")
		Eventually(func() string { return kubectl(ctx, atCluster, "", "get", "deployment") }).Should(MatchRegexp(`nginx-deployment +2/2`))
		Eventually(conditions(ctx, "my-first-work")).Should(beDone())
	})

	It("catches up after the agent was stopped", func(ctx SpecContext) {
		agent.Stop()
		for _, replicas := range []string{"5", "4", "1"} {
			kubectl(ctx, atHub, strings.Replace(firstWork, "replicas: 3", "replicas: "+replicas, 1), "apply", "-f", "-")
		}
		agent = startAgent(agentOptions{})
		Eventually(func() string { return kubectl(ctx, atCluster, "", "get", "deployment") }).Should(MatchRegexp(`nginx-deployment +1/1`))
		Eventually(conditions(ctx, "my-first-work")).Should(beDone())
	})

	It("stays with its record until its objects are gone", func(ctx SpecContext) {
		kubectl(ctx, atCluster, "", "patch", "sa", "my-sa", "--type=merge", `-p={"metadata":{"finalizers":["example.com/slow"]}}`)
		kubectl(ctx, atHub, "", "delete", "manifestwork", "my-first-work", "-n", "cluster1", "--wait=false")
		Eventually(func(g Gomega) {
			g.Expect(getWork(ctx, "my-first-work").Status.Conditions).To(ContainElement(And(
				HaveField("Type", "Deleting"), HaveField("Reason", "WorkDeleting"), HaveField("Status", BeEquivalentTo("True")),
				HaveField("Message", And(HavePrefix("ManifestWork is being deleted"), ContainSubstring("ServiceAccount default/my-sa"), ContainSubstring("example.com/slow"))))))
			_, err := expect.Found(ctx, memberClient, "apps/v1", "Deployment", "default", "nginx-deployment")
			g.Expect(err).To(HaveOccurred(), "the Deployment is gone")
		}).Should(Succeed())
		Consistently(func(g Gomega) {
			g.Expect(getWork(ctx, "my-first-work").Finalizers).To(HaveExactElements(workv1.ManifestWorkFinalizer))
			noted := record(ctx, "my-first-work")
			g.Expect(noted).NotTo(BeNil())
			g.Expect(noted.Finalizers).To(HaveExactElements(workv1.AppliedManifestWorkFinalizer))
		}).Should(Succeed())

		work := getWork(ctx, "my-first-work")
		kubectl(ctx, atCluster, "", "patch", "sa", "my-sa", "--type=merge", `-p={"metadata":{"finalizers":null}}`)
		Eventually(expect.Gone(ctx, hubClient, work)).Should(BeTrue())
		Expect(record(ctx, "my-first-work")).To(BeNil())
	})
})
