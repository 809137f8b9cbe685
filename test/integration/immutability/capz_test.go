// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const subscription = "00000000-0000-0000-0000-000000000000"

// controlPlane has every field that may not change.
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
		namespace = newNamespace(ctx)
		create(ctx, capiCluster(namespace, "aks"))
		subject = controlPlane(namespace, "aks")
		create(ctx, subject)
	})

	DescribeTable("keeps what Azure does not let change", func(ctx SpecContext, path, value, field, text string) {
		Expect(change(ctx, masters, subject, set(path, value))).To(beInvalid(field, text))
	},
		Entry("subscriptionID", "spec.subscriptionID", "x", "spec.subscriptionID", "field is immutable"),
		Entry("resourceGroupName", "spec.resourceGroupName", "x", "spec.resourceGroupName", "field is immutable"),
		Entry("nodeResourceGroupName", "spec.nodeResourceGroupName", "x", "spec.nodeResourceGroupName", "field is immutable"),
		Entry("nodeResourceGroupName, unset", "spec.nodeResourceGroupName", "", "spec.nodeResourceGroupName", "unable to set an empty value"),
		Entry("location", "spec.location", "x", "spec.location", "field is immutable"),
		Entry("sshPublicKey", "spec.sshPublicKey", "YWJj", "spec.sshPublicKey", "field is immutable"),
		Entry("dnsServiceIP", "spec.dnsServiceIP", "10.1.1.10", "spec.dnsServiceIP", "field is immutable"),
		Entry("dnsPrefix", "spec.dnsPrefix", "other", "spec.dnsPrefix", "field is immutable"),
		Entry("networkPlugin", "spec.networkPlugin", "kubenet", "spec.networkPlugin", "field is immutable"),
		Entry("networkPolicy", "spec.networkPolicy", "calico", "spec.networkPolicy", "field is immutable"),
		Entry("networkDataplane", "spec.networkDataplane", "", "spec.networkDataplane", "field is immutable"),
		Entry("loadBalancerSKU", "spec.loadBalancerSKU", "Basic", "spec.loadBalancerSKU", "field is immutable"),
		Entry("outboundType", "spec.outboundType", "managedNATGateway", "spec.outboundType", "field is immutable"),
		Entry("azureEnvironment", "spec.azureEnvironment", "AzureChinaCloud", "spec.azureEnvironment", "field is immutable"),
		Entry("httpProxyConfig", "spec.httpProxyConfig.httpProxy", "x", "spec.httpProxyConfig", "field is immutable"),
		Entry("virtualNetwork.name", "spec.virtualNetwork.name", "x", "spec.virtualNetwork.name", "Virtual Network Name is immutable"),
		Entry("virtualNetwork.cidrBlock", "spec.virtualNetwork.cidrBlock", "10.0.0.0/7", "spec.virtualNetwork.cidrBlock", "Virtual Network CIDRBlock is immutable"),
		Entry("virtualNetwork.resourceGroup", "spec.virtualNetwork.resourceGroup", "x", "spec.virtualNetwork.resourceGroup", "Virtual Network Resource Group is immutable"),
		Entry("virtualNetwork.subnet.name", "spec.virtualNetwork.subnet.name", "x", "spec.virtualNetwork.subnet.name", "Subnet Name is immutable"),
		Entry("virtualNetwork.subnet.cidrBlock", "spec.virtualNetwork.subnet.cidrBlock", "10.241.0.0/16", "spec.virtualNetwork.subnet.cidrBlock", "Subnet CIDRBlock is immutable"),
		Entry("apiServerAccessProfile", "spec.apiServerAccessProfile.enablePrivateCluster", "false", "spec.apiServerAccessProfile", "fields (except for AuthorizedIPRanges) are immutable"),
		Entry("addonProfiles", "spec.addonProfiles", "[{name: azurepolicy, enabled: true}]", "spec.addonProfiles[name]", "cannot remove an addonProfile"),
		Entry("aadProfile", "spec.aadProfile", "", "spec.aadProfile", "cannot disable AADProfile"),
		Entry("aadProfile.managed", "spec.aadProfile.managed", "false", "spec.aadProfile.managed", "cannot set AADProfile.Managed to false"),
		Entry("aadProfile.adminGroupObjectIDs", "spec.aadProfile.adminGroupObjectIDs", "[]", "spec.aadProfile.adminGroupObjectIDs", "cannot be zero"),
		Entry("disableLocalAccounts", "spec.disableLocalAccounts", "false", "spec.disableLocalAccounts", "field is immutable"),
		Entry("autoUpgradeProfile", "spec.autoUpgradeProfile", "", "spec.autoUpgradeProfile.upgradeChannel", "set the channel to none"),
		Entry("version", "spec.version", "v1.26.9", "spec.version", "field version cannot be downgraded"),
		Entry("oidcIssuerProfile", "spec.oidcIssuerProfile.enabled", "false", "spec.oidcIssuerProfile.enabled", "cannot be disabled"),
		Entry("fleetsMember.name", "spec.fleetsMember.name", "other", "spec.fleetsMember.name", "Name is immutable"),
		Entry("extensions", "spec.extensions", "[{name: flux, extensionType: other, scope: {scopeType: Cluster, releaseNamespace: flux}}]", "spec.extensions[name].extensionType", "field is immutable"),
		Entry("extensions' scope", "spec.extensions", "[{name: flux, extensionType: microsoft.flux, scope: {scopeType: Cluster, releaseNamespace: x}}]", "spec.extensions[name].scope", "field is immutable"),
		Entry("securityProfile.azureKeyVaultKms", "spec.securityProfile.azureKeyVaultKms", "", "spec.securityProfile.azureKeyVaultKms", "cannot unset Spec.SecurityProfile.AzureKeyVaultKms"),
		Entry("securityProfile.workloadIdentity", "spec.securityProfile.workloadIdentity", "", "spec.securityProfile.workloadIdentity", "cannot unset"),
		Entry("securityProfile.imageCleaner", "spec.securityProfile.imageCleaner", "", "spec.securityProfile.imageCleaner", "cannot unset"),
		Entry("securityProfile.defender", "spec.securityProfile.defender", "", "spec.securityProfile.defender", "SecurityMonitoring.Enabled"),
	)

	DescribeTable("lets change what Azure does", func(ctx SpecContext, path, value string) {
		Expect(change(ctx, masters, subject, set(path, value))).To(Succeed())
	},
		Entry("nothing", "metadata.labels.x", "z"),
		Entry("the authorized ranges", "spec.apiServerAccessProfile.authorizedIPRanges", "[4.5.6.0/24]"),
		Entry("the subnet's endpoints", "spec.virtualNetwork.subnet.serviceEndpoints", "[{service: Microsoft.Sql, locations: ['*']}]"),
		Entry("the subnet's private endpoints", "spec.virtualNetwork.subnet.privateEndpoints", "[{name: e}]"),
		Entry("whether an add-on runs", "spec.addonProfiles", "[{name: other, enabled: false}, {name: azurepolicy, enabled: false}]"),
		Entry("the version, upwards", "spec.version", "v1.28.0"),
		Entry("a whole membership", "spec.fleetsMember", ""),
		Entry("an image cleaner", "spec.securityProfile.imageCleaner.enabled", "false"),
	)

	It("tells everything that is wrong at once", func(ctx SpecContext) {
		Expect(change(ctx, masters, subject, func(o *unstructured.Unstructured) {
			set("spec.location", "x")(o)
			set("spec.loadBalancerProfile", "{managedOutboundIPs: 101}")(o)
		})).To(beInvalid("spec.location", "field is immutable", "spec.loadBalancerProfile.managedOutboundIPs", "value should be in between 1 and 100"))
	})

	It("lets an object that is being deleted lose its finalizers, whatever is in it", func(ctx SpecContext) {
		bad := controlPlane(namespace, "going")
		bad.SetFinalizers([]string{"example.org/wait"})
		create(ctx, bad)
		Expect(masters.Delete(ctx, bad)).To(Succeed())
		Expect(change(ctx, masters, bad, func(o *unstructured.Unstructured) { set("spec.location", "x")(o); o.SetFinalizers(nil) })).To(Succeed())
	})

	DescribeTable("is refused when it cannot work", func(ctx SpecContext, path, value, field, text string) {
		object := controlPlane(namespace, "new")
		set(path, value)(object)
		err := masters.Create(ctx, object, client.DryRunAll)
		if text == "" {
			Expect(err).NotTo(HaveOccurred())
			return
		}
		Expect(err).To(beInvalid(field, text))
	},
		Entry("a name with windows", "metadata.name", "my-windows-1", "metadata.name", "'MICROSOFT' and 'WINDOWS' can't be used"),
		Entry("a version that is none", "spec.version", "latest", "spec.version", "must be a valid semantic version"),
		Entry("a prefix that no DNS has", "spec.dnsPrefix", "-x", "spec.dnsPrefix", "does not match regex"),
		Entry("a key that is no base64", "spec.sshPublicKey", "ssh-rsa AAAA", "spec.sshPublicKey", "not properly base64 encoded"),
		Entry("no managed IPs", "spec.loadBalancerProfile", "{managedOutboundIPs: 0}", "spec.loadBalancerProfile.managedOutboundIPs", "between 1 and 100"),
		Entry("one managed IP", "spec.loadBalancerProfile", "{managedOutboundIPs: 1}", "", ""),
		Entry("100 managed IPs", "spec.loadBalancerProfile", "{managedOutboundIPs: 100}", "", ""),
		Entry("101 managed IPs", "spec.loadBalancerProfile", "{managedOutboundIPs: 101}", "spec.loadBalancerProfile.managedOutboundIPs", "between 1 and 100"),
		Entry("64000 ports", "spec.loadBalancerProfile", "{allocatedOutboundPorts: 64000}", "", ""),
		Entry("64001 ports", "spec.loadBalancerProfile", "{allocatedOutboundPorts: 64001}", "spec.loadBalancerProfile.allocatedOutboundPorts", "between 0 and 64000"),
		Entry("3 minutes", "spec.loadBalancerProfile", "{idleTimeoutInMinutes: 3}", "spec.loadBalancerProfile.idleTimeoutInMinutes", "between 4 and 120"),
		Entry("120 minutes", "spec.loadBalancerProfile", "{idleTimeoutInMinutes: 120}", "", ""),
		Entry("121 minutes", "spec.loadBalancerProfile", "{idleTimeoutInMinutes: 121}", "spec.loadBalancerProfile.idleTimeoutInMinutes", "between 4 and 120"),
		Entry("two ways out", "spec.loadBalancerProfile", "{managedOutboundIPs: 2, outboundIPs: [x]}", "spec.loadBalancerProfile", "at most one of"),
		Entry("a subnet outside of its network", "spec.virtualNetwork.subnet.cidrBlock", "11.0.0.0/16", "spec.virtualNetwork.subnet.cidrBlock", "should contain the subnet CIDR block"),
		Entry("a range that is none", "spec.virtualNetwork.cidrBlock", "10.0.0.0", "spec.virtualNetwork.cidrBlock", "invalid CIDR format"),
		Entry("an authorized range that is none", "spec.apiServerAccessProfile.authorizedIPRanges", "[1.2.3]", "spec.apiServerAccessProfile.authorizedIPRanges", "invalid CIDR format"),
		Entry("a DNS zone that is none", "spec.apiServerAccessProfile.privateDNSZone", "x", "spec.apiServerAccessProfile.privateDNSZone", "invalid private DNS zone"),
		Entry("a DNS zone of a public cluster", "spec.apiServerAccessProfile", "{privateDNSZone: /subscriptions/s/resourceGroups/g/providers/Microsoft.Network/privateDnsZones/private.westeurope.azmk8s.io}", "spec.apiServerAccessProfile.enablePrivateCluster", "Private Cluster should be enabled"),
		Entry("a DNS zone of a private cluster", "spec.apiServerAccessProfile.privateDNSZone", "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/privateDnsZones/private.westeurope.azmk8s.io", "", ""),
		Entry("a member's name", "spec.fleetsMember.name", "Member", "spec.fleetsMember.name", "Name must match"),
		Entry("policy cilium without its dataplane", "spec.networkPolicy", "cilium", "spec.networkPolicy", "can only be used with cilium network dataplane"),
		Entry("dataplane cilium without overlay", "spec.networkDataplane", "cilium", "spec.networkDataplane", "overlay network plugin mode"),
		Entry("an autoscaler's delay", "spec.autoscalerProfile", "{newPodScaleUpDelay: soon}", "spec.autoscalerProfile.newPodScaleUpDelay", "invalid value"),
		Entry("an autoscaler's threshold", "spec.autoscalerProfile", "{scaleDownUtilizationThreshold: '1.5'}", "spec.autoscalerProfile.scaleDownUtilizationThreshold", "invalid value"),
		Entry("an autoscaler's percentage", "spec.autoscalerProfile", "{maxTotalUnreadyPercentage: '101'}", "spec.autoscalerProfile.maxTotalUnreadyPercentage", "invalid value"),
		Entry("a user's identity without one", "spec.identity", "{type: UserAssigned}", "spec.identity.userAssignedIdentityResourceID", "cannot be empty"),
		Entry("the system's identity with one", "spec.identity", "{type: SystemAssigned, userAssignedIdentityResourceID: x}", "spec.identity.userAssignedIdentityResourceID", "should be empty"),
		Entry("a key vault without a user's identity", "spec.identity", "{type: SystemAssigned}", "spec.securityProfile.azureKeyVaultKms.keyVaultResourceID", "only when Spec.Identity.Type is UserAssigned"),
		Entry("a private key vault without its ID", "spec.securityProfile.azureKeyVaultKms.keyVaultNetworkAccess", "Private", "spec.securityProfile.azureKeyVaultKms.keyVaultResourceID", "cannot be empty when"),
		Entry("a public key vault with an ID", "spec.securityProfile.azureKeyVaultKms.keyVaultResourceID", "x", "spec.securityProfile.azureKeyVaultKms.keyVaultResourceID", "should be empty when"),
		Entry("workload identity without an issuer", "spec.oidcIssuerProfile", "", "spec.securityProfile.workloadIdentity", "OIDCIssuerProfile"),
		Entry("no local accounts without a directory", "spec.aadProfile", "", "spec.disableLocalAccounts", "only for AAD enabled clusters"),
		Entry("an extension with a version of its own", "spec.extensions", "[{name: a, extensionType: t, version: '1'}]", "spec.extensions", "Version must not be given"),
		Entry("an extension of the cluster without a namespace", "spec.extensions", "[{name: a, extensionType: t, scope: {scopeType: Cluster}}]", "spec.extensions", "ReleaseNamespace must be provided"),
		Entry("an extension of a namespace with a release's", "spec.extensions", "[{name: a, extensionType: t, scope: {scopeType: Namespace, targetNamespace: x, releaseNamespace: z}}]", "spec.extensions", "ReleaseNamespace can only be given"),
		Entry("a DNS service that does not end in .10", "spec.dnsServiceIP", "10.1.0.11", "spec.dnsServiceIP", `must end with ".10"`),
		Entry("a DNS service outside of the services", "spec.dnsServiceIP", "10.2.0.10", "spec.dnsServiceIP", "must reside within the associated cluster serviceCIDR"),
		Entry("a DNS service whose Cluster is not there", "metadata.labels", "{cluster.x-k8s.io/cluster-name: absent}", "", ""),
		Entry("a name of an identity", "spec.identityRef", "", "spec.identityRef", "Required value"),
	)

	It("has one range for pods and one for services", func(ctx SpecContext) {
		cluster := capiCluster(namespace, "dual")
		set("spec.clusterNetwork.pods.cidrBlocks", "[10.3.0.0/16, 10.4.0.0/16]")(cluster)
		create(ctx, cluster)
		object := controlPlane(namespace, "dual")
		object.SetLabels(map[string]string{"cluster.x-k8s.io/cluster-name": "dual"})
		Expect(masters.Create(ctx, object, client.DryRunAll)).To(beInvalid("spec", "one CIDR block for pods"))
	})

	It("keeps the name by which it was made before there were prefixes", func(ctx SpecContext) {
		object := controlPlane(namespace, "older")
		set("spec.dnsPrefix", "")(object)
		create(ctx, object)
		Expect(change(ctx, masters, object, set("spec.dnsPrefix", "other"))).To(beInvalid("spec.dnsPrefix", "field is immutable"))
		Expect(change(ctx, masters, object, set("spec.dnsPrefix", "older"))).To(Succeed())
	})

	It("is not set back from the version that Azure upgraded to", func(ctx SpecContext) {
		object := controlPlane(namespace, "upgraded")
		create(ctx, object)
		set("status.autoUpgradeVersion", "v1.29.4")(object)
		Expect(masters.Status().Update(ctx, object)).To(Succeed())
		Expect(change(ctx, masters, object, set("spec.version", "v1.28.0"))).To(beInvalid("spec.version", "version is auto-upgraded to v1.29.4, cannot be downgraded"))
	})

	It("does not become an overlay under a policy, and may without", func(ctx SpecContext) {
		Expect(change(ctx, masters, subject, set("spec.networkPluginMode", "overlay"))).To(beInvalid("spec.networkPluginMode", `"overlay" NetworkPluginMode cannot be enabled when NetworkPolicy is set`))
		object := controlPlane(namespace, "plain")
		set("spec.networkPolicy", "")(object)
		create(ctx, object)
		Expect(change(ctx, masters, object, set("spec.networkPluginMode", "overlay"))).To(Succeed())
	})

	It("is warned about when it has no system pool, identity or Cluster", func(ctx SpecContext) {
		listener, heard := listening()
		object := controlPlane(newNamespace(ctx), "lonely")
		Expect(listener.Create(ctx, object)).To(Succeed())
		Expect(heard.take()).To(ContainElements(
			ContainSubstring("at least one AzureManagedMachinePool of mode System"),
			ContainSubstring("AzureClusterIdentity "+object.GetNamespace()+"/absent is not found"),
			ContainSubstring("Cluster "+object.GetNamespace()+"/aks is not found")))
	})
})

