// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability_test

import (
	"context"
	"os/exec"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"fleetgate.io/fleetgate/test/env"
)

// kubectl returns all that a user sees, and leaves it in the log.
func kubectl(ctx context.Context, input string, args ...string) string {
	GinkgoHelper()
	program, err := env.Program("kubectl")
	Expect(err).NotTo(HaveOccurred())
	kubeconfig, err := hub.Kubeconfig("admin", "system:masters")
	Expect(err).NotTo(HaveOccurred())
	command := exec.CommandContext(ctx, program, append([]string{"--kubeconfig", kubeconfig}, args...)...)
	command.Stdin = strings.NewReader(input)
	output, _ := command.CombinedOutput()
	GinkgoWriter.Printf("$ kubectl %s\n%s", strings.Join(args, " "), output)
	return string(output)
}

var _ = Describe("The page on policies", Serial, func() {
	It("shows what kubectl shows", func(ctx SpecContext) {
		DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "", "delete", "immutabilitypolicy", "widgets") })
		Expect(kubectl(ctx, widgetPolicy, "apply", "-f", "-")).To(ContainSubstring("immutabilitypolicy.admission.fleetgate.io/widgets created"))
		eventuallyEnforced(ctx, "widgets")
		kubectl(ctx, "{apiVersion: example.org/v1beta1, kind: Widget, metadata: {name: w, namespace: default}, spec: {color: red, size: 3}}", "apply", "-f", "-")
		patch := func(spec string) string {
			return kubectl(ctx, "", "patch", "widget", "w", "--type=merge", "-p", `{"spec":`+spec+`}`)
		}
		Eventually(func() string { patch(`{"color":"red"}`); return patch(`{"color":"blue"}`) }).
			Should(ContainSubstring("Warning: policy widgets: spec.color: field is immutable"))
		Expect(kubectl(ctx, "", "get", "immutabilitypolicies", "widgets")).To(MatchRegexp(`widgets +Warn +True +True`))
		kubectl(ctx, "", "get", "immutabilitypolicies", "widgets", "-o", "jsonpath={.status}")
		kubectl(ctx, "", "patch", "immutabilitypolicy", "widgets", "--type=merge", "-p", `{"spec":{"enforcement":"Deny"}}`)
		Eventually(func() string { return patch(`{"color":"green","size":11}`) }).Should(And(
			ContainSubstring(`The Widget "w" is invalid`), ContainSubstring("spec.color: Invalid value: field is immutable"), ContainSubstring("spec.size: Invalid value: must be 10 at most")))
		kubectl(ctx, "", "delete", "widget", "w")
	})
})
