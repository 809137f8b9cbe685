// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/transcript"
)

// migration is a fleet on its way from KubeFleet's agents to ours.
type migration struct {
	kubefleet
	gateway, agent *container
	// chartFlags are what a process needs in a chart that a Pod does not: ports of its own
	// on this machine; by the chart's name.
	chartFlags map[string]string
	// before is all that must stay, as it was when KubeFleet's agents were stopped.
	hubBefore, memberBefore, workload map[string]string
}

var (
	keptOnHub = []string{
		"cluster.kubernetes-fleet.io/v1beta1 MemberCluster", "cluster.kubernetes-fleet.io/v1beta1 InternalMemberCluster",
		"placement.kubernetes-fleet.io/v1beta1 ClusterResourcePlacement", "placement.kubernetes-fleet.io/v1beta1 ClusterResourceBinding",
		"placement.kubernetes-fleet.io/v1beta1 ClusterSchedulingPolicySnapshot", "placement.kubernetes-fleet.io/v1beta1 Work",
	}
	keptOnMember = []string{"placement.kubernetes-fleet.io/v1beta1 AppliedWork", "apiextensions.k8s.io/v1 CustomResourceDefinition"}
	keptWorkload = []string{"v1 ConfigMap", "v1 Service", "apps/v1 Deployment", "apps/v1 ReplicaSet", "v1 Pod"}
)

var _ = Describe("docs/how-to/migrate.md", Ordered, func() {
	m := &migration{}

	BeforeAll(func(ctx SpecContext) {
		progress := func(line string) { GinkgoWriter.Println(line) }
		clusters, err := env.StartAll(ctx, env.Options{Name: "kubefleet-hub", Progress: progress}, env.Options{Name: "kubefleet-member", Nodes: 1, Progress: progress})
		Expect(err).NotTo(HaveOccurred())
		m.hub, m.member = clusters[0], clusters[1]
		DeferCleanup(func(ctx SpecContext) {
			for _, c := range []*container{m.agent, m.gateway} {
				if c != nil {
					Expect(c.Kill()).To(Succeed())
				}
			}
			Expect(m.hub.Stop(ctx)).To(Succeed())
			Expect(m.member.Stop(ctx)).To(Succeed())
		})
		m.onHub, m.onMember = clientOf(m.hub), clientOf(m.member)
		m.plant(ctx)
		ports, err := env.FreePorts(7)
		Expect(err).NotTo(HaveOccurred())
		m.chartFlags = map[string]string{
			// So that members are silent before the gateway has said so for long.
			"gateway": fmt.Sprintf("--set=replicas=1,configuration.members.unhealthyThreshold=5s,ports.api=%d,ports.webhooks=%d,ports.peers=%d,ports.metrics=%d,ports.probes=%d",
				ports[0], ports[1], ports[2], ports[3], ports[4]),
			"agent": fmt.Sprintf("--set=ports.metrics=%d,ports.probes=%d", ports[5], ports[6]),
		}
		Eventually(func(g Gomega) {
			var pods corev1.PodList
			g.Expect(m.onMember.List(ctx, &pods, client.InNamespace("web"))).To(Succeed())
			g.Expect(pods.Items).To(HaveLen(2))
			g.Expect(pods.Items).To(HaveEach(HaveField("Status.Phase", corev1.PodRunning)))
		}).Should(Succeed())
		m.hubBefore = identities(ctx, m.onHub, "", keptOnHub...)
		m.memberBefore = identities(ctx, m.onMember, "", keptOnMember...)
		m.workload = identities(ctx, m.onMember, "web", keptWorkload...)
	})

	AfterEach(func() {
		for _, c := range []*container{m.gateway, m.agent} {
			if CurrentSpecReport().Failed() && c != nil {
				GinkgoWriter.Printf("%s:\n%s\n", c.Name(), c.log())
			}
		}
	})

	It("shows commands with the documented output, and re-creates nothing on the member", func(ctx SpecContext) {
		page, err := transcript.Read(filepath.Join(home, "docs", "how-to", "migrate.md"))
		Expect(err).NotTo(HaveOccurred())
		const least = 20
		Expect(len(page.Commands)).To(BeNumerically(">", least))
		for _, c := range page.Commands {
			By(c.Who + "$ " + c.Line)
			switch {
			case strings.Contains(c.Line, "helm uninstall gateway"):
				m.uninstallGateway(ctx, c)
			case strings.Contains(c.Line, " get "):
				Eventually(m.run).WithArguments(c).WithContext(ctx).Should(MatchRegexp(c.Pattern()))
			default:
				out, err := m.run(ctx, c)
				Expect(err).NotTo(HaveOccurred(), out)
				Expect(out).To(MatchRegexp(c.Pattern()))
			}
			m.act(ctx, c.Line)
			m.expectNothingLost(ctx)
		}
		Expect(m.gateway).NotTo(BeNil())
		Expect(m.agent).NotTo(BeNil())
	})
})

