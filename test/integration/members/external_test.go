// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package members_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	configv1alpha1 "fleetgate.io/fleetgate/pkg/apis/config/v1alpha1"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
	"fleetgate.io/fleetgate/test/support/fleet"
)

// guest is the member whose agent does not register.
const guest = "guest"

var _ = Describe("An agent with its own identity on the hub", Ordered, func() {
	var (
		h        *hub
		agent    *env.Process
		onMember client.Client
	)

	// invite creates the MemberCluster that names the agent's user.
	invite := func(ctx context.Context) {
		GinkgoHelper()
		h.kubectl(ctx, `
apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata: {name: `+guest+`}
spec: {identity: {kind: User, apiGroup: rbac.authorization.k8s.io, name: `+guest+`-agent}}
`, "apply", "--filename=-")
	}
	said := func(condition string) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) {
			return h.asks(ctx, "get", "membercluster", guest, `--output=jsonpath={.status.conditions[?(@.type=="`+condition+`")].status}`)()
		}
	}
	accounts := func(ctx context.Context) ([]string, error) {
		var list corev1.ServiceAccountList
		err := onMember.List(ctx, &list, client.InNamespace(authenticationv1beta1.AccountNamespace+"-"+guest), client.HasLabels{authenticationv1beta1.LabelManagedServiceAccount})
		var names []string
		for _, account := range list.Items {
			names = append(names, account.Name)
		}
		return names, err
	}
	log := func() string {
		text, err := os.ReadFile(agent.LogPath())
		Expect(err).NotTo(HaveOccurred())
		return string(text)
	}

	BeforeAll(func(ctx SpecContext) {
		h = startHub(ctx, member)
		onHub, err := h.Hub.Kubeconfig(guest + "-agent")
		Expect(err).NotTo(HaveOccurred())
		of := h.Members[0]
		there, err := of.Cluster.Kubeconfig(fleet.AgentUser, "system:masters")
		Expect(err).NotTo(HaveOccurred())
		onMember, err = of.Cluster.Client(clientgoscheme.AddToScheme)
		Expect(err).NotTo(HaveOccurred())
		ports, err := env.FreePorts(1)
		Expect(err).NotTo(HaveOccurred())
		configuration, err := env.ConfigFlag(GinkgoT().TempDir(), configv1alpha1.AgentKind, "member: {collectNamespaces: true}")
		Expect(err).NotTo(HaveOccurred())
		agent, err = env.NewProcess(env.ProcessOptions{
			Name: guest + "-agent", Dir: h.Dir, Path: filepath.Join(h.BinDir, "agent"),
			Args: []string{
				"--member-kubeconfig=" + there, "--hub-kubeconfig=" + onHub, "--member-name=" + guest, "--hub-name=" + guest, configuration,
				"--metrics-bind-address=0", fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", ports[0]),
			},
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(agent.Start(ctx)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(agent.Stop(ctx)).To(Succeed()) })
	})

	It("joins whenever its MemberCluster is created, and waits in between without errors", func(ctx SpecContext) {
		Eventually(log).Should(ContainSubstring("create MemberCluster"))
		const rounds = 3
		for round := 1; round <= rounds; round++ {
			invite(ctx)
			Eventually(said("Joined")).WithContext(ctx).Should(Equal("True"))
			Eventually(said("TunnelConnected")).WithContext(ctx).Should(Equal("True"))
			Eventually(h.asks(ctx, "get", "--raw=/apis/cluster.core.oam.dev/v1alpha1/clustergateways/"+guest+"/proxy/version")).Should(ContainSubstring("gitVersion"))
			Expect(accounts(ctx)).To(ConsistOf(authenticationv1beta1.GatewayAccount))
			Expect(h.kubectl(ctx, "", "get", "clusterroles,clusterrolebindings", "--selector=fleetgate.io/member", "--output=name")).To(
				BeEmpty(), "an agent of this version needs no cluster-wide right on the hub")
			h.kubectl(ctx, "", "delete", "membercluster", guest, "--timeout=80s")
			Eventually(accounts).WithContext(ctx).Should(BeEmpty(), "objects of the hub on the member")
			Eventually(func() int { return strings.Count(log(), "The hub has no place for this member") }).Should(BeNumerically(">=", round))
		}
		// When the hub removes the member, client-go reports each request in flight as an error.
		given := ContainElement(Not(ContainSubstring(`request.go`)))
		Expect(regexp.MustCompile(`(?m)^E\d{4} .*$`).FindAllString(log(), -1)).NotTo(given)
	})

	It("installs the kinds of claims, and reports claims as properties", func(ctx SpecContext) {
		invite(ctx)
		there, err := h.Members[0].Cluster.Kubeconfig(fleet.AgentUser, "system:masters")
		Expect(err).NotTo(HaveOccurred())
		out, err := h.Kubectl(ctx, there, `
apiVersion: cluster.open-cluster-management.io/v1alpha1
kind: ClusterClaim
metadata: {name: claim.example.com}
spec: {value: bare-metal}
---
apiVersion: about.k8s.io/v1beta1
kind: ClusterProperty
metadata: {name: property.example.com}
spec: {value: rack-7}
`, "apply", "--filename=-")
		Expect(err).NotTo(HaveOccurred(), out)
		DeferCleanup(func(ctx SpecContext) {
			out, err := h.Kubectl(ctx, there, "", "delete", "clusterclaims/claim.example.com", "clusterproperties/property.example.com")
			Expect(err).NotTo(HaveOccurred(), out)
		})
		Eventually(h.asks(ctx, "get", "membercluster", guest, "--output=jsonpath={.status.properties}")).Should(
			And(ContainSubstring("bare-metal"), ContainSubstring("rack-7")))
	})

	It("reports its namespaces, and gets a ResourcePlacement's resources once it has the namespace", func(ctx SpecContext) {
		invite(ctx)
		h.kubectl(ctx, `
apiVersion: v1
kind: Namespace
metadata: {name: told}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: told}
data: {colour: green}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ResourcePlacement
metadata: {name: settings, namespace: told}
spec:
  resourceSelectors: [{group: "", version: v1, kind: ConfigMap, name: settings}]
  policy:
    placementType: PickN
    numberOfClusters: 1
    affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [
      {labelSelector: {matchLabels: {kubernetes-fleet.io/member-name: `+guest+`}}}]}}}
`, "apply", "--filename=-")
		DeferCleanup(func(ctx SpecContext) {
			h.kubectl(ctx, "", "delete", "namespace", "told", "--ignore-not-found")
		})
		Eventually(said("NamespaceCollectionSucceeded")).WithContext(ctx).Should(Equal("True"))
		Eventually(h.asks(ctx, "get", "resourceplacement", "settings", "--namespace=told",
			"--output=jsonpath={.status.placementStatuses[*].conditions[*].message}")).Should(Equal("ClusterUnschedulable, target namespace does not exist on cluster"))

		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "told"}}
		expect.CreatedForSpec(ctx, onMember, namespace)
		Eventually(h.asks(ctx, "get", "resourceplacement", "settings", "--namespace=told",
			`--output=jsonpath={.status.placementStatuses[*].clusterName} {.status.conditions[?(@.type=="ResourcePlacementAvailable")].status}`)).Should(Equal(guest + " True"))
		Expect(h.kubectl(ctx, "", "get", "membercluster", guest, "--output=jsonpath={.status.namespaces}")).To(ContainSubstring(`"told":""`))
	})
})