var _ = Describe("A managed pool of machines", Ordered, func() {
	var subject *unstructured.Unstructured
	var namespace string
	BeforeAll(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		subject = pool(namespace, "pool1", "System")
		for path, value := range map[string]string{
			"spec.name": "pool1", "spec.osType": "Linux", "spec.maxPods": "30", "spec.osDiskType": "Managed", "spec.scaleSetPriority": "Regular",
			"spec.enableUltraSSD": "true", "spec.enableNodePublicIP": "true", "spec.kubeletDiskType": "OS", "spec.kubeletConfig": "{failSwapOn: false}",
			"spec.nodePublicIPPrefixID": "subscriptions/" + subscription + "/resourcegroups/g/providers/microsoft.network/publicipprefixes/p",
			"spec.linuxOSConfig":        "{swapFileSizeMB: 1500}", "spec.availabilityZones": "['1', '2']", "spec.subnetName": "subnet",
		} {
			set(path, value)(subject)
		}
		create(ctx, subject)
	})

	DescribeTable("keeps what Azure does not let change", func(ctx SpecContext, path, value string) {
		Expect(change(ctx, masters, subject, set("spec."+path, value))).To(beInvalid("spec."+path, "field is immutable"))
	},
		Entry("name", "name", "other"), Entry("osType", "osType", "Windows"), Entry("sku", "sku", "other"), Entry("osDiskSizeGB", "osDiskSizeGB", "40"),
		Entry("maxPods", "maxPods", "31"), Entry("osDiskType", "osDiskType", "Ephemeral"), Entry("scaleSetPriority", "scaleSetPriority", "Spot"),
		Entry("enableUltraSSD", "enableUltraSSD", "false"), Entry("enableNodePublicIP", "enableNodePublicIP", "false"),
		Entry("nodePublicIPPrefixID", "nodePublicIPPrefixID", "x"), Entry("kubeletConfig", "kubeletConfig", "{failSwapOn: true}"),
		Entry("kubeletDiskType", "kubeletDiskType", "Temporary"), Entry("linuxOSConfig", "linuxOSConfig", "{swapFileSizeMB: 1501}"),
		Entry("availabilityZones", "availabilityZones", "['1', '3']"), Entry("subnetName", "subnetName", "other"),
	)

	DescribeTable("lets change what Azure does", func(ctx SpecContext, path, value string) {
		Expect(change(ctx, masters, subject, set("spec."+path, value))).To(Succeed())
	},
		Entry("the order of zones", "availabilityZones", "['2', '1']"), Entry("scaling", "scaling", "{minSize: 1, maxSize: 3}"),
		Entry("FIPS, once", "enableFIPS", "true"), Entry("labels", "nodeLabels", "{a: b}"), Entry("encryption, once", "enableEncryptionAtHost", "false"),
	)

	DescribeTable("is refused when it cannot work", func(ctx SpecContext, path, value, text string) {
		object := pool(namespace, "new1", "System")
		fields := strings.SplitN(path, "=", 2)
		if len(fields) == 2 {
			field, value, _ := strings.Cut(fields[1], ":")
			set("spec."+field, value)(object)
		}
		path = fields[0]
		if !strings.HasPrefix(path, "metadata.") {
			path = "spec." + path
		}
		set(path, value)(object)
		err := masters.Create(ctx, object, client.DryRunAll)
		if text == "" {
			Expect(err).NotTo(HaveOccurred())
			return
		}
		Expect(err).To(MatchError(ContainSubstring(text)))
		Expect(statusOf(err).Details.Causes).NotTo(BeEmpty())
	},
		Entry("9 pods", "maxPods", "9", "MaxPods must be between 10 and 250"), Entry("10 pods", "maxPods", "10", ""),
		Entry("250 pods", "maxPods", "250", ""), Entry("251 pods", "maxPods", "251", "MaxPods must be between 10 and 250"),
		Entry("a system of Windows", "osType", "Windows", "must have OSType 'Linux'"),
		Entry("a long name", "metadata.name", "abcdefghijklm", "can not be longer than 12 characters"),
		Entry("a name of 12", "metadata.name", "abcdefghijkl", ""),
		Entry("a long name for Windows", "name=mode:User", "abcdefg", ""),
		Entry("a name with a capital", "name", "poolA", "lowercase alphanumeric"),
		Entry("a name that begins with a digit", "name", "1pool", "must begin with a lowercase letter"),
		Entry("a label of Azure's", "nodeLabels", "{kubernetes.azure.com/x: z}", "must not start with kubernetes.azure.com"),
		Entry("a prefix that is no resource", "nodePublicIPPrefixID=enableNodePublicIP:true", "x", "resource ID must match"),
		Entry("a prefix without public addresses", "nodePublicIPPrefixID", "subscriptions/"+subscription+"/resourcegroups/g/providers/microsoft.network/publicipprefixes/p", "must be set to true when NodePublicIPPrefixID is set"),
		Entry("a subnet's name", "subnetName", "-x", "subnet name does not match"),
		Entry("a period without unit", "kubeletConfig", "{cpuCfsQuotaPeriod: '100'}", "'ms' suffix"), Entry("a period", "kubeletConfig", "{cpuCfsQuotaPeriod: 100ms}", ""),
		Entry("thresholds crossed", "kubeletConfig", "{imageGcLowThreshold: 81, imageGcHighThreshold: 80}", "ImageGcLowThreshold=81, ImageGcHighThreshold=80"),
		Entry("thresholds equal", "kubeletConfig", "{imageGcLowThreshold: 80, imageGcHighThreshold: 80}", ""),
		Entry("a threshold above 100", "kubeletConfig", "{imageGcHighThreshold: 101}", "less than or equal to 100"),
		Entry("unsafe sysctls", "kubeletConfig", "{allowedUnsafeSysctls: [kernel.shm_rmid_forced, kernel.sem, fs.mqueue.x, net.core.somaxconn, kernel.msgmax]}", ""),
		Entry("other sysctls", "kubeletConfig", "{allowedUnsafeSysctls: [vm.swappiness]}", "not a supported AllowedUnsafeSysctls"),
		Entry("one log file", "kubeletConfig", "{containerLogMaxFiles: 1}", "greater than or equal to 2"), Entry("pids", "kubeletConfig", "{podMaxPids: -2}", "greater than or equal to -1"),
		Entry("a policy for CPUs", "kubeletConfig", "{cpuManagerPolicy: dynamic}", "Unsupported value"), Entry("a policy for topology", "kubeletConfig", "{topologyManagerPolicy: x}", "Unsupported value"),
		Entry("swap", "linuxOSConfig", "{swapFileSizeMB: 100}", "FailSwapOn must be set to false"),
		Entry("swap, allowed", "linuxOSConfig=kubeletConfig:{failSwapOn: false}", "{swapFileSizeMB: 100}", ""),
		Entry("ports that are words", "linuxOSConfig", "{sysctls: {netIpv4IPLocalPortRange: a b}}", `must be of the format "<int> <int>"`),
		Entry("a low first port", "linuxOSConfig", "{sysctls: {netIpv4IPLocalPortRange: 1023 33000}}", "first port of NetIpv4IpLocalPortRange=1023 must be"),
		Entry("a high first port", "linuxOSConfig", "{sysctls: {netIpv4IPLocalPortRange: 61000 62000}}", "first port of NetIpv4IpLocalPortRange=61000"),
		Entry("a low last port", "linuxOSConfig", "{sysctls: {netIpv4IPLocalPortRange: 1024 32767}}", "last port of NetIpv4IpLocalPortRange=32767"),
		Entry("a high last port", "linuxOSConfig", "{sysctls: {netIpv4IPLocalPortRange: 1024 65001}}", "last port of NetIpv4IpLocalPortRange=65001"),
		Entry("ports crossed", "linuxOSConfig", "{sysctls: {netIpv4IPLocalPortRange: 60000 33000}}", "cannot be greater than last port"),
		Entry("all ports", "linuxOSConfig", "{sysctls: {netIpv4IPLocalPortRange: 1024 65000}}", ""),
		Entry("a taint's effect", "taints", "[{effect: no-schedule, key: k, value: v}]", "Unsupported value"),
	)

	It("keeps every kernel setting in its range", func(ctx SpecContext) {
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

// azureCluster is one that works.
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
	const ns = "spec.networkSpec."
	var subject *unstructured.Unstructured
	BeforeAll(func(ctx SpecContext) {
		subject = azureCluster(newNamespace(ctx), "self")
		create(ctx, subject)
	})

	DescribeTable("keeps what Azure does not let change", func(ctx SpecContext, path, value, field, text string) {
		Expect(change(ctx, masters, subject, set(path, value))).To(beInvalid(field, text))
	},
		Entry("resourceGroup", "spec.resourceGroup", "x", "spec.resourceGroup", "field is immutable"),
		Entry("subscriptionID", "spec.subscriptionID", "x", "spec.subscriptionID", "field is immutable"),
		Entry("location", "spec.location", "x", "spec.location", "field is immutable"),
		Entry("azureEnvironment", "spec.azureEnvironment", "AzureChinaCloud", "spec.azureEnvironment", "field is immutable"),
		Entry("privateDNSZoneName", ns+"privateDNSZoneName", "other.zone", ns+"privateDNSZoneName", "field is immutable"),
		Entry("privateDNSZoneResourceGroup", ns+"privateDNSZoneResourceGroup", "x", ns+"privateDNSZoneResourceGroup", "field is immutable"),
		Entry("privateDNSZone", ns+"privateDNSZone", "System", ns+"privateDNSZone", "field is immutable"),
		Entry("controlPlaneOutboundLB", ns+"controlPlaneOutboundLB", "{frontendIPsCount: 2}", ns+"controlPlaneOutboundLB", "field is immutable"),
		Entry("host", "spec.controlPlaneEndpoint.host", "x", "spec.controlPlaneEndpoint.host", "field is immutable"),
		Entry("port", "spec.controlPlaneEndpoint.port", "1", "spec.controlPlaneEndpoint.port", "field is immutable"),
		Entry("bastion", "spec.bastionSpec.azureBastion", "", "spec.bastionSpec.azureBastion", "azure bastion cannot be removed"),
		Entry("zones of a balancer", ns+"apiServerLB.availabilityZones", "['1']", ns+"apiServerLB.availabilityZones", "field is immutable"),
		Entry("type of the balancer", ns+"apiServerLB.type", "Public", ns+"apiServerLB.type", "API Server load balancer type should not be modified"),
		Entry("name of the balancer", ns+"apiServerLB.name", "x", ns+"apiServerLB.name", "API Server load balancer name should not be modified"),
		Entry("SKU of the balancer", ns+"apiServerLB.sku", "Basic", ns+"apiServerLB.sku", "API Server load balancer SKU should not be modified"),
		Entry("timeout of the balancer", ns+"apiServerLB.idleTimeoutInMinutes", "5", ns+"apiServerLB.idleTimeoutInMinutes", "idle timeout cannot be modified"),
		Entry("private IP", ns+"apiServerLB.frontendIPs", "[{name: f, privateIP: 10.0.0.101}]", ns+"apiServerLB.frontendIPs[name].privateIP", "private IP should not be modified"),
		Entry("outbound ID", ns+"nodeOutboundLB.id", "x", ns+"nodeOutboundLB.id", "Node outbound load balancer ID should not be modified"),
		Entry("outbound name", ns+"nodeOutboundLB.name", "x", ns+"nodeOutboundLB.name", "Node outbound load balancer Name should not be modified"),
		Entry("outbound SKU", ns+"nodeOutboundLB.sku", "x", ns+"nodeOutboundLB.sku", "Node outbound load balancer SKU should not be modified"),
		Entry("outbound type", ns+"nodeOutboundLB.type", "x", ns+"nodeOutboundLB.type", "Type cannot be modified"),
		Entry("outbound timeout", ns+"nodeOutboundLB.idleTimeoutInMinutes", "5", ns+"nodeOutboundLB.idleTimeoutInMinutes", "idle timeout cannot be modified"),
		Entry("overrides", "spec.cloudProviderConfigOverrides.backOffs.cloudProviderBackoff", "false", "spec.cloudProviderConfigOverrides", "cannot change cloudProviderConfigOverrides"),
		Entry("an owned subnet", ns+"subnets", "[{name: node, role: node, cidrBlocks: [10.2.0.0/16], natGateway: {name: ng}}]", ns+"subnets[name].cidrBlocks", "field is immutable"),
		Entry("a route table", ns+"subnets", "[{name: cp, role: control-plane, cidrBlocks: [10.0.0.0/16], securityGroup: {name: sg}, routeTable: {name: x}}]", ns+"subnets[name].routeTable.name", "field is immutable"),
		Entry("a security group", ns+"subnets", "[{name: cp, role: control-plane, cidrBlocks: [10.0.0.0/16], securityGroup: {name: x}, routeTable: {name: rt}}]", ns+"subnets[name].securityGroup.name", "field is immutable"),
		Entry("a NAT gateway", ns+"subnets", "[{name: node, role: node, cidrBlocks: [10.1.0.0/16], natGateway: {name: x}}]", ns+"subnets[name].natGateway.name", "field is immutable"),
	)

	It("lets the order of zones change, and a subnet of a network that is not its own", func(ctx SpecContext) {
		Expect(change(ctx, masters, subject, set(ns+"apiServerLB.availabilityZones", "['2', '1']"))).To(Succeed())
		foreign := azureCluster(subject.GetNamespace(), "foreign")
		set(ns+"vnet", "{name: v, resourceGroup: other, cidrBlocks: [10.0.0.0/8]}")(foreign)
		create(ctx, foreign)
		Expect(change(ctx, masters, foreign, func(o *unstructured.Unstructured) {
			subnets, _, _ := unstructured.NestedSlice(o.Object, "spec", "networkSpec", "subnets")
			subnets[1].(map[string]any)["cidrBlocks"] = []any{"10.2.0.0/16"}
			Expect(unstructured.SetNestedSlice(o.Object, subnets, "spec", "networkSpec", "subnets")).To(Succeed())
		})).To(Succeed())
	})

	DescribeTable("is refused when it cannot work", func(ctx SpecContext, path, value, text string) {
		object := azureCluster(subject.GetNamespace(), "new")
		set(path, value)(object)
		err := masters.Create(ctx, object, client.DryRunAll)
		if text == "" {
			Expect(err).NotTo(HaveOccurred())
			return
		}
		Expect(err).To(MatchError(ContainSubstring(text)))
		Expect(statusOf(err).Details.Causes).NotTo(BeEmpty())
	},
		Entry("as it is", "metadata.labels.x", "z", ""),
		Entry("45 characters", "metadata.name", strings.Repeat("a", 45), "longer than allowed length of 44"), Entry("44 characters", "metadata.name", strings.Repeat("a", 44), ""),
		Entry("a dot in the name", "metadata.name", "a.b", "can contain only lowercase alphanumeric"),
		Entry("no identity", "spec.identityRef", "", "identityRef is required"), Entry("another kind of identity", "spec.identityRef", "{kind: Secret, name: x}", "only AzureClusterIdentity is supported"),
		Entry("a tunnel of the small bastion", "spec.bastionSpec.azureBastion", "{enableTunneling: true}", "sku must be Standard if tunneling is enabled"),
		Entry("an unknown balancer", ns+"apiServerLB.type", "Other", `"Public", "Internal"`), Entry("a basic balancer", ns+"apiServerLB.sku", "Basic", `"Standard"`),
		Entry("an address outside of the control plane", ns+"apiServerLB.frontendIPs", "[{name: f, privateIP: 10.1.0.4}]", "needs to be in control plane subnet range"),
		Entry("an address that is none", ns+"apiServerLB.frontendIPs", "[{name: f, privateIP: x}]", "isn't a valid IPv4 or IPv6 address"),
		Entry("a public address inside", ns+"apiServerLB.frontendIPs", "[{name: f, publicIP: {name: p}}]", "Internal Load Balancers cannot have a Public IP"),
		Entry("two addresses", ns+"apiServerLB.frontendIPs", "[{name: f, privateIP: 10.0.0.4}, {name: g, privateIP: 10.0.0.5}]", "should have 1 Frontend IP"),
		Entry("a timeout", ns+"apiServerLB.idleTimeoutInMinutes", "31", "between 4 and 30 minutes"),
		Entry("an outbound balancer of a public cluster", ns+"apiServerLB", "{type: Public}", "cannot be set for public clusters"),
		Entry("a zone of a public cluster", ns+"apiServerLB", "{type: Public}", "available only if APIServerLB.Type is Internal"),
		Entry("a private address outside", ns+"apiServerLB", "{type: Public, frontendIPs: [{name: f, privateIP: 10.0.0.4}]}", "Public Load Balancers cannot have a Private IP"),
		Entry("a zone's name", ns+"privateDNSZoneName", "my_zone-", "PrivateDNSZoneName can only contain"),
		Entry("a zone's group alone", ns+"privateDNSZoneName", "", "only be used when PrivateDNSZoneName is provided"),
		Entry("17 outbound addresses", ns+"nodeOutboundLB.frontendIPsCount", "17", "Max front end ips allowed is 16"),
		Entry("a subnet outside", ns+"subnets", "[{name: cp, role: control-plane, cidrBlocks: [11.0.0.0/16]}]", "subnet CIDR not in vnet address space"),
		Entry("subnets of one name", ns+"subnets", "[{name: cp, role: control-plane}, {name: cp, role: node}]", "Duplicate value"),
		Entry("a priority", ns+"subnets", "[{name: cp, role: control-plane, securityGroup: {name: s, securityRules: [{name: r, description: d, direction: Inbound, protocol: Tcp, priority: 99}]}}]", "between 100 and 4096"),
		Entry("two sources", ns+"subnets", "[{name: cp, role: control-plane, securityGroup: {name: s, securityRules: [{name: r, description: d, direction: Inbound, protocol: Tcp, source: a, sources: [b]}]}}]", "both source and sources"),
		Entry("a service's name", ns+"subnets", "[{name: cp, role: control-plane, serviceEndpoints: [{service: sql, locations: [a]}]}]", "service name of endpoint service doesn't match"),
		Entry("no location", ns+"subnets", "[{name: cp, role: control-plane, serviceEndpoints: [{service: Microsoft.Sql, locations: []}]}]", "locations are required"),
		Entry("an endpoint without a service", ns+"subnets", "[{name: cp, role: control-plane, privateEndpoints: [{name: e}]}]", "privateLinkServiceConnections cannot be empty"),
		Entry("an endpoint outside", ns+"subnets", "[{name: cp, role: control-plane, cidrBlocks: [10.0.0.0/16], privateEndpoints: [{name: e, privateIPAddresses: [10.1.0.4], privateLinkServiceConnections: [{}]}]}]", "needs to be in subnet range"),
		Entry("a foreign network without its roles", ns+"vnet.resourceGroup", "other", ""),
		Entry("a network's group", ns+"vnet.resourceGroup", "a b", "resourceGroup doesn't match regex"),
		Entry("a network's range", ns+"vnet.cidrBlocks", "[10.0.0.0]", "invalid CIDR format"),
	)
})

const machineSpec = "{vmSize: s, osDisk: {osType: Linux, diskSizeGB: 30}, image: {id: /i}, dataDisks: [{nameSuffix: a, diskSizeGB: 4, lun: 0}]}"

// machines are a machine, a template of machines and a pool of machines of one spec.
func machines(namespace, name, spec string) []*unstructured.Unstructured {
	GinkgoHelper()
	text := func(kind, spec string) *unstructured.Unstructured {
		return objectFrom(fmt.Sprintf(`{apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: %s, metadata: {name: %s, namespace: %s, labels: {cluster.x-k8s.io/cluster-name: aks}}, spec: %s}`, kind, name, namespace, spec))
	}
	return []*unstructured.Unstructured{
		text("AzureMachine", spec), text("AzureMachineTemplate", "{template: {spec: "+spec+"}}"), text("AzureMachinePool", "{location: l, template: "+spec+"}"),
	}
}

var _ = Describe("Machines", Ordered, func() {
	var namespace string
	BeforeAll(func(ctx SpecContext) { namespace = newNamespace(ctx) })

	DescribeTable("are refused when they cannot work, as such, as template and as pool", func(ctx SpecContext, path, value, text string) {
		for _, object := range machines(namespace, "new", machineSpec) {
			at := map[string]string{"AzureMachine": "spec.", "AzureMachineTemplate": "spec.template.spec.", "AzureMachinePool": "spec.template."}[object.GetKind()]
			set(at+path, value)(object)
			err := masters.Create(ctx, object, client.DryRunAll)
			if text == "" {
				Expect(err).NotTo(HaveOccurred(), object.GetKind())
				continue
			}
			Expect(err).To(MatchError(ContainSubstring(text)), object.GetKind())
		}
	},
		Entry("as they are", "vmSize", "t", ""),
		Entry("two images", "image", "{id: /i, marketplace: {publisher: p, offer: o, sku: s, version: v}}", "exactly one of"),
		Entry("half a gallery", "image", "{computeGallery: {gallery: g, name: i, version: v, subscriptionID: s}}", "given both"),
		Entry("a community gallery", "image", "{computeGallery: {gallery: g, name: i, version: v}}", ""),
		Entry("a large disk", "osDisk.diskSizeGB", "2049", "between 1 and 2048"), Entry("no disk", "osDisk.diskSizeGB", "0", "between 1 and 2048"),
		Entry("an ultra disk for the system", "osDisk.managedDisk", "{storageAccountType: UltraSSD_LRS}", "cannot be used with OS Disks"),
		Entry("a small data disk", "dataDisks", "[{nameSuffix: a, diskSizeGB: 3, lun: 0}]", "between 4 and 32767"),
		Entry("LUN 64", "dataDisks", "[{nameSuffix: a, diskSizeGB: 4, lun: 64}]", "between 0 and 63"), Entry("LUN 63", "dataDisks", "[{nameSuffix: a, diskSizeGB: 4, lun: 63}]", ""),
		Entry("one LUN twice", "dataDisks", "[{nameSuffix: a, diskSizeGB: 4, lun: 1}, {nameSuffix: b, diskSizeGB: 4, lun: 1}]", "Duplicate value: logical unit numbers"),
		Entry("one name twice", "dataDisks", "[{nameSuffix: a, diskSizeGB: 4, lun: 1}, {nameSuffix: a, diskSizeGB: 4, lun: 2}]", "Duplicate value: name suffixes"),
		Entry("a cached ultra disk", "dataDisks", "[{nameSuffix: a, diskSizeGB: 4, lun: 1, cachingType: ReadOnly, managedDisk: {storageAccountType: UltraSSD_LRS}}]", "cachingType is not supported"),
		Entry("an ultra disk", "dataDisks", "[{nameSuffix: a, diskSizeGB: 4, lun: 1, cachingType: None, managedDisk: {storageAccountType: UltraSSD_LRS}}]", ""),
		Entry("a key that is no base64", "sshPublicKey", "ssh-rsa A", "not properly base64 encoded"),
		Entry("an interface without addresses", "networkInterfaces", "[{privateIPConfigs: 0}]", "must be at least 1"),
		Entry("a placement of a disk that is not local", "osDisk.diffDiskSettings", "{option: Local, placement: CacheDisk}", ""),
		Entry("an encrypted local disk", "osDisk", "{osType: Linux, diffDiskSettings: {option: Local}, managedDisk: {diskEncryptionSet: {id: x}}}", "diskEncryptionSet is not supported"),
		Entry("half a confidential machine", "osDisk.managedDisk", "{securityProfile: {securityEncryptionType: VMGuestStateOnly}}", "SecurityType should be set to 'ConfidentialVM'"),
		Entry("a diagnosis of nobody", "diagnostics", "{boot: {storageAccountType: UserManaged}}", "userManaged must be specified"),
	)

	It("keep what Azure does not let change", func(ctx SpecContext) {
		machine := machines(namespace, "m", machineSpec)[0]
		create(ctx, machine)
		for path, value := range map[string]string{
			"image": "{id: /j}", "identity": "SystemAssigned", "osDisk": "{osType: Windows, diskSizeGB: 30}", "dataDisks": "[]", "sshPublicKey": "YWJj", "allocatePublicIP": "true",
			"enableIPForwarding": "true", "spotVMOptions": "{evictionPolicy: Delete}", "securityProfile": "{encryptionAtHost: true}", "capacityReservationGroupID": "x",
			"virtualMachineScaleSetID": "x", "disableExtensionOperations": "true", "networkInterfaces": "[{privateIPConfigs: 1}]", "acceleratedNetworking": "true",
			"roleAssignmentName": "x", "systemAssignedIdentityRole": "{scope: s}", "userAssignedIdentities": "[{providerID: x}]",
		} {
			Expect(change(ctx, masters, machine, set("spec."+path, value))).To(beInvalid("spec."+path, "field is immutable"), path)
		}
		Expect(change(ctx, masters, machine, set("spec.disableVMBootstrapExtension", "true"))).To(Succeed())
		Expect(change(ctx, masters, machine, set("spec.disableVMBootstrapExtension", "false"))).To(beInvalid("spec.disableVMBootstrapExtension", "field is immutable"))
		Expect(change(ctx, masters, machine, set("spec.providerID", "azure:///x"))).To(Succeed())
	})

	It("are templates that are replaced, not changed, but for the topology's dry run", func(ctx SpecContext) {
		template := machines(namespace, "t", machineSpec)[1]
		create(ctx, template)
		Expect(change(ctx, masters, template, set("spec.template.spec.vmSize", "x"))).To(beInvalid("spec.template.spec", "field is immutable. Please create new resource instead"))
		Expect(masters.Get(ctx, client.ObjectKeyFromObject(template), template)).To(Succeed())
		set("spec.template.spec.vmSize", "x")(template)
		template.SetAnnotations(map[string]string{"topology.cluster.x-k8s.io/dry-run": ""})
		Expect(masters.Update(ctx, template.DeepCopy(), client.DryRunAll)).To(Succeed())
		Expect(masters.Update(ctx, template)).To(beInvalid("spec.template.spec", "field is immutable"))
		named := machines(namespace, "named", machineSpec)[1]
		set("spec.template.spec.roleAssignmentName", "x")(named)
		Expect(masters.Create(ctx, named)).To(beInvalid("spec.template.spec.roleAssignmentName", "cannot be set"))
	})

	It("roll within limits, and flexibly only on new enough versions", func(ctx SpecContext) {
		mp := func(spec string) *unstructured.Unstructured {
			object := machines(namespace, "mp", machineSpec)[2]
			for path, value := range objectFrom(spec).Object {
				Expect(unstructured.SetNestedField(object.Object, value, "spec", path)).To(Succeed())
			}
			return object
		}
		zero := "{strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: %s, maxUnavailable: %s}}}"
		Expect(masters.Create(ctx, mp(fmt.Sprintf(zero, "0", "0")), client.DryRunAll)).To(beInvalid("spec.strategy.rollingUpdate", "MaxUnavailable must not be 0 if MaxSurge is 0"))
		Expect(masters.Create(ctx, mp(fmt.Sprintf(zero, "0%", "0")), client.DryRunAll)).To(beInvalid("spec.strategy.rollingUpdate", "MaxUnavailable must not be 0 if MaxSurge is 0"))
		Expect(masters.Create(ctx, mp(fmt.Sprintf(zero, "0", "1")), client.DryRunAll)).To(Succeed())
		flexible := mp("{orchestrationMode: Flexible}")
		Expect(masters.Create(ctx, flexible.DeepCopy(), client.DryRunAll)).To(Succeed())
		parent := machinePool(namespace, "mp")
		set("spec.template.spec.version", "v1.25.9")(parent)
		create(ctx, parent)
		Expect(masters.Create(ctx, flexible.DeepCopy(), client.DryRunAll)).To(beInvalid("spec.orchestrationMode", "specified Kubernetes version v1.25.9 must be >= 1.26.0"))
		Expect(change(ctx, masters, parent, set("spec.template.spec.version", "v1.26.0"))).To(Succeed())
		Expect(masters.Create(ctx, flexible.DeepCopy(), client.DryRunAll)).To(Succeed())
		for value, text := range map[string]string{"4": "minimum timeout 5", "16": "maximum timeout 15"} {
			object := mp("{}")
			set("spec.template.terminateNotificationTimeout", value)(object)
			Expect(masters.Create(ctx, object, client.DryRunAll)).To(beInvalid("spec.template.terminateNotificationTimeout", text))
		}
	})

	It("say in which of several subnets they stand", func(ctx SpecContext) {
		create(ctx, capiCluster(namespace, "aks"))
		infrastructure := azureCluster(namespace, "aks")
		create(ctx, infrastructure)
		machine := machines(namespace, "s", machineSpec)[0]
		Expect(masters.Create(ctx, machine.DeepCopy(), client.DryRunAll)).To(Succeed())
		Expect(change(ctx, masters, infrastructure, func(o *unstructured.Unstructured) {
			subnets, _, _ := unstructured.NestedSlice(o.Object, "spec", "networkSpec", "subnets")
			subnets = append(subnets, map[string]any{"name": "node2", "role": "node", "cidrBlocks": []any{"10.3.0.0/16"}})
			Expect(unstructured.SetNestedSlice(o.Object, subnets, "spec", "networkSpec", "subnets")).To(Succeed())
		})).To(Succeed())
		for _, object := range machines(namespace, "s", machineSpec) {
			if object.GetKind() == "AzureMachineTemplate" {
				continue
			}
			Expect(masters.Create(ctx, object.DeepCopy(), client.DryRunAll)).To(beInvalid("spec.subnetName", "subnetName is required"), object.GetKind())
		}
		set("spec.subnetName", "node2")(machine)
		Expect(masters.Create(ctx, machine, client.DryRunAll)).To(Succeed())
	})

	It("of a pool stay the machines that they are", func(ctx SpecContext) {
		object := objectFrom(fmt.Sprintf("{apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: AzureMachinePoolMachine, metadata: {name: m, namespace: %s}, spec: {}}", namespace))
		create(ctx, object)
		Expect(change(ctx, masters, object, set("spec.providerID", "a"))).To(Succeed())
		Expect(change(ctx, masters, object, set("spec.providerID", "b"))).To(beInvalid("spec.providerID", "providerID is immutable"))
	})
})

func identity(namespace, name, spec string) *unstructured.Unstructured {
	GinkgoHelper()
	return objectFrom(fmt.Sprintf("{apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: AzureClusterIdentity, metadata: {name: %s, namespace: %s}, spec: {type: WorkloadIdentity, clientID: c, tenantID: very-private, %s}}", name, namespace, spec))
}

var _ = Describe("Identities", func() {
	DescribeTable("are used from the namespaces that they allow", func(ctx SpecContext, spec string, allowed bool) {
		home, tenant := newNamespace(ctx), newNamespace(ctx, "team", "a")
		create(ctx, identity(home, "shared", strings.ReplaceAll(spec, "TENANT", tenant)))
		for _, user := range []*unstructured.Unstructured{azureCluster(tenant, "user"), controlPlane(tenant, "user")} {
			set("spec.identityRef", "{kind: AzureClusterIdentity, name: shared, namespace: "+home+"}")(user)
			err := masters.Create(ctx, user, client.DryRunAll)
			if allowed {
				Expect(err).NotTo(HaveOccurred())
				continue
			}
			Expect(err).To(beInvalid("spec.identityRef", "AzureClusterIdentity shared does not allow its use from namespace "+tenant))
			Expect(err.Error()).NotTo(ContainSubstring("very-private"))
		}
	},
		Entry("nothing said: nobody", "", false),
		Entry("{}: everybody", "allowedNamespaces: {}", true),
		Entry("an empty list: nobody", "allowedNamespaces: {list: []}", false),
		Entry("a list with it", "allowedNamespaces: {list: [x, TENANT]}", true),
		Entry("a list without it", "allowedNamespaces: {list: [x]}", false),
		Entry("an empty selector: nobody", "allowedNamespaces: {selector: {}}", false),
		Entry("a selector of its label", "allowedNamespaces: {selector: {matchLabels: {team: a}}}", true),
		Entry("a selector of another label", "allowedNamespaces: {selector: {matchLabels: {team: b}}}", false),
		Entry("a selector by expression", "allowedNamespaces: {selector: {matchExpressions: [{key: team, operator: In, values: [a, b]}]}}", true),
		Entry("both, one of which fits", "allowedNamespaces: {list: [x], selector: {matchLabels: {team: a}}}", true),
		Entry("both, none of which fits", "allowedNamespaces: {list: [x], selector: {matchLabels: {team: b}}}", false),
	)

	It("are used once the namespace has the label, and warn when that ends", func(ctx SpecContext) {
		home, tenant := newNamespace(ctx), newNamespace(ctx)
		subject := identity(home, "shared", "allowedNamespaces: {selector: {matchLabels: {team: a}}}")
		create(ctx, subject)
		user := azureCluster(tenant, "user")
		set("spec.identityRef", "{kind: AzureClusterIdentity, name: shared, namespace: "+home+"}")(user)
		Expect(masters.Create(ctx, user, client.DryRunAll)).To(beInvalid("spec.identityRef", "does not allow"))
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenant}}
		Expect(masters.Patch(ctx, namespace, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"team":"a"}}}`)))).To(Succeed())
		Eventually(func() error { return masters.Create(ctx, user.DeepCopy(), client.DryRunAll) }).Should(Succeed())
		create(ctx, user)
		listener, heard := listening()
		Expect(change(ctx, listener, subject, set("spec.allowedNamespaces", "{list: [x]}"))).To(Succeed())
		Expect(heard.take()).To(ContainElement(ContainSubstring("AzureClusters of a namespace that is not allowed any more")))
	})

	It("keep their type, which decides their fields", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		subject := identity(namespace, "i", "allowedNamespaces: {}")
		create(ctx, subject)
		Expect(change(ctx, masters, subject, set("spec.type", "UserAssignedMSI"))).To(beInvalid("spec.type", "field is immutable"))
		Expect(change(ctx, masters, subject, set("spec.resourceID", "x"))).To(beInvalid("spec.resourceID", "only be set when the type is UserAssignedMSI"))
		Expect(masters.Create(ctx, identity(namespace, "j", "userAssignedIdentityCredentialsPath: p"))).To(beInvalid("spec.userAssignedIdentityCredentialsPath", "UserAssignedIdentityCredential"))
	})

	It("are warned about when their Secret or its key is missing", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		listener, heard := listening()
		principal := func(name string) *unstructured.Unstructured {
			object := identity(namespace, name, "clientSecret: {name: credential, namespace: "+namespace+"}")
			set("spec.type", "ServicePrincipal")(object)
			return object
		}
		Expect(listener.Create(ctx, principal("a"))).To(Succeed())
		Expect(heard.take()).To(ContainElement(ContainSubstring("Secret " + namespace + "/credential is not found")))
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "credential"}, Data: map[string][]byte{"other": []byte("x")}}
		create(ctx, secret)
		Expect(listener.Create(ctx, principal("b"))).To(Succeed())
		Expect(heard.take()).To(ContainElement(ContainSubstring("the Secret has no key clientSecret")))
		secret.Data["clientSecret"] = []byte("s")
		Expect(masters.Update(ctx, secret)).To(Succeed())
		Expect(listener.Create(ctx, principal("c"))).To(Succeed())
		Expect(heard.take()).To(BeEmpty())
		Expect(listener.Create(ctx, identity(namespace, "d", "allowedNamespaces: {}"))).To(Succeed())
		Expect(heard.take()).To(BeEmpty())
	})
})
