// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// What a member's user may write: a script, a way out of an attribute, what turns the direction
// of text, and 64 KiB of it. The kind's names may have all of the first two.
const (
	hostileName = `<img src=x onerror=alert(1)>"'`
	hostileText = "<script>alert(2)</script>\"'>\u202etxt.exe\u2066"
)

// world is what the pages are to show: a healthy placement, one that drifts with hostile
// values, one with a hostile name, and a run that waits for approval.
const world = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {a: one}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %q}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: shop}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: shop}]
  policy: {placementType: PickAll}
  strategy: {applyStrategy: {whenToApply: IfNotDrifted}}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: roles}
spec:
  resourceSelectors: [{group: rbac.authorization.k8s.io, version: v1, kind: ClusterRole, name: %[1]q}]
  policy: {placementType: PickAll}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterStagedUpdateStrategy
metadata: {name: regions}
spec:
  stages:
  - {name: canary, labelSelector: {matchLabels: {region: eu}}, afterStageTasks: [{type: Approval}]}
  - {name: rest, labelSelector: {matchLabels: {region: us}}}
---
apiVersion: v1
kind: Namespace
metadata: {name: staged}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: staged}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: staged}]
  policy: {placementType: PickAll}
  strategy: {type: External}
`

const run = `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterStagedUpdateRun
metadata: {name: to-2026-11}
spec: {placementName: staged, stagedRolloutStrategyName: regions, state: Run}
`

const newcomer = `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: newcomer}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: nothing-yet}]
  policy: {placementType: PickFixed, clusterNames: [member-1]}
`

// quoted is a text as JSON has it.
func quoted(text string) string {
	out, _ := json.Marshal(text) // A string can always be written.
	return string(out)
}

// loudEvent is an event of a member with all that is hostile.
func loudEvent() string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Event","metadata":{"name":"loud","namespace":"default"},"type":"Warning","reason":"Loud",
"involvedObject":{"kind":"Pod","namespace":"default","name":"loud"},"message":%s,"lastTimestamp":%q}`,
		quoted(hostileText+strings.Repeat("x", 64<<10)), time.Now().UTC().Format(time.RFC3339))
}

