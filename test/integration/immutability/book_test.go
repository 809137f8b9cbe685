// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability_test

import (
	"os"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/test/support/expect"
)

// refusedInTheBook are the line numbers of objects in the book that a hub rejects, by rejection
// text. docs/reference/policies.md explains each text.
var refusedInTheBook = map[string][]int{
	`in body must be of type`:                                  {2791},
	`spec.identityRef: Invalid value: identityRef is required`: {386, 402, 432, 504, 2533, 2552, 2870, 2900, 2932, 2960, 3017, 3057, 3131},
	`unknown field`:  {464, 2567, 2630, 2657, 3085},
	`Required value`: {561, 597, 620, 639, 658, 677, 769, 791, 899, 1529, 1565, 1948, 2087, 2194, 2766, 3218, 3236, 3256, 3275, 3289},
	`needs to be in control plane subnet range`: {703},
	`no matches for kind`:                       {1123, 1892, 2174},
	`spec.identityRef: Required value`:          {1745, 1847, 1917, 2153},
	`Unsupported value: "no-schedule"`:          {2051},
	`can not be longer than 6 characters`:       {2072},
	`name or generateName is required`:          {2139},
}

// outboundConflict is the line of an object that sets fields which its own comment says are exclusive.
const outboundConflict = 2153

var _ = Describe("The book's own objects", func() {
	It("are accepted, or rejected with a text that the page explains", func(ctx SpecContext) {
		content, err := os.ReadFile("testdata/book.yaml")
		Expect(err).NotTo(HaveOccurred())
		refused := map[int]string{}
		for text, lines := range refusedInTheBook {
			for _, line := range lines {
				refused[line] = text
			}
		}
		seen := 0
		for _, document := range strings.Split(string(content), "\n---\n")[1:] {
			first, manifest, _ := strings.Cut(document, "\n")
			line, err := strconv.Atoi(strings.TrimPrefix(first, "# line "))
			Expect(err).NotTo(HaveOccurred(), first)
			seen++
			object := objectFrom(manifest)
			object.SetNamespace(expect.FreshNamespace(ctx, masters)) // Some are examples of the same object.
			take := func() error {
				return masters.Create(ctx, object.DeepCopy(), client.FieldValidation("Strict"))
			}
			text, isRefused := refused[line]
			if !isRefused {
				Expect(take()).To(Succeed(), "line %d", line)
				continue
			}
			Expect(take()).To(MatchError(ContainSubstring(text)), "line %d", line)
			if strings.HasPrefix(text, "spec.identityRef") {
				set("spec.identityRef", "{kind: AzureClusterIdentity, name: later}")(object)
				if line == outboundConflict {
					Expect(take()).To(MatchError(ContainSubstring("at most one of")))
					continue
				}
				Expect(take()).To(Succeed(), "line %d with an identity", line)
			}
		}
		Expect(seen).To(BeNumerically(">", 60))
	})

	It("get a warning where the book excludes what the provider accepts", func(ctx SpecContext) {
		listener, heard := listening()
		namespace := expect.FreshNamespace(ctx, masters)
		for value, warning := range map[string]string{
			"{privateDNSZone: None}":                  "has no effect without enablePrivateCluster",
			"{enablePrivateClusterPublicFQDN: true}":  "has no effect without enablePrivateCluster",
			"{enablePrivateClusterPublicFQDN: false}": "",
			"{privateDNSZone: System, enablePrivateCluster: true, enablePrivateClusterPublicFQDN: true}": "",
		} {
			tried := controlPlane(namespace, "book")
			set("spec.apiServerAccessProfile", value)(tried)
			Expect(listener.Create(ctx, tried, client.DryRunAll)).To(Succeed(), value)
			expectBookWarning(heard, warning)
		}
		for path, warning := range map[string]string{
			"spec.networkSpec.nodeOutboundLB.sku":         "only Standard load balancers are supported",
			"spec.networkSpec.controlPlaneOutboundLB.sku": "only Standard load balancers are supported",
			"spec.bastionSpec.azureBastion.subnet":        "must have the name AzureBastionSubnet",
		} {
			tried := azureCluster(namespace, "book")
			value := "Basic"
			if strings.HasSuffix(path, "subnet") {
				value = "{name: other, role: bastion, cidrBlocks: [10.2.0.0/27]}"
			}
			set(path, value)(tried)
			Expect(listener.Create(ctx, tried, client.DryRunAll)).To(Succeed(), path)
			expectBookWarning(heard, warning)
		}
		equal := pool(namespace, "book", "User")
		set("spec.kubeletConfig", "{imageGcLowThreshold: 80, imageGcHighThreshold: 80}")(equal)
		Expect(listener.Create(ctx, equal, client.DryRunAll)).To(Succeed())
		expectBookWarning(heard, "should be lower than imageGcHighThreshold")
	})
})

// expectBookWarning expects one warning of the policies for the book, or none.
func expectBookWarning(heard *warned, warning string) {
	GinkgoHelper()
	var book []string
	for _, text := range heard.take() {
		if strings.Contains(text, "capz-book-") {
			book = append(book, text)
		}
	}
	if warning == "" {
		Expect(book).To(BeEmpty())
		return
	}
	Expect(book).To(ConsistOf(ContainSubstring(warning)))
}
