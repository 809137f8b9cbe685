// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"fleetgate.io/fleetgate/test/support/expect"
)

var _ = Describe("The Kubernetes Python client", func() {
	It("can list, and resume a watch from the resourceVersion of each event", Label("matrix"), SpecTimeout(10*time.Minute), func(ctx SpecContext) {
		python, err := exec.CommandContext(ctx, filepath.Join("..", "..", "..", "hack", "python.sh")).Output()
		Expect(err).NotTo(HaveOccurred(), "hack/python.sh names what is missing")
		removeResumed()
		for _, member := range members {
			expect.Created(ctx, on[member], resumable("listed"))
		}
		const watches = 4
		command := exec.CommandContext(ctx, strings.TrimSpace(string(python)), filepath.Join("testdata", "client.py"),
			someone(ctx, "jane", team).fleet, namespace, inResume, fmt.Sprint(2*3*watches*len(members)))
		out := gbytes.NewBuffer()
		command.Stdout, command.Stderr = out, GinkgoWriter
		Expect(command.Start()).To(Succeed())
		const watching = "WATCHING"
		for _, line := range []string{"VERSION 1", "APPS True", "ALLOWED True", "LISTED member-1/listed", "LISTED member-2/listed", watching} {
			Eventually(out).Should(gbytes.Say(line + "\n"))
		}
		began := len(out.Contents())
		want := comeAndGo(ctx, watches, func() { Eventually(out).Should(gbytes.Say(watching + "\n")) })
		Expect(command.Wait()).To(Succeed())
		told := strings.Split(strings.TrimSpace(string(out.Contents()[began:])), "\n")
		Expect(slices.DeleteFunc(told, func(line string) bool { return line == watching })).To(ConsistOf(want))
	})
})