var _ = Describe("The console", Ordered, ContinueOnFailure, func() {
	var b *browser

	// soon is the page's text, which nobody has asked for again: marked is gone with a new load.
	soon := func() string {
		GinkgoHelper()
		Expect(b.text("String(window.marked)")).To(Equal("true"), "the page was loaded again")
		return b.main()
	}
	// live shows a page and waits until it would hear of changes.
	live := func(path string) {
		GinkgoHelper()
		b.show(path)
		b.text("window.marked = true; 'marked'")
		Eventually(func() string { return b.text("String(events.readyState)") }).Should(Equal("1"))
	}
	// within reports how long a page takes to show a change: a figure, no bound.
	within := func(what string, change func(), shown func()) {
		GinkgoHelper()
		change()
		started := time.Now()
		shown()
		AddReportEntry(what+" is shown after", time.Since(started).Round(time.Millisecond).String())
	}

	BeforeAll(func(ctx SpecContext) {
		prepareBrowser(ctx)
		startFleet(ctx)
		hub(ctx, fmt.Sprintf(world, hostileName), "apply", "--filename=-")
		hub(ctx, "", "wait", "clusterresourceplacement/shop", "--for=condition=ClusterResourcePlacementAvailable", "--timeout=90s")
		hub(ctx, "", "wait", "clusterresourceplacement/staged", "--for=condition=ClusterResourcePlacementScheduled", "--timeout=90s")
		hub(ctx, run, "apply", "--filename=-")
		pod(ctx, "default", "talks")
		onMember(ctx, first, loudEvent(), "apply", "--filename=-")
		onMember(ctx, first, "", "patch", "configmap", "settings", "--namespace=shop", "--type=merge", "--patch", fmt.Sprintf(`{"data":{"a":%q}}`, "<script>alert(3)</script>"))
		b = openConsole(running.HubKubeconfig())
	})

	AfterAll(func() {
		if b != nil {
			Expect(b.told()).To(BeEmpty(), "what pages complained of, or did that none may")
		}
	})

	It("opens once", func() {
		Expect(b.text(`fetch("/open?key=none").then((r) => String(r.status))`)).To(Equal("403"))
	})

	It("shows members as kubectl does, and new taints by itself", func(ctx SpecContext) {
		live("/?by=region")
		Expect(b.text("[...document.querySelectorAll('svg a')].map((a) => a.getAttribute('href')).join(' ')")).To(Equal("/member?name=member-1 /member?name=member-2"))
		live("/member?name=" + second)
		version := hub(ctx, "", "get", "membercluster", second, `--output=jsonpath={.status.properties.k8s\.io/k8s-version.value}`)
		Expect(version).To(HavePrefix("v1."))
		Expect(soon()).To(ContainSubstring(version))
		within("a taint", func() {
			hub(ctx, "", "patch", "membercluster", second, "--type=merge", "--patch", `{"spec":{"taints":[{"key":"seen","effect":"NoSchedule"}]}}`)
		}, func() { Eventually(soon).Should(ContainSubstring("seen:NoSchedule")) })
		hub(ctx, "", "patch", "membercluster", second, "--type=merge", "--patch", `{"spec":{"taints":[]}}`)
		Eventually(soon).ShouldNot(ContainSubstring("seen:NoSchedule"))
	})

	It("shows how long a member takes, and what it warns of, as text", func() {
		b.show("/member?name=" + first)
		Expect(b.main()).To(And(MatchRegexp(`Response time\s+\d+ ms`), ContainSubstring("<script>alert(2)</script>"), Not(ContainSubstring("\u202e")), Not(ContainSubstring("\u2066"))))
		Expect(len(b.main())).To(BeNumerically("<", 64<<10))
		Expect(b.text("String(document.scripts.length)")).To(Equal("1"))
	})

	It("shows placements as kubectl does, and new ones by itself", func(ctx SpecContext) {
		live("/placements")
		for _, name := range strings.Fields(hub(ctx, "", "get", "clusterresourceplacements", "--output=jsonpath={.items[*].metadata.name}")) {
			Expect(soon()).To(ContainSubstring(name))
		}
		within("a placement", func() {
			hub(ctx, newcomer, "apply", "--filename=-")
		}, func() { Eventually(soon).Should(ContainSubstring("newcomer")) })
		hub(ctx, "", "delete", "clusterresourceplacement", "newcomer", "--wait=false")
		Eventually(soon).ShouldNot(ContainSubstring("newcomer"))
	})

	It("shows one placement with what differs, and its way to members by itself", func(ctx SpecContext) {
		Eventually(func() string { b.show("/placement?name=shop"); return b.main() }).Should(And(
			ContainSubstring("ConfigMap shop/settings on member member-1: "), ContainSubstring("/data/a"), ContainSubstring("Remedy: "),
			ContainSubstring("<script>alert(3)</script>"), ContainSubstring("of 2 members for an hour or longer"), ContainSubstring("member member-2: available")))
		live("/placement?name=shop")
		within("a correction", func() {
			onMember(ctx, first, "", "patch", "configmap", "settings", "--namespace=shop", "--type=merge", "--patch", `{"data":{"a":"one"}}`)
		}, func() { Eventually(soon).Should(ContainSubstring("No problems found.")) })
	})

	It("shows names that are scripts as text", func() {
		Eventually(func() string { b.show("/placement?name=roles"); return b.main() }).Should(ContainSubstring("ClusterRole " + hostileName))
		Expect(b.text("String(document.images.length + document.scripts.length)")).To(Equal("1"))
	})

	It("has a run approved after the exact request was shown", func(ctx SpecContext) {
		Eventually(func() string { b.show("/runs"); return b.main() }).Should(And(ContainSubstring("canary"), ContainSubstring("member-1: updated"), ContainSubstring("member-2: pending")))
		b.picture("runs-light")
		b.press("Approve")
		Eventually(b.main).Should(And(ContainSubstring("The console sends this to the hub with your credentials:"),
			MatchRegexp(`PATCH /apis/placement.kubernetes-fleet.io/v1beta1/clusterapprovalrequests/\S+/status`), ContainSubstring(`"type":"Approved"`)))
		Expect(b.examine()).To(BeEmpty())
		b.picture("confirm-light")
		Expect(hub(ctx, "", "get", "clusterapprovalrequests", "--output=yaml")).NotTo(ContainSubstring("ApprovedByUser"), "nothing was sent yet")
		within("a stage", func() { b.press("Send") }, func() {
			Eventually(b.main).Should(ContainSubstring("member-2: updated"))
		})
		Expect(hub(ctx, "", "get", "clusterapprovalrequests", "--output=yaml")).To(ContainSubstring("Approved with kubectl fleetgate console"))
		Eventually(b.main).Should(And(ContainSubstring("Succeeded"), Not(ContainSubstring("Stop"))))
	})

	It("has a run stopped", func(ctx SpecContext) {
		hub(ctx, strings.ReplaceAll(run, "to-2026-11", "again"), "apply", "--filename=-")
		Eventually(func() string { b.show("/runs"); return b.main() }).Should(ContainSubstring("again"))
		b.show("/runs/confirm?what=stop&run=again")
		Expect(b.main()).To(And(ContainSubstring("PATCH /apis/placement.kubernetes-fleet.io/v1beta1/clusterstagedupdateruns/again\n"), MatchRegexp(`\{"metadata":\{"uid":"[^"]+"\},"spec":\{"state":"Stop"\}\}`)))
		b.press("Send")
		Eventually(func() string {
			return hub(ctx, "", "get", "clusterstagedupdaterun", "again", "--output=jsonpath={.spec.state}")
		}).Should(Equal("Stop"))
	})

	It("looks across members, live, down to a Pod's log and events", func(ctx SpecContext) {
		live("/search?kind=configmaps&namespace=shop")
		Expect(soon()).To(And(ContainSubstring(first), ContainSubstring(second), ContainSubstring("settings")))
		within("a ConfigMap of a member", func() { onMember(ctx, second, "", "create", "configmap", "by-hand", "--namespace=shop") }, func() {
			Eventually(soon).Should(ContainSubstring("by-hand"))
		})
		b.show("/search?kind=pods&members=region%3Deu")
		Expect(b.main()).To(And(ContainSubstring("talks"), Not(ContainSubstring(second))))
		b.press("talks")
		Eventually(b.main).Should(And(ContainSubstring("Pod default/talks"), ContainSubstring("one line of a log after the other"), ContainSubstring("On member member-1")))
		b.picture("pod-light")
	})

	It("lists current problems with remedies", func(ctx SpecContext) {
		live("/problems")
		within("a placement that fails", func() {
			hub(ctx, strings.NewReplacer("newcomer", "five", "PickFixed, clusterNames: [member-1]", "PickN, numberOfClusters: 5").Replace(newcomer), "apply", "--filename=-")
		}, func() { Eventually(soon).Should(And(ContainSubstring("Placement five"), ContainSubstring("Remedy: "))) })
	})

	It("has nothing serious that keeps people from using it, light or dark", func() {
		for _, scheme := range []string{"light", "dark"} {
			b.scheme(scheme)
			for name, path := range map[string]string{
				"fleet": "/?by=region", "member": "/member?name=" + first, "placements": "/placements", "placement": "/placement?name=shop", "runs": "/runs",
				"search": "/search?kind=pods", "pod": "/pod?member=member-1&namespace=default&name=talks", "problems": "/problems", "failed": "/placement?name=nowhere",
			} {
				b.show(path)
				b.picture(name + "-" + scheme)
				Expect(b.examine()).To(BeEmpty(), "%s, %s", path, scheme)
			}
		}
	})

	It("is reached by keyboard alone", func() {
		b.show("/")
		Expect(b.text(`(() => { const all = [...document.querySelectorAll("a, button, select, input, [tabindex='0']")]; return String(all.filter((e) => e.tabIndex < 0).length) })()`)).To(Equal("0"))
		Expect(b.text(`document.querySelector("svg a").focus(); document.activeElement.getAttribute("aria-label")`)).To(HavePrefix("member-1: "))
	})
})
