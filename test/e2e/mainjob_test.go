// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	configv1alpha1 "fleetgate.io/fleetgate/pkg/apis/config/v1alpha1"
	"fleetgate.io/fleetgate/test/support/env"
)

var _ = Describe("make up", Ordered, func() {
	var (
		l       *launched
		printed string
		// undisturbed is the final state of the job without kills.
		undisturbed state
		// logged is the length of each process's log before the part under test.
		logged = map[string]int{}
	)

	BeforeAll(func(ctx context.Context) {
		l = newFolder()
		var err error
		printed, err = l.launcher(ctx, "up")
		Expect(err).NotTo(HaveOccurred(), printed)
	})

	// section returns the indented lines below a title of the output.
	section := func(title string) []string {
		GinkgoHelper()
		_, rest, found := strings.Cut(printed, "\n"+title+"\n")
		Expect(found).To(BeTrue(), "%q was not printed", title)
		var lines []string
		for line := range strings.Lines(rest) {
			if !strings.HasPrefix(line, "    ") {
				break
			}
			lines = append(lines, strings.TrimRight(strings.TrimPrefix(line, "    "), "\n"))
		}
		return lines
	}

	It("reports that nodes and Pods are simulated", func() {
		Expect(printed).To(ContainSubstring("simulated by KWOK"))
	})

	It("prints the members as kubectl shows them", func(ctx context.Context) {
		shown := strings.Split(strings.TrimSpace(l.hub(ctx, "get", "memberclusters")), "\n")
		lines := section("The members")
		Expect(lines).To(HaveLen(3))
		Expect(strings.Fields(lines[0])).To(Equal(strings.Fields(shown[0])))
		for i, member := range []string{"member-1", "member-2"} {
			Expect(strings.Fields(lines[i+1])[:2]).To(Equal([]string{member, "True"}))
			Expect(strings.Fields(shown[i+1])[:2]).To(Equal([]string{member, "True"}))
		}
		// A slow API server is reported as unhealthy until the agent checks again.
		Eventually(func() string {
			return l.hub(ctx, "get", "memberclusters", `--output=jsonpath={.items[*].status.agentStatus[*].conditions[?(@.type=="Healthy")].status}`)
		}).Should(Equal("True True"))
	})

	It("reports the path of the members' tunnels", func(ctx context.Context) {
		Eventually(func() string {
			return l.hub(ctx, "get", "memberclusters", `--output=jsonpath={.items[*].status.conditions[?(@.type=="TunnelConnected")].reason}`)
		}).Should(Equal(tunnelReason() + " " + tunnelReason()))
	})

	It("prints the placement's conditions, all of them True", func(ctx context.Context) {
		var conditions []string
		for _, line := range section("The placement shop") {
			cells := strings.Fields(line)
			Expect(cells).To(HaveLen(3))
			Expect(cells[1]).To(Equal("True"), line)
			conditions = append(conditions, cells[0])
		}
		now := l.hub(ctx, "get", "clusterresourceplacement", "shop", "--output=jsonpath={.status.conditions[*].type}")
		Expect(conditions).To(Equal(strings.Fields(now)))
		Expect(conditions).To(ContainElement("ClusterResourcePlacementAvailable"))
	})

	It("prints each member's response through the hub, which equals the direct response", func(ctx context.Context) {
		for member, deployments := range map[string][]string{"member-1": {"clock", "web"}, "member-2": {"web"}} {
			var names []string
			for _, line := range section("Deployments on " + member + ", through the hub")[1:] {
				names = append(names, strings.Fields(line)[1])
			}
			Expect(names).To(Equal(deployments), member)

			const query = "--output=jsonpath={range .items[*]}{.metadata.uid} {end}"
			through := l.member(ctx, member, "get", "deployments", "--all-namespaces", query)
			direct, err := l.fleet.Kubectl(ctx, l.breakGlass(member), "", "get", "deployments", "--all-namespaces", query)
			Expect(err).NotTo(HaveOccurred())
			Expect(through).To(Equal(direct))
			Expect(strings.Fields(through)).To(HaveLen(len(deployments)))
		}
	})

	It("installs the add-on with Helm through the hub", func(ctx context.Context) {
		Expect(printed).To(MatchRegexp(`Release "clock" (does not exist\. Installing it now|has been upgraded)`))
		out, err := l.fleet.Run(ctx, "helm", "", "list", "--namespace=clock", "--short", "--kubeconfig="+l.fleet.MemberKubeconfig("member-1"))
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.TrimSpace(out)).To(Equal("clock"))
	})

	It("writes kubeconfigs that differ only in the server's URL", func() {
		paths := section("Kubeconfigs of user admin in group fleetgate:admins")
		behind := map[string]string{
			l.fleet.MemberKubeconfig("member-1"): "clustergateways/member-1/proxy",
			l.fleet.MemberKubeconfig("member-2"): "clustergateways/member-2/proxy",
			l.fleet.FleetKubeconfig():            "fleetviews/all/proxy",
		}
		Expect(paths).To(Equal([]string{l.fleet.HubKubeconfig(), l.fleet.MemberKubeconfig("member-1"), l.fleet.MemberKubeconfig("member-2"), l.fleet.FleetKubeconfig()}))
		hub, err := os.ReadFile(paths[0])
		Expect(err).NotTo(HaveOccurred())
		for _, path := range paths[1:] {
			other, err := os.ReadFile(path)
			Expect(err).NotTo(HaveOccurred())
			var different []string
			lines := strings.Split(string(other), "\n")
			for i, line := range strings.Split(string(hub), "\n") {
				if line != lines[i] {
					different = append(different, strings.TrimSpace(lines[i]))
				}
			}
			Expect(different).To(HaveLen(1), path)
			Expect(different[0]).To(And(HavePrefix("server: "), HaveSuffix("/apis/cluster.core.oam.dev/v1alpha1/"+behind[path])))
		}
	})

	It("shows what all members have in one table", func() {
		rows := section("Deployments on all members, in one request through the hub")
		Expect(rows[0]).To(MatchRegexp(`^NAMESPACE +CLUSTER +NAME +READY`))
		Expect(rows[1:]).To(ContainElements(MatchRegexp(`^shop +member-1 +web`), MatchRegexp(`^shop +member-2 +web`)))
	})

	It("knows user admin in group fleetgate:admins on hub and members", func(ctx context.Context) {
		for _, who := range []string{l.hub(ctx, "auth", "whoami"), l.member(ctx, "member-1", "auth", "whoami"), l.member(ctx, "member-2", "auth", "whoami")} {
			Expect(who).To(MatchRegexp(`Username\s+admin\n`))
			Expect(who).To(ContainSubstring("fleetgate:admins"))
			Expect(who).NotTo(ContainSubstring("system:masters"))
		}
	})

	It("suggests commands that run", func(ctx context.Context) {
		commands := section("Try next")
		Expect(commands).To(HaveLen(6))
		for _, command := range commands {
			out, err := exec.CommandContext(ctx, "sh", "-c", command).CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), "%s\n%s", command, out)
		}
	})

	It("shows the two rejections, which apply to every user", func(ctx context.Context) {
		Expect(printed).To(MatchRegexp(`the placement's type: .*is invalid: .*placement type is immutable`))
		Expect(printed).To(MatchRegexp(`a toleration removed: .*is invalid: .*tolerations have been updated/deleted, only additions to tolerations are allowed`))
		for _, kubeconfig := range []string{l.fleet.HubKubeconfig(), l.breakGlass("hub")} {
			for patch, sentence := range map[string]string{
				`[{"op":"replace","path":"/spec/policy","value":{"placementType":"PickN","numberOfClusters":1}}]`: "placement type is immutable",
				`[{"op":"remove","path":"/spec/policy/tolerations/0"}]`:                                           "only additions to tolerations are allowed",
				`[{"op":"replace","path":"/spec/policy/tolerations/0/key","value":"other"}]`:                      "only additions to tolerations are allowed",
			} {
				_, err := l.fleet.Kubectl(ctx, kubeconfig, "", "patch", "clusterresourceplacement", "shop", "--type=json", "--patch="+patch)
				Expect(err).To(MatchError(ContainSubstring(sentence)))
				Expect(err).To(MatchError(ContainSubstring("is invalid")), "422 Invalid is what clients look for")
			}
		}
	})

	It("accepts an added toleration", func(ctx context.Context) {
		patch := `[{"op":"add","path":"/spec/policy/tolerations/-","value":{"key":"added","operator":"Exists"}}]`
		l.hub(ctx, "patch", "clusterresourceplacement", "shop", "--type=json", "--patch="+patch, "--dry-run=server")
	})

	It("rejects a caller in system:masters at the proxy, and names the remedy", func(ctx context.Context) {
		_, err := l.fleet.Kubectl(ctx, l.breakGlass("hub"), "", "get", "--raw", "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/member-1/proxy/api/v1/namespaces")
		Expect(err).To(MatchError(And(ContainSubstring("Forbidden"), ContainSubstring("system:masters"), ContainSubstring("kubectl create clusterrolebinding"))))
	})

	It("proxies get, list, create, apply, watch and delete", func(ctx context.Context) {
		Expect(l.hub(ctx, "get", "--raw", "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/member-1/proxy/healthz")).To(Equal("ok"))
		l.member(ctx, "member-2", "create", "configmap", "made-here", "--from-literal=a=1")
		DeferCleanup(func(ctx context.Context) {
			l.member(ctx, "member-2", "delete", "configmap", "made-here")
		})
		manifest := "{apiVersion: v1, kind: ConfigMap, metadata: {name: made-here, namespace: default}, data: {a: '2'}}"
		for _, flags := range [][]string{{"--dry-run=server"}, {"--server-side", "--force-conflicts"}} {
			_, err := l.fleet.Kubectl(ctx, l.fleet.MemberKubeconfig("member-2"), manifest, append([]string{"apply", "--filename=-"}, flags...)...)
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(l.member(ctx, "member-2", "get", "configmap", "made-here", "--output=jsonpath={.data.a}")).To(Equal("2"))
		direct, err := l.fleet.Kubectl(ctx, l.breakGlass("member-2"), "", "get", "configmap", "made-here", "--output=jsonpath={.data.a}")
		Expect(err).NotTo(HaveOccurred())
		Expect(direct).To(Equal("2"))
	})

	It("continues a watch while the gateway's token rotates", func(ctx context.Context) {
		seen := l.watch(ctx, "member-1", "configmap", "watched")
		l.member(ctx, "member-1", "create", "configmap", "watched", "--from-literal=n=0")
		DeferCleanup(func(ctx context.Context) { l.member(ctx, "member-1", "delete", "configmap", "watched") })
		Eventually(seen).Should(Receive(Equal("0")))

		token := func() string {
			out, err := l.fleet.Kubectl(ctx, l.breakGlass("hub"), "", "get", "secret", "cluster-gateway", "--namespace=fleet-member-member-1",
				"--ignore-not-found", "--output=jsonpath={.data.token}")
			Expect(err).NotTo(HaveOccurred())
			return out
		}
		for _, n := range []string{"1", "2", "3"} {
			before := token()
			l.hub(ctx, "delete", "secret", "cluster-gateway", "--namespace=fleet-member-member-1")
			Eventually(token).Should(And(Not(BeEmpty()), Not(Equal(before))), "the agent stores a new token")
			Eventually(func() error {
				_, err := l.fleet.Kubectl(ctx, l.fleet.MemberKubeconfig("member-1"), "", "patch", "configmap", "watched", "--type=merge", `--patch={"data":{"n":"`+n+`"}}`)
				return err
			}).Should(Succeed())
			Eventually(seen).Should(Receive(Equal(n)), "the watch from before the rotation gets the event")
		}
		decoded, err := base64.StdEncoding.DecodeString(token())
		Expect(err).NotTo(HaveOccurred())
		logs, err := os.ReadFile(filepath.Join(l.dir, "gateway.log"))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(logs)).NotTo(ContainSubstring(string(decoded)), "no token is in a log")
	})

	It("has agents that listen for probes and Prometheus alone, and run beside their members", Label("matrix"), func() {
		for _, name := range []string{"member-1-agent", "member-2-agent"} {
			pid := l.process(name).PID()
			command, err := argumentsOf(pid)
			Expect(err).NotTo(HaveOccurred())
			Expect(command).To(ContainElement(HavePrefix("--member-kubeconfig=")), "the agent runs outside its member")
			var asked []string
			for _, flag := range []string{"--metrics-bind-address=", "--health-probe-bind-address="} {
				for _, arg := range command {
					if address, ok := strings.CutPrefix(arg, flag); ok {
						asked = append(asked, address)
					}
				}
			}
			Expect(asked).To(HaveLen(2))
			Expect(listeners(pid)).To(ConsistOf(asked))
		}
	})

	It("carries a changed ConfigMap to both members", func(ctx context.Context) {
		l.hub(ctx, "patch", "configmap", "web", "--namespace=shop", "--type=merge", `--patch={"data":{"greeting":"Changed"}}`)
		for _, member := range []string{"member-1", "member-2"} {
			Eventually(func() string {
				return l.member(ctx, member, "get", "configmap", "web", "--namespace=shop", "--output=jsonpath={.data.greeting}")
			}).Should(Equal("Changed"))
		}
	})

	// Without the policy there were ten FailedCreate warnings per Deployment.
	It("causes no warnings on the hub for placed objects", func(ctx context.Context) {
		// These existed before the placement.
		l.hub(ctx, "delete", "pods", "--namespace=shop", "--all", "--grace-period=0", "--force")
		Eventually(func() string {
			return l.hub(ctx, "get", "deployment", "web", "--namespace=shop", "--output=jsonpath={.status.conditions[*].message}")
		}).Should(ContainSubstring("creation is disallowed in the fleet hub cluster"), "its controllers have tried")
		Expect(l.hub(ctx, "get", "events", "--namespace=shop", "--field-selector=type=Warning", "--output=name")).To(BeEmpty())
	})

	It("reverts a user's change on a member", func(ctx context.Context) {
		l.member(ctx, "member-2", "delete", "service", "web", "--namespace=shop")
		Eventually(func() error {
			_, err := l.fleet.Kubectl(ctx, l.fleet.MemberKubeconfig("member-2"), "", "get", "service", "web", "--namespace=shop")
			return err
		}).Should(Succeed())
	})

	It("can run again without an effect on running processes", func(ctx context.Context) {
		before := map[string]int{}
		for _, name := range []string{"gateway", "member-1-agent", "member-2-agent"} {
			before[name] = l.process(name).PID()
		}
		out, err := l.launcher(ctx, "up")
		Expect(err).NotTo(HaveOccurred(), out)
		for name, pid := range before {
			Expect(l.process(name).PID()).To(Equal(pid), name)
		}
		Expect(out).To(ContainSubstring("\nTry next\n"))
		l.hub(ctx, "patch", "configmap", "web", "--namespace=shop", "--type=merge", `--patch={"data":{"greeting":"Welcome to the shop"}}`)
		Eventually(func() (_ state, err error) {
			undisturbed, err = l.look(ctx)
			return undisturbed, err
		}).Should(And(
			HaveField("OnMembers", And(HaveLen(2), HaveEach(ContainElement(ContainSubstring("Welcome to the shop"))))),
			// Poll, because a transient state must not fail the spec.
			HaveField("Settling()", BeEmpty()),
		))
		Expect(undisturbed.Members).To(HaveKey("member-1"))
		Expect(undisturbed.Works).To(HaveLen(4))
	})

	It("keeps users' changes, and starts the gateway with the given flags", func(ctx context.Context) {
		l.hub(ctx, "patch", "configmap", "web", "--namespace=shop", "--type=merge", `--patch={"data":{"greeting":"Changed by hand"}}`)
		before, agent := l.process("gateway").PID(), l.process("member-1-agent").PID()
		// The value is unique for each attempt: the gateway restarts only on a change.
		flag, err := env.ConfigFlag(GinkgoT().TempDir(), configv1alpha1.GatewayKind, fmt.Sprintf(
			"members: {clusterProfileManager: try-%d}\nserving: {memberDomain: %s}", CurrentSpecReport().NumAttempts, memberDomain))
		Expect(err).NotTo(HaveOccurred())
		out, err := l.launcher(ctx, "-gateway-flags="+flag, "up")
		Expect(err).NotTo(HaveOccurred(), out)
		Expect(l.process("gateway").PID()).NotTo(Equal(before))
		Expect(l.process("member-1-agent").PID()).To(Equal(agent))
		arguments, err := argumentsOf(l.process("gateway").PID())
		Expect(err).NotTo(HaveOccurred())
		Expect(arguments).To(ContainElement(flag))
		Expect(l.atMemberHost(ctx, "member-1", "/api/v1/namespaces/shop/configmaps/web")).To(ContainSubstring("Changed by hand"))
		Expect(l.hub(ctx, "get", "configmap", "web", "--namespace=shop", "--output=jsonpath={.data.greeting}")).To(Equal("Changed by hand"))
		l.hub(ctx, "patch", "configmap", "web", "--namespace=shop", "--type=merge", `--patch={"data":{"greeting":"Welcome to the shop"}}`)
		out, err = l.launcher(ctx, "-gateway-flags=", "up")
		Expect(err).NotTo(HaveOccurred(), out)
		Eventually(func() (state, error) { return l.look(ctx) }).Should(Equal(undisturbed))
	})

	for _, victim := range []string{"gateway", "member-1-agent", "member-2-agent"} {
		It("reaches the same state when "+victim+" is killed during a change", func(ctx context.Context) {
			works := l.hub(ctx, "get", "works", "--all-namespaces", "--output=jsonpath={.items[*].metadata.uid}")
			l.hub(ctx, "patch", "configmap", "web", "--namespace=shop", "--type=merge", `--patch={"data":{"greeting":"While `+victim+` dies"}}`)
			p := l.process(victim)
			Expect(p.Kill()).To(Succeed())
			l.hub(ctx, "patch", "configmap", "web", "--namespace=shop", "--type=merge", `--patch={"data":{"greeting":"Welcome to the shop"}}`)
			Expect(p.Start(ctx)).To(Succeed())
			Eventually(func() (state, error) { return l.look(ctx) }).Should(Equal(undisturbed))
			Expect(l.hub(ctx, "get", "works", "--all-namespaces", "--output=jsonpath={.items[*].metadata.uid}")).To(Equal(works), "no Work was re-created")
		})
	}

	It("restarts a process that died, and reports it", func(ctx context.Context) {
		for _, victim := range []string{"gateway", "member-1-agent"} {
			before := l.process(victim).PID()
			Expect(syscall.Kill(before, syscall.SIGKILL)).To(Succeed())
			Eventually(func(g Gomega) {
				p := l.process(victim)
				g.Expect(p.Running()).To(BeTrue())
				g.Expect(p.PID()).NotTo(Equal(before))
			}).Should(Succeed(), victim)
			Expect(l.log("supervisor")).To(ContainSubstring(victim + " has ended and restarts"))
		}
		Eventually(func() (state, error) { return l.look(ctx) }).Should(Equal(undisturbed))
	})

	It("answers at once while a member is disconnected, and works when it reconnects", func(ctx context.Context) {
		agent := l.process("member-2-agent")
		Expect(agent.Kill()).To(Succeed())
		Eventually(func() error {
			_, err := l.fleet.Kubectl(ctx, l.fleet.MemberKubeconfig("member-2"), "", "get", "namespaces", "--request-timeout=20s")
			return err
		}).Should(MatchError(And(ContainSubstring("member-2"), ContainSubstring("not connected"))))
		Expect(l.member(ctx, "member-1", "get", "namespaces", "--output=name")).To(ContainSubstring("namespace/shop"), "the other member is not affected")

		l.hub(ctx, "patch", "configmap", "web", "--namespace=shop", "--type=merge", `--patch={"data":{"greeting":"Missed"}}`)
		l.hub(ctx, "patch", "configmap", "web", "--namespace=shop", "--type=merge", `--patch={"data":{"greeting":"Welcome to the shop"}}`)
		Expect(agent.Start(ctx)).To(Succeed())
		Eventually(func() (state, error) { return l.look(ctx) }).Should(Equal(undisturbed))
	})

	It("answers soon while an agent hangs, and continues when it resumes", func(ctx context.Context) {
		seen := l.watch(ctx, "member-2", "configmap", "watched")
		l.member(ctx, "member-2", "create", "configmap", "watched", "--from-literal=n=0")
		DeferCleanup(func(ctx context.Context) { l.member(ctx, "member-2", "delete", "configmap", "watched") })
		Eventually(seen).Should(Receive(Equal("0")))

		agent := l.process("member-2-agent")
		Expect(agent.Freeze()).To(Succeed())
		DeferCleanup(agent.Thaw)
		// Without this kill the tunnel times out after 25 s, with another message.
		_, err := l.fleet.Kubectl(ctx, l.fleet.MemberKubeconfig("member-2"), "", "get", "namespaces")
		Expect(err).To(MatchError(And(ContainSubstring("member-2"), ContainSubstring("did not respond to a probe"))))
		Expect(l.member(ctx, "member-1", "get", "namespaces", "--output=name")).To(ContainSubstring("namespace/shop"), "the other member is not affected")

		Expect(agent.Thaw()).To(Succeed())
		Eventually(func() error {
			_, err := l.fleet.Kubectl(ctx, l.fleet.MemberKubeconfig("member-2"), "", "patch", "configmap", "watched", "--type=merge", `--patch={"data":{"n":"1"}}`)
			return err
		}).Should(Succeed())
		Eventually(seen).Should(Receive(Equal("1")), "the existing watch gets the event")
	})

	It("reports a placement that selects nothing, and places resources once they exist", func(ctx context.Context) {
		manifest := `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacement, metadata: {name: later},
  spec: {resourceSelectors: [{group: "", version: v1, kind: Namespace, name: later}]}}`
		_, err := l.fleet.Kubectl(ctx, l.fleet.HubKubeconfig(), manifest, "apply", "--filename=-")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx context.Context) {
			l.hub(ctx, "delete", "clusterresourceplacement", "later", "--timeout=60s")
			l.hub(ctx, "delete", "namespace", "later", "--ignore-not-found", "--timeout=60s")
		})
		Eventually(func() string {
			return l.hub(ctx, "get", "clusterresourceplacement", "later", "--output=jsonpath={.status.conditions[*].message}")
		}).Should(ContainSubstring("spec.resourceSelectors match nothing on the hub, so nothing is placed"))
		l.hub(ctx, "create", "namespace", "later")
		for _, member := range []string{"member-1", "member-2"} {
			Eventually(func() error {
				_, err := l.fleet.Kubectl(ctx, l.fleet.MemberKubeconfig(member), "", "get", "namespace", "later")
				return err
			}).Should(Succeed())
		}
	})

	It("handles creation and deletion of placed resources in any order", func(ctx context.Context) {
		for _, name := range logging {
			logged[name] = len(l.log(name))
		}
		By("placing an object of a kind that members do not have yet, and then the kind")
		l.apply(ctx, tides)
		DeferCleanup(func(ctx context.Context) {
			l.hub(ctx, "delete", "clusterresourceplacement", "tide", "tide-kind", "--ignore-not-found", "--timeout=60s")
			l.hub(ctx, "delete", "customresourcedefinition", "tides.example.org", "--ignore-not-found", "--timeout=60s")
		})
		l.apply(ctx, tide)
		Eventually(func() string {
			return l.hub(ctx, "get", "clusterresourceplacement", "tide", "--output=jsonpath={.status.placementStatuses[*].failedPlacements[*].name}")
		}).Should(ContainSubstring("high"))
		l.apply(ctx, tidesPlaced)
		for _, member := range []string{"member-1", "member-2"} {
			Eventually(func() error {
				_, err := l.fleet.Kubectl(ctx, l.fleet.MemberKubeconfig(member), "", "get", "tide", "high", "--namespace=shore")
				return err
			}).Should(Succeed())
		}
		By("deleting a namespace of the hub that is placed")
		l.hub(ctx, "delete", "namespace", "shore", "--timeout=60s")
		for _, member := range []string{"member-1", "member-2"} {
			Eventually(func() string {
				return l.member(ctx, member, "get", "namespace", "shore", "--ignore-not-found")
			}).Should(BeEmpty())
		}
	})

	It("adds a member", func(ctx context.Context) {
		out, err := l.launcher(ctx, "member", "edge")
		Expect(err).NotTo(HaveOccurred(), out)
		Expect(out).To(ContainSubstring(l.fleet.MemberKubeconfig("edge")))
		Expect(l.member(ctx, "edge", "get", "nodes", "--output=name")).NotTo(BeEmpty())
	})

	It("removes placed resources from members when a placement is deleted", func(ctx context.Context) {
		l.hub(ctx, "delete", "clusterresourceplacement", "shop", "--timeout=60s")
		for _, member := range []string{"member-1", "member-2"} {
			Eventually(func() string {
				return l.member(ctx, member, "get", "namespace", "shop", "--ignore-not-found")
			}).Should(BeEmpty())
		}
		Expect(l.hub(ctx, "get", "namespace", "shop", "--output=name")).To(ContainSubstring("shop"), "what was selected stays on the hub")
	})

	It("lets a member leave, and removes nothing from it", func(ctx context.Context) {
		l.hub(ctx, "delete", "membercluster", "member-2", "--timeout=60s")
		Expect(l.hub(ctx, "get", "namespaces", "--output=name")).NotTo(ContainSubstring("fleet-member-member-2"))
		out, err := l.fleet.Kubectl(ctx, l.breakGlass("member-2"), "", "get", "clusterrolebinding", "fleetgate-admins", "--output=name")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(ContainSubstring("fleetgate-admins"), "what was placed stays")
		Eventually(func() error {
			_, err := l.fleet.Kubectl(ctx, l.fleet.MemberKubeconfig("member-2"), "", "get", "namespaces", "--request-timeout=20s")
			return err
		}).Should(MatchError(MatchRegexp("NotFound|not found")), "the member is no longer reachable through the hub")
	})

	It("logged no error for conditions that resolve without action", func() {
		if skew.program != "" {
			Skip("the log of the previous version cannot change")
		}
		for _, name := range logging {
			from, noted := logged[name]
			Expect(noted).To(BeTrue(), "run what comes and goes before")
			for line := range strings.Lines(l.log(name)[from:]) {
				Expect(line).NotTo(ContainSubstring("Reconciler error"), name)
			}
		}
	})

	It("leaves no process behind when it is stopped", func(ctx context.Context) {
		all, err := env.Processes(l.dir)
		Expect(err).NotTo(HaveOccurred())
		Expect(len(all)).To(BeNumerically(">=", 16))
		out, err := l.launcher(ctx, "down")
		Expect(err).NotTo(HaveOccurred(), out)
		for _, p := range all {
			Expect(p.Running()).To(BeFalse(), p.Name())
		}
		Expect(l.dir).NotTo(BeADirectory())
	})
})

// watch runs `kubectl get --watch` on one object of a member and sends the printed values of
// data.n. The watch must last until the spec ends.
func (l *launched) watch(ctx context.Context, member, kind, name string) <-chan string {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(ctx)
	command := exec.CommandContext(ctx, filepath.Join(l.fleet.BinDir, "kubectl"), "--kubeconfig="+l.fleet.MemberKubeconfig(member),
		"get", kind, "--watch", "--field-selector=metadata.name="+name, `--output=jsonpath=n={.data.n}{"\n"}`)
	command.Env = append(os.Environ(), "HOME="+l.dir)
	out, err := command.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	Expect(command.Start()).To(Succeed())
	values := make(chan string, 100)
	ended := make(chan struct{})
	go func() {
		defer GinkgoRecover()
		defer close(ended)
		value := regexp.MustCompile(`^n=(\d+)$`)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if match := value.FindStringSubmatch(lines.Text()); match != nil {
				values <- match[1]
			}
		}
		err := command.Wait()
		Expect(ctx.Err()).To(HaveOccurred(), "the watch broke: %v", err)
	}()
	DeferCleanup(func() {
		cancel()
		Eventually(ended).Should(BeClosed())
	})
	return values
}
