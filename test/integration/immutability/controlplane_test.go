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

const subscription = "00000000-0000-0000-0000-000000000000"

// controlPlane returns an object with every immutable field.
func controlPlane(namespace, name string) *unstructured.Unstructured {
	GinkgoHelper()
	return objectFrom(fmt.Sprintf(`
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: AzureManagedControlPlane
metadata: {name: %s, namespace: %s, labels: {cluster.x-k8s.io/cluster-name: aks}}
spec:
  identityRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: AzureClusterIdentity, name: absent}
  subscriptionID: `+subscription+`
  resourceGroupName: rg
  nodeResourceGroupName: nodes
  location: westeurope
  sshPublicKey: c3NoLXJzYSBBQUFB
  dnsServiceIP: 10.1.0.10
  dnsPrefix: prefix
  networkPlugin: azure
  networkPolicy: azure
  networkDataplane: azure
  loadBalancerSKU: Standard
  outboundType: loadBalancer
  azureEnvironment: AzurePublicCloud
  httpProxyConfig: {httpProxy: "http://proxy"}
  version: v1.27.3
  virtualNetwork: {name: vnet, cidrBlock: 10.0.0.0/8, resourceGroup: rg, subnet: {name: subnet, cidrBlock: 10.240.0.0/16}}
  apiServerAccessProfile: {authorizedIPRanges: [1.2.3.0/24], enablePrivateCluster: true}
  addonProfiles: [{name: azurepolicy, enabled: true}, {name: other, enabled: true}]
  aadProfile: {managed: true, adminGroupObjectIDs: [g]}
  disableLocalAccounts: true
  autoUpgradeProfile: {upgradeChannel: stable}
  oidcIssuerProfile: {enabled: true}
  fleetsMember: {managerName: m, managerResourceGroup: rg, name: member}
  extensions: [{name: flux, extensionType: microsoft.flux, releaseTrain: Stable, plan: {name: p, product: prod, publisher: pub}, scope: {scopeType: Cluster, releaseNamespace: flux}, identity: SystemAssigned}]
  identity: {type: UserAssigned, userAssignedIdentityResourceID: id}
  securityProfile:
    azureKeyVaultKms: {enabled: true, keyID: k}
    workloadIdentity: {enabled: true}
    imageCleaner: {enabled: true, intervalHours: 48}
    defender: {logAnalyticsWorkspaceResourceID: w, securityMonitoring: {enabled: true}}
`, name, namespace))
}

