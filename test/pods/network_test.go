// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package pods_test

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/test/support/env"
)

// freshName is a cluster as Cluster API makes it: with nodes that have no network plugin.
const freshName = "fresh"

var freshWire = wire{name: freshName, near: "hub1", far: "fresh0", gateway: "10.89.1.1", address: "10.89.1.2", pods: "10.246.0.0/24"}

// networkAddOn has a network plugin's configuration, and Pods that bring it to each node with the label.
const networkAddOn = `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: pod-network}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: pod-network}]
  policy:
    placementType: PickAll
    affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [{labelSelector: {matchLabels: {cni: pod-network}}}]}}}
---
apiVersion: v1
kind: Namespace
metadata: {name: pod-network}
---
apiVersion: v1
kind: ConfigMap
metadata: {namespace: pod-network, name: config}
data:
  pods.conflist: CONFIG
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {namespace: pod-network, name: plugin}
spec:
  selector: {matchLabels: {app: plugin}}
  template:
    metadata: {labels: {app: plugin}}
    spec:
      hostNetwork: true
      terminationGracePeriodSeconds: 1
      containers:
      - name: plugin
        image: ` + shellImage + `
        command: [sh, -c, "cat /config/pods.conflist >/network/pods.conflist; tail -f /dev/null"]
        volumeMounts: [{name: config, mountPath: /config}, {name: network, mountPath: /network}]
      volumes:
      - {name: config, configMap: {name: config}}
      - {name: network, hostPath: {path: FOLDER, type: Directory}}
`

// startFresh starts the cluster, whose node has no network.
func startFresh(ctx context.Context) (*env.Cluster, *env.Node) {
	GinkgoHelper()
	network, err := freshWire.lay(ctx)
	Expect(err).NotTo(HaveOccurred())
	cluster, err := env.Start(ctx, env.Options{
		Name: freshName, Dir: filepath.Join(work, freshName), Address: hubAddress, Progress: func(line string) { GinkgoWriter.Println(line) },
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(cluster.Stop(ctx)).To(Succeed()) })
	node, err := cluster.StartNode(ctx, env.NodeOptions{
		Name: "fresh-node", Address: freshWire.address, Pods: freshWire.pods, Network: network, Images: images, PauseImage: pauseImage, WithoutNetwork: true,
	})
	DeferCleanup(func(ctx SpecContext) { Expect(node.Stop(ctx)).To(Succeed()) })
	Expect(err).NotTo(HaveOccurred())
	return cluster, node
}

// nodeReady is the node's condition Ready.
func nodeReady(ctx context.Context, of client.Client, name string) corev1.NodeCondition {
	GinkgoHelper()
	node := &corev1.Node{}
	Expect(of.Get(ctx, client.ObjectKey{Name: name}, node)).To(Succeed())
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition
		}
	}
	return corev1.NodeCondition{}
}

// bringsTheNetwork imports a cluster without a network by its kubeconfig: its agent runs beside the network
// plugin's absence, and delivers it.
func bringsTheNetwork(ctx SpecContext) {
	fresh, node := startFresh(ctx)
	freshClient, err := fresh.Client()
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() corev1.NodeCondition { return nodeReady(ctx, freshClient, node.Name) }).Should(And(
		HaveField("Status", corev1.ConditionFalse), HaveField("Message", ContainSubstring("network"))))
	addOn := strings.NewReplacer("CONFIG", "'"+strings.ReplaceAll(strings.TrimSpace(node.NetworkConfig()), "\n", " ")+"'", "FOLDER", filepath.Join(node.Dir, "network")).Replace(networkAddOn)
	Expect(run(ctx, hub, "kubectl apply -f - <<EOF\n"+addOn+"EOF")).Error().NotTo(HaveOccurred())

	By("importing it with the label of its network plugin")
	kubeconfig, err := os.ReadFile(breakGlass(fresh))
	Expect(err).NotTo(HaveOccurred())
	reachable := strings.ReplaceAll(string(kubeconfig), fresh.URL, fresh.AddressURL())
	Expect(run(ctx, hub, `kubectl apply -f - <<EOF
{apiVersion: v1, kind: Secret, metadata: {name: fresh-kubeconfig, namespace: clusters}, data: {value: `+base64.StdEncoding.EncodeToString([]byte(reachable))+`}}
---
{apiVersion: fleet.cattle.io/v1alpha1, kind: Cluster, metadata: {name: fresh, namespace: clusters, labels: {cni: pod-network}}, spec: {kubeConfigSecret: fresh-kubeconfig, hostNetwork: true}}
EOF`)).Error().NotTo(HaveOccurred())
	Eventually(func() (string, error) { return run(ctx, fresh, "kubectl get pods -n fleet-system") }).Should(MatchRegexp(`fleet-agent-\S+ +1/1 +Running`))

	By("waiting for the network, and for workloads that need it")
	Eventually(func() corev1.NodeCondition { return nodeReady(ctx, freshClient, node.Name) }).Should(HaveField("Status", corev1.ConditionTrue))
	expectAvailable(ctx, "pod-network")
	expectAvailable(ctx, "shop")
	Expect(run(ctx, fresh, "kubectl get pods -n shop")).To(ContainSubstring("1/1"))

	Expect(run(ctx, hub, "kubectl delete clusterresourceplacement pod-network --timeout=2m && kubectl delete membercluster fresh --timeout=2m")).Error().NotTo(HaveOccurred())
	Eventually(func() error {
		return hubClient.Get(ctx, client.ObjectKey{Name: freshName}, &clusterv1beta1.MemberCluster{})
	}).ShouldNot(Succeed())
}