// run runs a command as the administrator of hub or member types it in the project's
// folder, and returns what it prints.
func (m *migration) run(ctx context.Context, c transcript.Command) (string, error) {
	of := map[string]*env.Cluster{"hub": m.hub, "member": m.member}[c.Who]
	if of == nil {
		return "", fmt.Errorf("nobody is called %q", c.Who)
	}
	line := c.Line
	for chart, flags := range m.chartFlags {
		line = strings.Replace(line, " charts/"+chart+" ", " charts/"+chart+" "+flags+" ", 1)
	}
	command := exec.CommandContext(ctx, "bash", "-o", "pipefail", "-c", line)
	command.Dir = home
	command.Env = append(os.Environ(), "HOME="+of.Dir, "KUBECONFIG="+filepath.Join(of.Dir, env.BreakGlass+".kubeconfig"),
		"PATH="+filepath.Join(home, ".fleetgate", "bin")+":"+os.Getenv("PATH"),
		"HUB_URL="+m.hub.URL, "HUB_CA="+base64.StdEncoding.EncodeToString(m.hub.CABundle), "REGISTRY=registry.example.org/fleetgate")
	out, err := command.CombinedOutput()
	GinkgoWriter.Printf("%s$ %s\n%s\n", c.Who, line, out)
	return transcript.Printed(string(out)), err
}

// act is what the nodes of hub and member do after a command.
func (m *migration) act(ctx context.Context, line string) {
	GinkgoHelper()
	switch {
	case strings.Contains(line, "helm install gateway"):
		leadToLoopback(ctx, m.onHub)
		m.startGateway(ctx)
		m.expectEverybodyIsSilentAndKept(ctx)
	case strings.Contains(line, "helm upgrade gateway"):
		Expect(m.gateway.Stop(ctx)).To(Succeed())
		leadToLoopback(ctx, m.onHub)
		m.startGateway(ctx, m.gateway)
	case strings.Contains(line, "helm install fleet-agent"):
		m.startAgent(ctx)
		m.expectPlaced(ctx, "web", "few")
	case strings.Contains(line, "helm uninstall fleet-agent"):
		Expect(m.agent.Stop(ctx)).To(Succeed())
	}
}

func (m *migration) startGateway(ctx context.Context, earlier ...*container) {
	GinkgoHelper()
	m.gateway = prepare(ctx, m.hub, m.onHub, findPod(ctx, m.onHub, gatewayApplication, earlier...), "gateway", "--kubeconfig")
	m.gateway.startReady(ctx)
	Eventually(func(g Gomega) {
		api := &apiregistrationv1.APIService{}
		g.Expect(m.onHub.Get(ctx, client.ObjectKey{Name: "v1alpha1.tunnel.fleetgate.io"}, api)).To(Succeed())
		g.Expect(api.Status.Conditions).To(ContainElement(And(HaveField("Type", apiregistrationv1.Available), HaveField("Status", apiregistrationv1.ConditionTrue))))
	}).Should(Succeed())
}

