// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/test/support/expect"
)

var _ = Describe("A managed machine pool", Ordered, func() {
	var subject *unstructured.Unstructured
	var namespace string
	BeforeAll(func(ctx SpecContext) {
		namespace = expect.FreshNamespace(ctx, masters)
		subject = pool(namespace, "pool1", "System")
		for path, value := range map[string]string{
			"spec.name": "pool1", "spec.osType": "Linux", "spec.maxPods": "30", "spec.osDiskType": "Managed", "spec.scaleSetPriority": "Regular",
			"spec.enableUltraSSD": "true", "spec.enableNodePublicIP": "true", "spec.kubeletDiskType": "OS", "spec.kubeletConfig": "{failSwapOn: false}",
			"spec.nodePublicIPPrefixID": "subscriptions/" + subscription + "/resourcegroups/g/providers/microsoft.network/publicipprefixes/p",
			"spec.linuxOSConfig":        "{swapFileSizeMB: 1500}", "spec.availabilityZones": "['1', '2']", "spec.subnetName": "subnet",
		} {
			set(path, value)(subject)
		}
		expect.Created(ctx, masters, subject)
	})

	DescribeTable("rejects a change of a field that is immutable in Azure", func(ctx SpecContext, r row) { r.change(ctx, subject) },
		Entry("name", writing("name", "other", immutable)),
		Entry("osType", writing("osType", "Windows", immutable)),
		Entry("sku", writing("sku", "other", immutable)),
		Entry("osDiskSizeGB", writing("osDiskSizeGB", "40", immutable)),
		Entry("maxPods", writing("maxPods", "31", immutable)),
		Entry("osDiskType", writing("osDiskType", "Ephemeral", immutable)),
		Entry("scaleSetPriority", writing("scaleSetPriority", "Spot", immutable)),
		Entry("enableUltraSSD", writing("enableUltraSSD", "false", immutable)),
		Entry("enableNodePublicIP", writing("enableNodePublicIP", "false", immutable)),
		Entry("nodePublicIPPrefixID", writing("nodePublicIPPrefixID", "x", immutable)),
		Entry("kubeletConfig", writing("kubeletConfig", "{failSwapOn: true}", immutable)),
		Entry("kubeletDiskType", writing("kubeletDiskType", "Temporary", immutable)),
		Entry("linuxOSConfig", writing("linuxOSConfig", "{swapFileSizeMB: 1501}", immutable)),
		Entry("availabilityZones", writing("availabilityZones", "['1', '3']", immutable)),
		Entry("subnetName", writing("subnetName", "other", immutable)),
	)

	DescribeTable("accepts a change of a field that is mutable in Azure", func(ctx SpecContext, r row) { r.change(ctx, subject) },
		Entry("the order of zones", writing("availabilityZones", "['2', '1']", "")),
		Entry("scaling", writing("scaling", "{minSize: 1, maxSize: 3}", "")),
		Entry("FIPS, once", writing("enableFIPS", "true", "")),
		Entry("taints", writing("taints", "[{effect: NoSchedule, key: k, value: v}]", "")),
		Entry("labels", writing("nodeLabels", "{a: b}", "")),
		Entry("encryption, once", writing("enableEncryptionAtHost", "false", "")),
	)

	DescribeTable("is validated on creation", func(ctx SpecContext, r row) { r.attempt(ctx, pool(namespace, "new1", "System")) },
		Entry("9 pods", writing("maxPods", "9", "MaxPods must be between 10 and 250")),
		Entry("10 pods", writing("maxPods", "10", "")),
		Entry("250 pods", writing("maxPods", "250", "")),
		Entry("251 pods", writing("maxPods", "251", "MaxPods must be between 10 and 250")),
		Entry("a system pool with Windows", writing("osType", "Windows", "must have OSType 'Linux'")),
		Entry("a long name", writing("metadata.name", "abcdefghijklm", "can not be longer than 12 characters")),
		Entry("a name of 12", writing("metadata.name", "abcdefghijkl", "")),
		Entry("a long name for Windows", writing("name", "abcdefg", "").beside("mode", "User")),
		Entry("a name with a capital", writing("name", "poolA", "lowercase alphanumeric")),
		Entry("a name that begins with a digit", writing("name", "1pool", "must begin with a lowercase letter")),
		Entry("a label with Azure's prefix", writing("nodeLabels", "{kubernetes.azure.com/x: z}", "must not start with kubernetes.azure.com")),
		Entry("an invalid resource ID of the IP prefix", writing("nodePublicIPPrefixID", "x", "resource ID must match").beside("enableNodePublicIP", "true")),
		Entry("an IP prefix without public IPs", writing("nodePublicIPPrefixID", "subscriptions/"+subscription+"/resourcegroups/g/providers/microsoft.network/publicipprefixes/p", "must be set to true when NodePublicIPPrefixID is set")),
		Entry("an invalid subnet name", writing("subnetName", "-x", "subnet name does not match")),
		Entry("a period without unit", writing("kubeletConfig", "{cpuCfsQuotaPeriod: '100'}", "'ms' suffix")),
		Entry("a period", writing("kubeletConfig", "{cpuCfsQuotaPeriod: 100ms}", "")),
		Entry("a low threshold above the high one", writing("kubeletConfig", "{imageGcLowThreshold: 81, imageGcHighThreshold: 80}", "ImageGcLowThreshold=81, ImageGcHighThreshold=80")),
		Entry("equal thresholds", writing("kubeletConfig", "{imageGcLowThreshold: 80, imageGcHighThreshold: 80}", "")),
		Entry("a threshold above 100", writing("kubeletConfig", "{imageGcHighThreshold: 101}", "less than or equal to 100")),
		Entry("unsafe sysctls", writing("kubeletConfig", "{allowedUnsafeSysctls: [kernel.shm_rmid_forced, kernel.sem, fs.mqueue.x, net.core.somaxconn, kernel.msgmax]}", "")),
		Entry("other sysctls", writing("kubeletConfig", "{allowedUnsafeSysctls: [vm.swappiness]}", "not a supported AllowedUnsafeSysctls")),
		Entry("too few log files", writing("kubeletConfig", "{containerLogMaxFiles: 1}", "greater than or equal to 2")),
		Entry("pids", writing("kubeletConfig", "{podMaxPids: -2}", "greater than or equal to -1")),
		Entry("an unknown CPU manager policy", writing("kubeletConfig", "{cpuManagerPolicy: dynamic}", "Unsupported value")),
		Entry("an unknown topology manager policy", writing("kubeletConfig", "{topologyManagerPolicy: x}", "Unsupported value")),
		Entry("swap", writing("linuxOSConfig", "{swapFileSizeMB: 100}", "FailSwapOn must be set to false")),
		Entry("swap with failSwapOn false", writing("linuxOSConfig", "{swapFileSizeMB: 100}", "").beside("kubeletConfig", "{failSwapOn: false}")),
		Entry("a port range that is not numeric", writing("linuxOSConfig", "{sysctls: {netIpv4IPLocalPortRange: a b}}", `must be of the format "<int> <int>"`)),
		Entry("a low first port", writing("linuxOSConfig", "{sysctls: {netIpv4IPLocalPortRange: 1023 33000}}", "first port of NetIpv4IpLocalPortRange=1023 must be")),
		Entry("a high first port", writing("linuxOSConfig", "{sysctls: {netIpv4IPLocalPortRange: 61000 62000}}", "first port of NetIpv4IpLocalPortRange=61000")),
		Entry("a low last port", writing("linuxOSConfig", "{sysctls: {netIpv4IPLocalPortRange: 1024 32767}}", "last port of NetIpv4IpLocalPortRange=32767")),
		Entry("a high last port", writing("linuxOSConfig", "{sysctls: {netIpv4IPLocalPortRange: 1024 65001}}", "last port of NetIpv4IpLocalPortRange=65001")),
		Entry("a port range in the wrong order", writing("linuxOSConfig", "{sysctls: {netIpv4IPLocalPortRange: 60000 33000}}", "cannot be greater than last port")),
		Entry("the largest port range", writing("linuxOSConfig", "{sysctls: {netIpv4IPLocalPortRange: 1024 65000}}", "")),
		Entry("an unknown taint effect", writing("taints", "[{effect: no-schedule, key: k, value: v}]", "Unsupported value")),
	)

	It("rejects kernel settings out of range", func(ctx SpecContext) {
		for name, limits := range sysctls {
			for value, taken := range map[int]bool{limits[0] - 1: false, limits[0]: true, limits[1]: true, limits[1] + 1: false} {
				object := pool(namespace, "new1", "User")
				set("spec.linuxOSConfig", fmt.Sprintf("{sysctls: {%s: %d}}", name, value))(object)
				err := masters.Create(ctx, object, client.DryRunAll)
				if taken {
					Expect(err).NotTo(HaveOccurred(), "%s: %d", name, value)
				} else {
					Expect(err).To(beInvalid("spec.linuxOSConfig.sysctls."+name, "should be"), "%s: %d", name, value)
				}
			}
		}
	})
})

