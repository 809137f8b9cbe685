// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// logging are the processes whose logs operators read.
var logging = []string{"gateway", "member-1-agent", "member-2-agent"}

// log is a process's log so far.
func (l *launched) log(name string) string {
	GinkgoHelper()
	text, err := os.ReadFile(l.process(name).LogPath())
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

const (
	// tides is a CRD on the hub, and the placement of a namespace that will contain an object of
	// it.
	tides = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tides.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: tides, singular: tide, kind: Tide, listKind: TideList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
apiVersion: v1
kind: Namespace
metadata: {name: shore}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: tide}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: shore}]
  # Otherwise the second member follows a minute after the first, since no availability of the kind is tracked.
  strategy: {rollingUpdate: {unavailablePeriodSeconds: 1}}
`
	tide = `{apiVersion: example.org/v1, kind: Tide, metadata: {name: high, namespace: shore}}`
	// tidesPlaced places the CRD on members.
	tidesPlaced = `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: tide-kind}
spec: {resourceSelectors: [{group: apiextensions.k8s.io, version: v1, kind: CustomResourceDefinition, name: tides.example.org}]}
`
)

// Measured on a fleet with one member at the default level, without audit lines: 26 lines of the
// gateway and 6 of the agent.
var _ = Describe("The logs of a first day", func() {
	It("have few lines of a normal start, a join and a placement", func(ctx SpecContext) {
		l := newFolder()
		out, err := l.launcher(ctx, "-members=1", "-v=0", "up")
		Expect(err).NotTo(HaveOccurred(), out)
		for name, most := range map[string]int{"gateway": 32, "member-1-agent": 10} {
			var told []string
			for line := range strings.Lines(l.log(name)) {
				if !strings.Contains(line, `logger="audit"`) { // One line per request to a member.
					told = append(told, line)
				}
			}
			text := strings.Join(told, "")
			Expect(told).NotTo(BeEmpty(), name)
			Expect(len(told)).To(BeNumerically("<=", most), "%s:\n%s", name, text)
			for _, loud := range []string{"Reconciler error", "Starting EventSource", "health", "Warning: "} {
				Expect(text).NotTo(ContainSubstring(loud), name)
			}
		}
	})
})
