// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"fleetgate.io/fleetgate/test/support/expect"
)

// azureCluster returns a valid AzureCluster.
func azureCluster(namespace, name string) *unstructured.Unstructured {
	GinkgoHelper()
	return objectFrom(fmt.Sprintf(`
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: AzureCluster
metadata: {name: %s, namespace: %s, labels: {cluster.x-k8s.io/cluster-name: aks}}
spec:
  identityRef: {kind: AzureClusterIdentity, name: absent}
  location: westeurope
  resourceGroup: rg
  subscriptionID: s
  azureEnvironment: AzurePublicCloud
  controlPlaneEndpoint: {host: h, port: 6443}
  bastionSpec: {azureBastion: {name: b}}
  cloudProviderConfigOverrides: {backOffs: {cloudProviderBackoff: true}}
  networkSpec:
    privateDNSZoneName: my.zone
    privateDNSZoneResourceGroup: rg
    vnet: {name: v, cidrBlocks: [10.0.0.0/8], tags: {sigs.k8s.io_cluster-api-provider-azure_cluster_c: owned}}
    subnets:
    - {name: cp, role: control-plane, cidrBlocks: [10.0.0.0/16], securityGroup: {name: sg}, routeTable: {name: rt}}
    - {name: node, role: node, cidrBlocks: [10.1.0.0/16], natGateway: {name: ng}}
    apiServerLB: {type: Internal, sku: Standard, name: lb, idleTimeoutInMinutes: 4, availabilityZones: ["1", "2"], frontendIPs: [{name: f, privateIP: 10.0.0.100}]}
    controlPlaneOutboundLB: {frontendIPsCount: 1}
    nodeOutboundLB: {name: nlb, sku: Standard, type: Public, id: i, frontendIPsCount: 1, idleTimeoutInMinutes: 4}
`, name, namespace))
}

