// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apis

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Clients that decode our objects read their quantities with Kubernetes' own reader, which
// computes a billion digits of these twelve bytes: the gateway, which watches what members
// report, would do nothing else.
var _ = Describe("A member that reports a quantity of a billion digits", func() {
	report := func(kind, capacity string) client.Patch {
		status := `{"resourceUsage":{"capacity":{"cpu":` + capacity + `}}}`
		if kind == "ManagedCluster" {
			status = `{"conditions":[],"version":{},"capacity":{"cpu":` + capacity + `}}`
		}
		return client.RawPatch(types.MergePatchType, []byte(`{"status":`+status+`}`))
	}

	DescribeTable("is refused by the schema", func(ctx SpecContext, group, version, kind string) {
		reporter := object(group, kind, `{"state":"Join"}`)
		reporter.SetAPIVersion(group + "/" + version)
		if kind == "ManagedCluster" {
			reporter.Object["spec"] = map[string]any{}
			reporter.SetNamespace("")
		}
		Expect(hubClient.Create(ctx, reporter)).To(Succeed())
		for _, hostile := range []string{`"1e-999999999"`, `"1E+99999999"`, `".1e-0000009"`} {
			expectRefused(hubClient.Status().Patch(ctx, reporter.DeepCopy(), report(kind, hostile)), "capacity.cpu")
		}
		for _, amount := range []string{`"16"`, `16`, `"3920m"`, `"1e3"`, `"16393220Ki"`} {
			Expect(hubClient.Status().Patch(ctx, reporter, report(kind, amount))).To(Succeed(), amount)
		}
	},
		Entry("of InternalMemberClusters", "cluster.kubernetes-fleet.io", "v1beta1", "InternalMemberCluster"),
		Entry("of InternalMemberClusters in v1", "cluster.kubernetes-fleet.io", "v1", "InternalMemberCluster"),
		Entry("of ManagedClusters", "cluster.open-cluster-management.io", "v1", "ManagedCluster"),
	)
})