var _ = Describe("A managed control plane", Ordered, func() {
	var namespace string
	var subject *unstructured.Unstructured
	BeforeAll(func(ctx SpecContext) {
		namespace = expect.FreshNamespace(ctx, masters)
		expect.Created(ctx, masters, capiCluster(namespace, "aks"))
		subject = controlPlane(namespace, "aks")
		expect.Created(ctx, masters, subject)
	})

	DescribeTable("rejects a change of a field that is immutable in Azure", func(ctx SpecContext, r row) { r.change(ctx, subject) },
		Entry("subscriptionID", writing("subscriptionID", "x", immutable)),
		Entry("resourceGroupName", writing("resourceGroupName", "x", immutable)),
		Entry("nodeResourceGroupName", writing("nodeResourceGroupName", "x", immutable)),
		Entry("nodeResourceGroupName, unset", writing("nodeResourceGroupName", "", "unable to set an empty value")),
		Entry("location", writing("location", "x", immutable)),
		Entry("sshPublicKey", writing("sshPublicKey", "YWJj", immutable)),
		Entry("dnsServiceIP", writing("dnsServiceIP", "10.1.1.10", immutable)),
		Entry("dnsPrefix", writing("dnsPrefix", "other", immutable)),
		Entry("networkPlugin", writing("networkPlugin", "kubenet", immutable)),
		Entry("networkPolicy", writing("networkPolicy", "calico", immutable)),
		Entry("networkDataplane", writing("networkDataplane", "", immutable)),
		Entry("loadBalancerSKU", writing("loadBalancerSKU", "Basic", immutable)),
		Entry("outboundType", writing("outboundType", "managedNATGateway", immutable)),
		Entry("azureEnvironment", writing("azureEnvironment", "AzureChinaCloud", immutable)),
		Entry("httpProxyConfig", writing("httpProxyConfig.httpProxy", "x", immutable).at("httpProxyConfig")),
		Entry("virtualNetwork.name", writing("virtualNetwork.name", "x", "Virtual Network Name is immutable")),
		Entry("virtualNetwork.cidrBlock", writing("virtualNetwork.cidrBlock", "10.0.0.0/7", "Virtual Network CIDRBlock is immutable")),
		Entry("virtualNetwork.resourceGroup", writing("virtualNetwork.resourceGroup", "x", "Virtual Network Resource Group is immutable")),
		Entry("virtualNetwork.subnet.name", writing("virtualNetwork.subnet.name", "x", "Subnet Name is immutable")),
		Entry("virtualNetwork.subnet.cidrBlock", writing("virtualNetwork.subnet.cidrBlock", "10.241.0.0/16", "Subnet CIDRBlock is immutable")),
		Entry("apiServerAccessProfile", writing("apiServerAccessProfile.enablePrivateCluster", "false", "fields (except for AuthorizedIPRanges) are immutable").at("apiServerAccessProfile")),
		Entry("addonProfiles", writing("addonProfiles", "[{name: azurepolicy, enabled: true}]", "cannot remove an addonProfile").at("addonProfiles[name]")),
		Entry("aadProfile", writing("aadProfile", "", "cannot disable AADProfile")),
		Entry("aadProfile.managed", writing("aadProfile.managed", "false", "cannot set AADProfile.Managed to false")),
		Entry("aadProfile.adminGroupObjectIDs", writing("aadProfile.adminGroupObjectIDs", "[]", "cannot be zero")),
		Entry("disableLocalAccounts", writing("disableLocalAccounts", "false", immutable)),
		Entry("autoUpgradeProfile", writing("autoUpgradeProfile", "", "set the channel to none").at("autoUpgradeProfile.upgradeChannel")),
		Entry("version", writing("version", "v1.26.9", "field version cannot be downgraded")),
		Entry("oidcIssuerProfile", writing("oidcIssuerProfile.enabled", "false", "cannot be disabled")),
		Entry("fleetsMember.name", writing("fleetsMember.name", "other", "Name is immutable")),
		Entry("extensions", writing("extensions", "[{name: flux, extensionType: other, scope: {scopeType: Cluster, releaseNamespace: flux}}]", immutable).at("extensions[name].extensionType")),
		Entry("extensions' scope", writing("extensions", "[{name: flux, extensionType: microsoft.flux, scope: {scopeType: Cluster, releaseNamespace: x}}]", immutable).at("extensions[name].scope")),
		Entry("securityProfile.azureKeyVaultKms", writing("securityProfile.azureKeyVaultKms", "", "cannot unset Spec.SecurityProfile.AzureKeyVaultKms")),
		Entry("securityProfile.workloadIdentity", writing("securityProfile.workloadIdentity", "", "cannot unset")),
		Entry("securityProfile.imageCleaner", writing("securityProfile.imageCleaner", "", "cannot unset")),
		Entry("securityProfile.defender", writing("securityProfile.defender", "", "SecurityMonitoring.Enabled")),
	)

	DescribeTable("accepts a change of a field that is mutable in Azure", func(ctx SpecContext, r row) { r.change(ctx, subject) },
		Entry("nothing", writing("metadata.labels.x", "z", "")),
		Entry("the authorized ranges", writing("apiServerAccessProfile.authorizedIPRanges", "[4.5.6.0/24]", "")),
		Entry("the subnet's endpoints", writing("virtualNetwork.subnet.serviceEndpoints", "[{service: Microsoft.Sql, locations: ['*']}]", "")),
		Entry("the subnet's private endpoints", writing("virtualNetwork.subnet.privateEndpoints", "[{name: e}]", "")),
		Entry("enabling of add-ons", writing("addonProfiles", "[{name: other, enabled: false}, {name: azurepolicy, enabled: false}]", "")),
		Entry("the version, upwards", writing("version", "v1.28.0", "")),
		Entry("removing fleetsMember", writing("fleetsMember", "", "")),
		Entry("an extension's settings", writing("extensions", "[{name: flux, extensionType: microsoft.flux, releaseTrain: Stable, autoUpgradeMinorVersion: true, configurationSettings: {a: b}, plan: {name: p, product: prod, publisher: pub}, scope: {scopeType: Cluster, releaseNamespace: flux}, identity: SystemAssigned}]", "")),
		Entry("an image cleaner", writing("securityProfile.imageCleaner.enabled", "false", "")),
	)

	It("is rejected with all errors at once", func(ctx SpecContext) {
		Expect(change(ctx, masters, subject, func(o *unstructured.Unstructured) {
			set("spec.location", "x")(o)
			set("spec.loadBalancerProfile", "{managedOutboundIPs: 101}")(o)
		})).To(beInvalid("spec.location", "field is immutable", "spec.loadBalancerProfile.managedOutboundIPs", "value should be in between 1 and 100"))
	})

	It("accepts removal of finalizers while the object is being deleted, also when it is invalid", func(ctx SpecContext) {
		bad := controlPlane(namespace, "going")
		bad.SetFinalizers([]string{"example.org/wait"})
		expect.Created(ctx, masters, bad)
		Expect(masters.Delete(ctx, bad)).To(Succeed())
		Expect(change(ctx, masters, bad, func(o *unstructured.Unstructured) { set("spec.location", "x")(o); o.SetFinalizers(nil) })).To(Succeed())
	})

	DescribeTable("is validated on creation", func(ctx SpecContext, r row) { r.create(ctx, controlPlane(namespace, "new")) },
		Entry("a name with windows", writing("metadata.name", "my-windows-1", "'MICROSOFT' and 'WINDOWS' can't be used")),
		Entry("an invalid version", writing("version", "latest", "must be a valid semantic version")),
		Entry("an invalid DNS prefix", writing("dnsPrefix", "-x", "does not match regex")),
		Entry("a key that is no base64", writing("sshPublicKey", "ssh-rsa AAAA", "not properly base64 encoded")),
		Entry("no managed IPs", writing("loadBalancerProfile", "{managedOutboundIPs: 0}", "between 1 and 100").at("loadBalancerProfile.managedOutboundIPs")),
		Entry("one managed IP", writing("loadBalancerProfile", "{managedOutboundIPs: 1}", "")),
		Entry("100 managed IPs", writing("loadBalancerProfile", "{managedOutboundIPs: 100}", "")),
		Entry("101 managed IPs", writing("loadBalancerProfile", "{managedOutboundIPs: 101}", "between 1 and 100").at("loadBalancerProfile.managedOutboundIPs")),
		Entry("64000 ports", writing("loadBalancerProfile", "{allocatedOutboundPorts: 64000}", "")),
		Entry("64001 ports", writing("loadBalancerProfile", "{allocatedOutboundPorts: 64001}", "between 0 and 64000").at("loadBalancerProfile.allocatedOutboundPorts")),
		Entry("3 minutes", writing("loadBalancerProfile", "{idleTimeoutInMinutes: 3}", "between 4 and 120").at("loadBalancerProfile.idleTimeoutInMinutes")),
		Entry("120 minutes", writing("loadBalancerProfile", "{idleTimeoutInMinutes: 120}", "")),
		Entry("121 minutes", writing("loadBalancerProfile", "{idleTimeoutInMinutes: 121}", "between 4 and 120").at("loadBalancerProfile.idleTimeoutInMinutes")),
		Entry("two kinds of outbound IPs", writing("loadBalancerProfile", "{managedOutboundIPs: 2, outboundIPs: [x]}", "at most one of")),
		Entry("a subnet outside of its network", writing("virtualNetwork.subnet.cidrBlock", "11.0.0.0/16", "should contain the subnet CIDR block")),
		Entry("an invalid CIDR", writing("virtualNetwork.cidrBlock", "10.0.0.0", "invalid CIDR format")),
		Entry("an invalid authorized IP range", writing("apiServerAccessProfile.authorizedIPRanges", "[1.2.3]", "invalid CIDR format")),
		Entry("an invalid DNS zone", writing("apiServerAccessProfile.privateDNSZone", "x", "invalid private DNS zone")),
		Entry("a DNS zone of a public cluster", writing("apiServerAccessProfile", "{privateDNSZone: /subscriptions/s/resourceGroups/g/providers/Microsoft.Network/privateDnsZones/private.westeurope.azmk8s.io}", "Private Cluster should be enabled").at("apiServerAccessProfile.enablePrivateCluster")),
		Entry("a DNS zone of a private cluster", writing("apiServerAccessProfile.privateDNSZone", "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/privateDnsZones/private.westeurope.azmk8s.io", "")),
		Entry("an invalid name of the fleet member", writing("fleetsMember.name", "Member", "Name must match")),
		Entry("policy cilium without its dataplane", writing("networkPolicy", "cilium", "can only be used with cilium network dataplane")),
		Entry("dataplane cilium without overlay", writing("networkDataplane", "cilium", "overlay network plugin mode")),
		Entry("an autoscaler's delay", writing("autoscalerProfile", "{newPodScaleUpDelay: soon}", "invalid value").at("autoscalerProfile.newPodScaleUpDelay")),
		Entry("an autoscaler's threshold", writing("autoscalerProfile", "{scaleDownUtilizationThreshold: '1.5'}", "invalid value").at("autoscalerProfile.scaleDownUtilizationThreshold")),
		Entry("an autoscaler's percentage", writing("autoscalerProfile", "{maxTotalUnreadyPercentage: '101'}", "invalid value").at("autoscalerProfile.maxTotalUnreadyPercentage")),
		Entry("UserAssigned without an identity", writing("identity", "{type: UserAssigned}", "cannot be empty").at("identity.userAssignedIdentityResourceID")),
		Entry("SystemAssigned with an identity", writing("identity", "{type: SystemAssigned, userAssignedIdentityResourceID: x}", "should be empty").at("identity.userAssignedIdentityResourceID")),
		Entry("a key vault without a user-assigned identity", writing("identity", "{type: SystemAssigned}", "only when Spec.Identity.Type is UserAssigned").at("securityProfile.azureKeyVaultKms.keyVaultResourceID")),
		Entry("a private key vault without its ID", writing("securityProfile.azureKeyVaultKms.keyVaultNetworkAccess", "Private", "cannot be empty when").at("securityProfile.azureKeyVaultKms.keyVaultResourceID")),
		Entry("a public key vault with an ID", writing("securityProfile.azureKeyVaultKms.keyVaultResourceID", "x", "should be empty when")),
		Entry("workload identity without an issuer", writing("oidcIssuerProfile", "", "OIDCIssuerProfile").at("securityProfile.workloadIdentity")),
		Entry("disabled local accounts without AAD", writing("aadProfile", "", "only for AAD enabled clusters").at("disableLocalAccounts")),
		Entry("an extension with a version and automatic upgrades", writing("extensions", "[{name: a, extensionType: t, version: '1'}]", "Version must not be given")),
		Entry("a cluster-scoped extension without a release namespace", writing("extensions", "[{name: a, extensionType: t, scope: {scopeType: Cluster}}]", "ReleaseNamespace must be provided")),
		Entry("a namespaced extension with a release namespace", writing("extensions", "[{name: a, extensionType: t, scope: {scopeType: Namespace, targetNamespace: x, releaseNamespace: z}}]", "ReleaseNamespace can only be given")),
		Entry("a DNS service that does not end in .10", writing("dnsServiceIP", "10.1.0.11", `must end with ".10"`)),
		Entry("a DNS service outside the service CIDR", writing("dnsServiceIP", "10.2.0.10", "must reside within the associated cluster serviceCIDR")),
		Entry("a DNS service whose Cluster does not exist", writing("metadata.labels", "{cluster.x-k8s.io/cluster-name: absent}", "")),
		Entry("no identityRef", writing("identityRef", "", "Required value")),
	)

	It("can have one CIDR for Pods and one for Services", func(ctx SpecContext) {
		cluster := capiCluster(namespace, "dual")
		set("spec.clusterNetwork.pods.cidrBlocks", "[10.3.0.0/16, 10.4.0.0/16]")(cluster)
		expect.Created(ctx, masters, cluster)
		object := controlPlane(namespace, "dual")
		object.SetLabels(map[string]string{"cluster.x-k8s.io/cluster-name": "dual"})
		Expect(masters.Create(ctx, object, client.DryRunAll)).To(beInvalid("spec", "one CIDR block for pods"))
	})

	It("keeps the name that it got before DNS prefixes existed", func(ctx SpecContext) {
		object := controlPlane(namespace, "older")
		set("spec.dnsPrefix", "")(object)
		expect.Created(ctx, masters, object)
		Expect(change(ctx, masters, object, set("spec.dnsPrefix", "other"))).To(beInvalid("spec.dnsPrefix", "field is immutable"))
		Expect(change(ctx, masters, object, set("spec.dnsPrefix", "older"))).To(Succeed())
	})

	It("cannot be downgraded below the version that Azure upgraded to", func(ctx SpecContext) {
		object := controlPlane(namespace, "upgraded")
		expect.Created(ctx, masters, object)
		set("status.autoUpgradeVersion", "v1.29.4")(object)
		Expect(masters.Status().Update(ctx, object)).To(Succeed())
		Expect(change(ctx, masters, object, set("spec.version", "v1.28.0"))).To(beInvalid("spec.version", "version is auto-upgraded to v1.29.4, cannot be downgraded"))
	})

	It("cannot switch to overlay with a network policy, and can without", func(ctx SpecContext) {
		Expect(change(ctx, masters, subject, set("spec.networkPluginMode", "overlay"))).To(beInvalid("spec.networkPluginMode", `"overlay" NetworkPluginMode cannot be enabled when NetworkPolicy is set`))
		object := controlPlane(namespace, "plain")
		set("spec.networkPolicy", "")(object)
		expect.Created(ctx, masters, object)
		Expect(change(ctx, masters, object, set("spec.networkPluginMode", "overlay"))).To(Succeed())
	})

	It("causes a warning without a system pool, identity or Cluster", func(ctx SpecContext) {
		listener, heard := listening()
		object := controlPlane(expect.FreshNamespace(ctx, masters), "lonely")
		Expect(listener.Create(ctx, object)).To(Succeed())
		Expect(heard.take()).To(ContainElements(
			ContainSubstring("at least one AzureManagedMachinePool of mode System"),
			ContainSubstring("AzureClusterIdentity "+object.GetNamespace()+"/absent is not found"),
			ContainSubstring("Cluster "+object.GetNamespace()+"/aks is not found")))
	})
})
