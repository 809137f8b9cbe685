// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// staged is a placement that update runs roll out to the first member, then to the second.
const staged = `
apiVersion: v1
kind: Namespace
metadata: {name: staged}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: staged}
data: {version: one}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: staged}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: staged}]
  policy: {placementType: PickFixed, clusterNames: [member-1, member-2]}
  strategy: {type: External}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterStagedUpdateStrategy
metadata: {name: one-by-one}
spec:
  stages:
  - {name: canary, labelSelector: {matchLabels: {name: member-1}}, afterStageTasks: [{type: Approval}]}
  - {name: rest, labelSelector: {matchLabels: {name: member-2}}}
`

const updateRun = `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterStagedUpdateRun
metadata: {name: NAME}
spec: {placementName: staged, stagedRolloutStrategyName: one-by-one, state: STATE}
`

var _ = Describe("Update runs by the plugin", Ordered, func() {
	start := func(ctx SpecContext, name, state string) {
		GinkgoHelper()
		hub(ctx, strings.NewReplacer("NAME", name, "STATE", state).Replace(updateRun), "apply", "--filename=-")
	}
	version := func(ctx SpecContext, member string) func() string {
		return func() string {
			return onMember(ctx, member, "", "get", "configmap", "settings", "--namespace=staged", "--ignore-not-found", "--output=jsonpath={.data.version}")
		}
	}

	BeforeAll(func(ctx SpecContext) {
		hub(ctx, staged, "apply", "--filename=-")
		hub(ctx, "", "wait", "clusterresourceplacement/staged", "--for=condition=ClusterResourcePlacementScheduled", "--timeout=60s")
		DeferCleanup(func(ctx SpecContext) { hub(ctx, "", "delete", "clusterresourceplacement", "staged", "--wait=false") })
	})

	It("are listed with what they wait for, and continue when approved", func(ctx SpecContext) {
		Eventually(says(ctx, "why", "staged", "--member", first)).Should(ContainSubstring("no update run has reached the member"))
		start(ctx, "to-one", "Run")
		Eventually(says(ctx, "run", "list")).Should(MatchRegexp(`to-one +staged +0 +Waiting +canary +1/2 +\S+ +Waiting for the tasks after stage canary`))
		Expect(version(ctx, second)()).To(BeEmpty())
		Expect(plugin(ctx, "run", "approve", "to-one", "--stage", "rest")).To(Equal("run to-one has no pending approval requests\n"))
		Expect(plugin(ctx, "run", "approve", "to-one")).To(MatchRegexp(`^to-one-\S+ approved\n$`))
		Eventually(says(ctx, "run", "list")).Should(MatchRegexp(`to-one +staged +0 +Succeeded +- +2/2`))
		Eventually(version(ctx, second)).Should(Equal("one"))
		Expect(plugin(ctx, "__complete", "run", "approve", "")).To(ContainSubstring("to-one"))
	})

	It("are started, stopped and resumed", func(ctx SpecContext) {
		hub(ctx, "", "patch", "configmap", "settings", "--namespace=staged", "--type=merge", "--patch", `{"data":{"version":"two"}}`)
		start(ctx, "to-two", "Initialize")
		Eventually(says(ctx, "run", "list")).Should(MatchRegexp(`to-two .*Initialized .*kubectl fleetgate run resume to-two`))
		Expect(plugin(ctx, "run", "resume", "to-two")).To(Equal("run to-two running\n"))
		Eventually(version(ctx, first)).Should(Equal("two"))
		Expect(plugin(ctx, "run", "stop", "to-two")).To(Equal("run to-two stopping\n"))
		Eventually(says(ctx, "run", "list")).Should(MatchRegexp(`to-two +staged +\d+ +Stopped`))
		Expect(plugin(ctx, "run", "resume", "to-two")).To(Equal("run to-two running\n"))
		Eventually(func() string { return plugin(ctx, "run", "approve", "to-two") }).Should(ContainSubstring("approved"))
		Eventually(version(ctx, second)).Should(Equal("two"))
	})

	It("are rolled back by a run to the previous snapshot", func(ctx SpecContext) {
		Eventually(says(ctx, "run", "list")).Should(MatchRegexp(`to-two +staged +\d+ +Succeeded`))
		_, code, stderr := tries(ctx, "run", "rollback", "to-two", "--to=99")
		Expect(code).To(Equal(1))
		Expect(stderr).To(ContainSubstring("snapshot 99 does not exist: available are 0"))
		Expect(plugin(ctx, "run", "rollback", "to-two")).To(ContainSubstring("to-two-back-"))
		Eventually(version(ctx, first)).Should(Equal("one"))
	})

	It("cannot roll back a placement with strategy RollingUpdate", func(ctx SpecContext) {
		rolling := strings.NewReplacer("{name: staged}", "{name: rolling}", "{type: External}", "{type: RollingUpdate}").Replace(staged[strings.Index(staged, "apiVersion: placement"):])
		hub(ctx, rolling+"---"+strings.NewReplacer("NAME", "of-rolling", "STATE", "Initialize", "placementName: staged", "placementName: rolling").Replace(updateRun), "apply", "--filename=-")
		DeferCleanup(func(ctx SpecContext) { hub(ctx, "", "delete", "clusterresourceplacement", "rolling", "--wait=false") })
		_, code, stderr := tries(ctx, "run", "rollback", "of-rolling")
		Expect(code).To(Equal(1))
		Expect(stderr).To(ContainSubstring("revert them there"))
	})

	It("are suggested for a misspelled name", func(ctx SpecContext) {
		_, code, stderr := tries(ctx, "run", "stop", "to-tow")
		Expect(code).To(Equal(1))
		Expect(stderr).To(ContainSubstring(`no run "to-tow": did you mean to-two`))
	})
})