// sysctls are the kernel settings of a pool with their ranges, from the book's table.
var sysctls = map[string][2]int{
	"fsAioMaxNr": {65536, 6553500}, "fsFileMax": {8192, 12000500}, "fsInotifyMaxUserWatches": {781250, 2097152}, "fsNrOpen": {8192, 20000500},
	"kernelThreadsMax": {20, 513785}, "netCoreNetdevMaxBacklog": {1000, 3240000}, "netCoreOptmemMax": {20480, 4194304},
	"netCoreRmemDefault": {212992, 134217728}, "netCoreRmemMax": {212992, 134217728}, "netCoreSomaxconn": {4096, 3240000},
	"netCoreWmemDefault": {212992, 134217728}, "netCoreWmemMax": {212992, 134217728}, "netIpv4NeighDefaultGcThresh1": {128, 80000},
	"netIpv4NeighDefaultGcThresh2": {512, 90000}, "netIpv4NeighDefaultGcThresh3": {1024, 100000}, "netIpv4TCPFinTimeout": {5, 120},
	"netIpv4TCPKeepaliveProbes": {1, 15}, "netIpv4TCPKeepaliveTime": {30, 432000}, "netIpv4TCPMaxSynBacklog": {128, 3240000},
	"netIpv4TCPMaxTwBuckets": {8000, 1440000}, "netIpv4TCPkeepaliveIntvl": {1, 75}, "netNetfilterNfConntrackBuckets": {65536, 147456},
	"netNetfilterNfConntrackMax": {131072, 1048576}, "vmMaxMapCount": {65530, 262144}, "vmSwappiness": {0, 100}, "vmVfsCachePressure": {1, 500},
}