// startAgent gives the process what its Pod has mounted.
func (m *migration) startAgent(ctx context.Context) {
	GinkgoHelper()
	pod := findPod(ctx, m.onMember, agentApplication)
	var mounted []string
	for path, content := range map[string]string{"/config/token": m.token, "/etc/fleetgate/hub/ca.crt": string(m.hub.CABundle)} {
		file := filepath.Join(m.member.Dir, filepath.Base(path))
		Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed())
		mounted = append(mounted, path, file)
	}
	m.agent = prepare(ctx, m.member, m.onMember, pod, "agent", "--member-kubeconfig", mounted...)
	m.agent.startReady(ctx)
}

// expectEverybodyIsSilentAndKept is the time between the gateway's start and that of the
// first agent: members have no heartbeat, and a decision about each placement is made.
func (m *migration) expectEverybodyIsSilentAndKept(ctx context.Context) {
	GinkgoHelper()
	Eventually(m.run).WithArguments(transcript.Command{Who: "hub", Line: `kubectl get memberclusters --output=jsonpath='{.items[*].status.conditions[?(@.type=="Joined")].status}'`}).
		WithContext(ctx).Should(Equal("Unknown Unknown"))
	Eventually(func(g Gomega) {
		var snapshots placementv1beta1.ClusterResourceSnapshotList
		g.Expect(m.onHub.List(ctx, &snapshots, client.MatchingLabels{"kubernetes-fleet.io/is-latest-snapshot": "true"})).To(Succeed())
		g.Expect(snapshots.Items).To(ConsistOf(
			HaveField("Name", "web-1-snapshot"), HaveField("Name", "few-1-snapshot"), HaveField("Name", "everywhere-1-snapshot")))
		var works placementv1beta1.WorkList
		g.Expect(m.onHub.List(ctx, &works, client.InNamespace("fleet-member-member-1"))).To(Succeed())
		g.Expect(works.Items).To(ContainElement(HaveField("Annotations", HaveKeyWithValue("kubernetes-fleet.io/parent-resource-snapshot-name", "web-1-snapshot"))))
	}).Should(Succeed())
}

// expectPlaced waits until placements are available with the resource snapshot that the
// gateway has made: before, they say what KubeFleet said.
func (m *migration) expectPlaced(ctx context.Context, placements ...string) {
	GinkgoHelper()
	for _, name := range placements {
		Eventually(func(g Gomega) {
			crp := &placementv1beta1.ClusterResourcePlacement{}
			g.Expect(m.onHub.Get(ctx, client.ObjectKey{Name: name}, crp)).To(Succeed())
			g.Expect(crp.Status.ObservedResourceIndex).To(Equal("1"))
			g.Expect(crp.Status.PlacementStatuses).To(ConsistOf(HaveField("ClusterName", "member-1")))
			g.Expect(crp.Status.Conditions).To(ContainElement(And(
				HaveField("Type", "ClusterResourcePlacementAvailable"), HaveField("Status", metav1.ConditionTrue))))
		}).Should(Succeed(), name)
	}
}

// expectNothingLost compares what there was with what there is.
func (m *migration) expectNothingLost(ctx context.Context) {
	GinkgoHelper()
	contain := func(now, before map[string]string, where string) {
		for name, identity := range before {
			Expect(now).To(HaveKeyWithValue(name, identity), where)
		}
	}
	contain(identities(ctx, m.onHub, "", keptOnHub...), m.hubBefore, "on the hub")
	contain(identities(ctx, m.onMember, "", keptOnMember...), m.memberBefore, "on the member")
	Expect(identities(ctx, m.onMember, "web", keptWorkload...)).To(Equal(m.workload), "what runs on the member")
	var bindings placementv1beta1.ClusterResourceBindingList
	Expect(m.onHub.List(ctx, &bindings)).To(Succeed())
	Expect(bindings.Items).To(HaveEach(HaveField("Spec.State", placementv1beta1.BindingBound)))
}

// uninstallGateway is the node of the Job that Helm waits for.
func (m *migration) uninstallGateway(ctx context.Context, c transcript.Command) {
	GinkgoHelper()
	ended := make(chan error, 1)
	go func() {
		defer GinkgoRecover()
		_, err := m.run(ctx, c)
		ended <- err
	}()
	m.gateway.uninstall(ctx, m.hub)
	Eventually(ended, patience).Should(Receive(Succeed()))
}