var _ = Describe("A self-managed cluster", Ordered, func() {
	var subject *unstructured.Unstructured
	BeforeAll(func(ctx SpecContext) {
		subject = azureCluster(expect.FreshNamespace(ctx, masters), "self")
		expect.Created(ctx, masters, subject)
	})

	DescribeTable("rejects a change of a field that is immutable in Azure", func(ctx SpecContext, r row) { r.change(ctx, subject) },
		Entry("resourceGroup", writing("resourceGroup", "x", immutable)),
		Entry("subscriptionID", writing("subscriptionID", "x", immutable)),
		Entry("location", writing("location", "x", immutable)),
		Entry("azureEnvironment", writing("azureEnvironment", "AzureChinaCloud", immutable)),
		Entry("privateDNSZoneName", writing("networkSpec.privateDNSZoneName", "other.zone", immutable)),
		Entry("privateDNSZoneResourceGroup", writing("networkSpec.privateDNSZoneResourceGroup", "x", immutable)),
		Entry("privateDNSZone", writing("networkSpec.privateDNSZone", "System", immutable)),
		Entry("controlPlaneOutboundLB", writing("networkSpec.controlPlaneOutboundLB", "{frontendIPsCount: 2}", immutable)),
		Entry("host", writing("controlPlaneEndpoint.host", "x", immutable)),
		Entry("port", writing("controlPlaneEndpoint.port", "1", immutable)),
		Entry("bastion", writing("bastionSpec.azureBastion", "", "azure bastion cannot be removed")),
		Entry("zones of the load balancer", writing("networkSpec.apiServerLB.availabilityZones", "['1']", immutable)),
		Entry("type of the load balancer", writing("networkSpec.apiServerLB.type", "Public", "API Server load balancer type should not be modified")),
		Entry("name of the load balancer", writing("networkSpec.apiServerLB.name", "x", "API Server load balancer name should not be modified")),
		Entry("SKU of the load balancer", writing("networkSpec.apiServerLB.sku", "Basic", "API Server load balancer SKU should not be modified")),
		Entry("timeout of the load balancer", writing("networkSpec.apiServerLB.idleTimeoutInMinutes", "5", "idle timeout cannot be modified")),
		Entry("private IP", writing("networkSpec.apiServerLB.frontendIPs", "[{name: f, privateIP: 10.0.0.101}]", "private IP should not be modified").at("networkSpec.apiServerLB.frontendIPs[name].privateIP")),
		Entry("outbound ID", writing("networkSpec.nodeOutboundLB.id", "x", "Node outbound load balancer ID should not be modified")),
		Entry("outbound name", writing("networkSpec.nodeOutboundLB.name", "x", "Node outbound load balancer Name should not be modified")),
		Entry("outbound SKU", writing("networkSpec.nodeOutboundLB.sku", "x", "Node outbound load balancer SKU should not be modified")),
		Entry("outbound type", writing("networkSpec.nodeOutboundLB.type", "x", "Type cannot be modified")),
		Entry("outbound timeout", writing("networkSpec.nodeOutboundLB.idleTimeoutInMinutes", "5", "idle timeout cannot be modified")),
		Entry("overrides", writing("cloudProviderConfigOverrides.backOffs.cloudProviderBackoff", "false", "cannot change cloudProviderConfigOverrides").at("cloudProviderConfigOverrides")),
		Entry("an owned subnet", writing("networkSpec.subnets", "[{name: node, role: node, cidrBlocks: [10.2.0.0/16], natGateway: {name: ng}}]", immutable).at("networkSpec.subnets[name].cidrBlocks")),
		Entry("a route table", writing("networkSpec.subnets", "[{name: cp, role: control-plane, cidrBlocks: [10.0.0.0/16], securityGroup: {name: sg}, routeTable: {name: x}}]", immutable).at("networkSpec.subnets[name].routeTable.name")),
		Entry("a security group", writing("networkSpec.subnets", "[{name: cp, role: control-plane, cidrBlocks: [10.0.0.0/16], securityGroup: {name: x}, routeTable: {name: rt}}]", immutable).at("networkSpec.subnets[name].securityGroup.name")),
		Entry("a NAT gateway", writing("networkSpec.subnets", "[{name: node, role: node, cidrBlocks: [10.1.0.0/16], natGateway: {name: x}}]", immutable).at("networkSpec.subnets[name].natGateway.name")),
	)

	It("accepts another order of zones, and changes of a subnet in a network that it does not own", func(ctx SpecContext) {
		Expect(change(ctx, masters, subject, set("spec.networkSpec.apiServerLB.availabilityZones", "['2', '1']"))).To(Succeed())
		foreign := azureCluster(subject.GetNamespace(), "foreign")
		set("spec.networkSpec.vnet", "{name: v, resourceGroup: other, cidrBlocks: [10.0.0.0/8]}")(foreign)
		expect.Created(ctx, masters, foreign)
		Expect(change(ctx, masters, foreign, func(o *unstructured.Unstructured) {
			subnets, _, _ := unstructured.NestedSlice(o.Object, "spec", "networkSpec", "subnets")
			subnets[1].(map[string]any)["cidrBlocks"] = []any{"10.2.0.0/16"}
			Expect(unstructured.SetNestedSlice(o.Object, subnets, "spec", "networkSpec", "subnets")).To(Succeed())
		})).To(Succeed())
	})

	DescribeTable("is validated on creation", func(ctx SpecContext, r row) { r.attempt(ctx, azureCluster(subject.GetNamespace(), "new")) },
		Entry("unchanged", writing("metadata.labels.x", "z", "")),
		Entry("45 characters", writing("metadata.name", strings.Repeat("a", 45), "longer than allowed length of 44")),
		Entry("44 characters", writing("metadata.name", strings.Repeat("a", 44), "")),
		Entry("a dot in the name", writing("metadata.name", "a.b", "can contain only lowercase alphanumeric")),
		Entry("no identity", writing("identityRef", "", "identityRef is required")),
		Entry("another kind of identity", writing("identityRef", "{kind: Secret, name: x}", "only AzureClusterIdentity is supported")),
		Entry("tunneling with the Basic bastion", writing("bastionSpec.azureBastion", "{enableTunneling: true}", "sku must be Standard if tunneling is enabled")),
		Entry("an unknown type of load balancer", writing("networkSpec.apiServerLB.type", "Other", `"Public", "Internal"`)),
		Entry("a Basic load balancer", writing("networkSpec.apiServerLB.sku", "Basic", `"Standard"`)),
		Entry("a private IP outside the control plane subnet", writing("networkSpec.apiServerLB.frontendIPs", "[{name: f, privateIP: 10.1.0.4}]", "needs to be in control plane subnet range")),
		Entry("an invalid IP address", writing("networkSpec.apiServerLB.frontendIPs", "[{name: f, privateIP: x}]", "isn't a valid IPv4 or IPv6 address")),
		Entry("a public IP of an internal load balancer", writing("networkSpec.apiServerLB.frontendIPs", "[{name: f, publicIP: {name: p}}]", "Internal Load Balancers cannot have a Public IP")),
		Entry("two frontend IPs", writing("networkSpec.apiServerLB.frontendIPs", "[{name: f, privateIP: 10.0.0.4}, {name: g, privateIP: 10.0.0.5}]", "should have 1 Frontend IP")),
		Entry("a timeout out of range", writing("networkSpec.apiServerLB.idleTimeoutInMinutes", "31", "between 4 and 30 minutes")),
		Entry("an outbound load balancer of a public cluster", writing("networkSpec.apiServerLB", "{type: Public}", "cannot be set for public clusters")),
		Entry("a DNS zone of a public cluster", writing("networkSpec.apiServerLB", "{type: Public}", "available only if APIServerLB.Type is Internal")),
		Entry("a private IP of a public load balancer", writing("networkSpec.apiServerLB", "{type: Public, frontendIPs: [{name: f, privateIP: 10.0.0.4}]}", "Public Load Balancers cannot have a Private IP")),
		Entry("an invalid DNS zone name", writing("networkSpec.privateDNSZoneName", "my_zone-", "PrivateDNSZoneName can only contain")),
		Entry("a DNS zone's resource group without the zone", writing("networkSpec.privateDNSZoneName", "", "only be used when PrivateDNSZoneName is provided")),
		Entry("17 outbound IPs", writing("networkSpec.nodeOutboundLB.frontendIPsCount", "17", "Max front end ips allowed is 16")),
		Entry("a subnet outside the network", writing("networkSpec.subnets", "[{name: cp, role: control-plane, cidrBlocks: [11.0.0.0/16]}]", "subnet CIDR not in vnet address space")),
		Entry("subnets with the same name", writing("networkSpec.subnets", "[{name: cp, role: control-plane}, {name: cp, role: node}]", "Duplicate value")),
		Entry("a rule priority out of range", writing("networkSpec.subnets", "[{name: cp, role: control-plane, securityGroup: {name: s, securityRules: [{name: r, description: d, direction: Inbound, protocol: Tcp, priority: 99}]}}]", "between 100 and 4096")),
		Entry("a rule with two sources", writing("networkSpec.subnets", "[{name: cp, role: control-plane, securityGroup: {name: s, securityRules: [{name: r, description: d, direction: Inbound, protocol: Tcp, source: a, sources: [b]}]}}]", "both source and sources")),
		Entry("an invalid service endpoint name", writing("networkSpec.subnets", "[{name: cp, role: control-plane, serviceEndpoints: [{service: sql, locations: [a]}]}]", "service name of endpoint service doesn't match")),
		Entry("a service endpoint without locations", writing("networkSpec.subnets", "[{name: cp, role: control-plane, serviceEndpoints: [{service: Microsoft.Sql, locations: []}]}]", "locations are required")),
		Entry("a private endpoint without a service connection", writing("networkSpec.subnets", "[{name: cp, role: control-plane, privateEndpoints: [{name: e}]}]", "privateLinkServiceConnections cannot be empty")),
		Entry("a private endpoint outside its subnet", writing("networkSpec.subnets", "[{name: cp, role: control-plane, cidrBlocks: [10.0.0.0/16], privateEndpoints: [{name: e, privateIPAddresses: [10.1.0.4], privateLinkServiceConnections: [{}]}]}]", "needs to be in subnet range")),
		Entry("another resource group's network", writing("networkSpec.vnet.resourceGroup", "other", "")),
		Entry("an invalid resource group of the network", writing("networkSpec.vnet.resourceGroup", "a b", "resourceGroup doesn't match regex")),
		Entry("an invalid CIDR of the network", writing("networkSpec.vnet.cidrBlocks", "[10.0.0.0]", "invalid CIDR format")),
	)
})
