// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package pods_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/env"
)

// The pages whose commands are run, and whom they name.
const (
	installPage = "docs/getting-started/install.md"
	pageHubURL  = "https://hub.example.org:6443"
	clientID    = "client-of-member-1"
)

var _ = Describe("On real Pods", Ordered, func() {
	// before is what was on each cluster when nothing of ours was.
	before := map[*env.Cluster]inventory{}

	BeforeAll(func(ctx SpecContext) {
		for _, cluster := range []*env.Cluster{hub, member} {
			before[cluster] = take(ctx, cluster)
			Expect(run(ctx, cluster, "kubectl create namespace fleet-system && kubectl label namespace fleet-system pod-security.kubernetes.io/enforce=restricted")).Error().NotTo(HaveOccurred())
		}
	})

	AfterEach(func(ctx SpecContext) {
		if CurrentSpecReport().Failed() {
			for _, cluster := range []*env.Cluster{hub, member} {
				_, _ = run(ctx, cluster, "kubectl get pods,jobs --all-namespaces -o wide; kubectl get events --all-namespaces | tail -40; kubectl logs -n fleet-system -l app.kubernetes.io/name --tail=60 --prefix; true")
			}
		}
	})

	It("installs the gateway as the page says, with two replicas that the hub's API server reaches", func(ctx SpecContext) {
		Expect(run(ctx, hub, strings.ReplaceAll(commands(installPage, "helm install gateway"), pageHubURL, hub.AddressURL()))).Error().NotTo(HaveOccurred())

		var pods corev1.PodList
		Expect(hubClient.List(ctx, &pods, client.InNamespace(systemNamespace), client.MatchingLabels{"app.kubernetes.io/name": "fleetgate-gateway"})).To(Succeed())
		Expect(pods.Items).To(HaveLen(2))
		Expect(run(ctx, hub, "kubectl wait apiservices v1alpha1.cluster.core.oam.dev v1alpha1.tunnel.fleetgate.io v1alpha1.webhook.fleetgate.io --for=condition=Available --timeout=2m")).Error().NotTo(HaveOccurred())
	})

	It("makes a token as the page says", func(ctx SpecContext) {
		Expect(run(ctx, hub, commands(installPage, "kind: ClusterRegistrationToken"))).Error().NotTo(HaveOccurred())
		values, err := os.ReadFile(filepath.Join(work, "values.yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(values)).To(ContainSubstring(hub.AddressURL()))
		Expect(run(ctx, hub, fmt.Sprintf("kubectl apply -f - <<EOF\n{apiVersion: fleet.cattle.io/v1alpha1, kind: Cluster, metadata: {name: %s, namespace: clusters}, spec: {clientID: %s}}\nEOF", memberName, clientID))).
			Error().NotTo(HaveOccurred())
	})

	It("fails to install an agent that cannot register, and says why", func(ctx SpecContext) {
		out, err := run(ctx, member, `helm install fleet-agent charts/agent --namespace fleet-system --wait --timeout=45s --values "$WORK/values.yaml" --set token=wrong`)
		Expect(err).To(HaveOccurred())
		Expect(out).To(ContainSubstring("refuses the registration token"))
		Expect(run(ctx, member, "kubectl logs -n fleet-system -l app=fleet-agent")).To(ContainSubstring("refuses the registration token"))
		Expect(run(ctx, member, "helm uninstall fleet-agent --namespace fleet-system --wait && kubectl delete secret -n fleet-system agent-key --ignore-not-found")).Error().NotTo(HaveOccurred())
	})

	It("installs an agent as the page says, and Ready means registered", func(ctx SpecContext) {
		Expect(run(ctx, member, commands(installPage, "helm install fleet-agent"))).To(ContainSubstring("1/1"))

		mc := &clusterv1beta1.MemberCluster{}
		Expect(hubClient.Get(ctx, client.ObjectKey{Name: memberName}, mc)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(mc), mc)).To(Succeed())
			g.Expect(meta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1beta1.ConditionJoined)).To(BeTrue())
		}).Should(Succeed())
	})

	It("places a Deployment, whose Pod runs on the member", func(ctx SpecContext) {
		Expect(run(ctx, hub, "kubectl apply -f examples/admins.yaml && kubectl apply -f - <<EOF\n"+shop+"EOF")).Error().NotTo(HaveOccurred())
		expectAvailable(ctx, "admins")
		expectAvailable(ctx, "shop")
		Expect(run(ctx, member, "kubectl get pods -n shop")).To(ContainSubstring("1/1"))
	})

	// It had a line for each source of each controller, each webhook and each look at health:
	// 290 for a start, with what is written for the audit.
	It("has logs that a person can read, after a start, a join and a placement", func(ctx SpecContext) {
		for cluster, lines := range map[*env.Cluster]struct {
			selector string
			most     int
		}{hub: {"app.kubernetes.io/name=fleetgate-gateway", 60}, member: {"app=fleet-agent", 25}} {
			out, err := run(ctx, cluster, "kubectl logs -n fleet-system --tail=-1 -l "+lines.selector)
			Expect(err).NotTo(HaveOccurred())
			Expect(out).NotTo(Or(ContainSubstring("Reconciler error"), ContainSubstring("Starting EventSource"), ContainSubstring("healthz check failed")))
			var told []string
			for line := range strings.Lines(out) {
				if !strings.Contains(line, `logger="audit"`) { // One for each request for a member.
					told = append(told, line)
				}
			}
			Expect(told).NotTo(BeEmpty())
			Expect(len(told)).To(BeNumerically("<=", lines.most), strings.Join(told, ""))
		}
	})

	It("runs commands in a Pod of the member, through the hub", runsCommands)
	It("follows the log of a Pod of the member, through the hub", followsLog)
	It("copies files into a Pod of the member and back, through the hub", copiesFiles)
	It("forwards a port of a Pod of the member, through the hub", forwardsPort)
	It("shows pages of a Pod and of a Service of the member, through the hub", servesPages)
	It("upgrades the gateway while a watch, an exec and a rollout continue", upgradesGateway)

	It("lets a member leave, and leaves what was placed, and of the agent nothing but what was asked to stay", func(ctx SpecContext) {
		// Kubernetes records the address of a Service as an object that is named after it.
		placed := take(ctx, member).since(before[member]).naming("shop", "admins", "ipaddresses.networking.k8s.io ")
		records := take(ctx, member).naming("appliedworks.placement.kubernetes-fleet.io /")
		Expect(records).To(HaveLen(2))
		Expect(run(ctx, hub, commands(installPage, "kubectl delete membercluster"))).Error().NotTo(HaveOccurred())
		Expect(run(ctx, member, commands(installPage, "helm uninstall fleet-agent"))).Error().NotTo(HaveOccurred())
		kept := []string{
			"secrets fleet-system/agent-key", "secrets fleet-system/agent-credential",
			"customresourcedefinitions.apiextensions.k8s.io /appliedworks.placement.kubernetes-fleet.io",
			"customresourcedefinitions.apiextensions.k8s.io /clusterclaims.cluster.open-cluster-management.io",
			"customresourcedefinitions.apiextensions.k8s.io /clusterproperties.about.k8s.io",
		}
		// A Work that the hub lets go before the agent has heard that it leaves takes its record
		// with it, and nothing else.
		withRecords := maps.Clone(before[member])
		for _, record := range records {
			withRecords[record] = sets.Empty{}
		}
		placed = slices.DeleteFunc(placed, func(name string) bool { return slices.Contains(records, name) })
		expectLeft(ctx, member, withRecords, slices.Concat(kept, namespaceItself(systemNamespace), placed)...)

		Expect(run(ctx, member, commands(installPage, "kubectl delete crd"))).Error().NotTo(HaveOccurred())
		expectLeft(ctx, member, before[member], placed...)
	})

	It("has a cluster join by the plugin, from start to end", Label("matrix"), joinsByPlugin)
	It("says why Pods of a member do not run, by the plugin", Label("matrix"), saysWhyPodsDoNotRun)

	It("brings the network to a cluster that has none, by a label", Label("matrix"), bringsTheNetwork)
	It("runs an agent outside its member as the page says", Label("matrix"), hostsAnAgent)

	It("removes the gateway, and leaves what is stored and nothing that leads to it", func(ctx SpecContext) {
		Expect(run(ctx, hub, "kubectl delete clusterresourceplacement --all --timeout=2m")).Error().NotTo(HaveOccurred())
		Expect(run(ctx, hub, commands(installPage, "helm uninstall gateway"))).Error().NotTo(HaveOccurred())
		Expect(run(ctx, hub, "kubectl get apiservices,validatingwebhookconfigurations,mutatingwebhookconfigurations,validatingadmissionpolicies,validatingadmissionpolicybindings -l app.kubernetes.io/managed-by=fleetgate -o name")).
			To(BeEmpty())
		Expect(run(ctx, hub, "kubectl get all,serviceaccounts,roles,rolebindings -n fleet-system -l app.kubernetes.io/instance=gateway -o name")).To(BeEmpty())
		Expect(run(ctx, hub, "kubectl get memberclusters,clusters.fleet.cattle.io -A -o name")).To(ContainSubstring("member-1"), "what users stored stays")
	})
})

// shop is a placement, and a namespace with a web server for it.
const shop = `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: shop}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: shop}]
  policy: {placementType: PickAll}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {namespace: shop, name: web}
data: {greeting: Welcome to the shop}
---
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: web}
spec: {selector: {app: web}, ports: [{name: pages, port: 80, targetPort: 8080}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: shop, name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: web
        image: ` + shellImage + `
        command: [sh, -c]
        args: ['mkdir -p /www/more; echo "more of it" >/www/more/index.html; echo "\$greeting" >/www/index.html; httpd -p 8080 -h /www; i=0; while true; do echo "line \$i"; i=\$((i+1)); sleep 1; done']
        env: [{name: greeting, valueFrom: {configMapKeyRef: {name: web, key: greeting}}}]
        readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
`

func expectAvailable(ctx context.Context, placement string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		crp := &placementv1beta1.ClusterResourcePlacement{}
		g.Expect(hubClient.Get(ctx, client.ObjectKey{Name: placement}, crp)).To(Succeed())
		available := meta.FindStatusCondition(crp.Status.Conditions, "ClusterResourcePlacementAvailable")
		g.Expect(available).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("ObservedGeneration", crp.Generation)))
	}).Should(Succeed())
}
