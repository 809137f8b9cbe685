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

const machineSpec = "{vmSize: s, osDisk: {osType: Linux, diskSizeGB: 30}, image: {id: /i}, dataDisks: [{nameSuffix: a, diskSizeGB: 4, lun: 0}]}"

// machines returns a machine, a machine template and a machine pool with one spec.
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
	BeforeAll(func(ctx SpecContext) { namespace = expect.FreshNamespace(ctx, masters) })

	DescribeTable("are validated on creation as machine, template and pool", func(ctx SpecContext, r row) {
		for _, object := range machines(namespace, "new", machineSpec) {
			at := map[string]string{"AzureMachine": "spec.", "AzureMachineTemplate": "spec.template.spec.", "AzureMachinePool": "spec.template."}[object.GetKind()]
			set(at+r.path, r.value)(object)
			err := masters.Create(ctx, object, client.DryRunAll)
			if r.says == "" {
				Expect(err).NotTo(HaveOccurred(), object.GetKind())
				continue
			}
			Expect(err).To(MatchError(ContainSubstring(r.says)), object.GetKind())
		}
	},
		Entry("unchanged", writing("vmSize", "t", "")),
		Entry("two images", writing("image", "{id: /i, marketplace: {publisher: p, offer: o, sku: s, version: v}}", "exactly one of")),
		Entry("an incomplete gallery", writing("image", "{computeGallery: {gallery: g, name: i, version: v, subscriptionID: s}}", "given both")),
		Entry("a community gallery", writing("image", "{computeGallery: {gallery: g, name: i, version: v}}", "")),
		Entry("a large disk", writing("osDisk.diskSizeGB", "2049", "between 1 and 2048")),
		Entry("no disk", writing("osDisk.diskSizeGB", "0", "between 1 and 2048")),
		Entry("an ultra disk as OS disk", writing("osDisk.managedDisk", "{storageAccountType: UltraSSD_LRS}", "cannot be used with OS Disks")),
		Entry("a small data disk", writing("dataDisks", "[{nameSuffix: a, diskSizeGB: 3, lun: 0}]", "between 4 and 32767")),
		Entry("LUN 64", writing("dataDisks", "[{nameSuffix: a, diskSizeGB: 4, lun: 64}]", "between 0 and 63")),
		Entry("LUN 63", writing("dataDisks", "[{nameSuffix: a, diskSizeGB: 4, lun: 63}]", "")),
		Entry("a duplicate LUN", writing("dataDisks", "[{nameSuffix: a, diskSizeGB: 4, lun: 1}, {nameSuffix: b, diskSizeGB: 4, lun: 1}]", "Duplicate value: logical unit numbers")),
		Entry("a duplicate name suffix", writing("dataDisks", "[{nameSuffix: a, diskSizeGB: 4, lun: 1}, {nameSuffix: a, diskSizeGB: 4, lun: 2}]", "Duplicate value: name suffixes")),
		Entry("a cached ultra disk", writing("dataDisks", "[{nameSuffix: a, diskSizeGB: 4, lun: 1, cachingType: ReadOnly, managedDisk: {storageAccountType: UltraSSD_LRS}}]", "cachingType is not supported")),
		Entry("an ultra disk", writing("dataDisks", "[{nameSuffix: a, diskSizeGB: 4, lun: 1, cachingType: None, managedDisk: {storageAccountType: UltraSSD_LRS}}]", "")),
		Entry("a key that is no base64", writing("sshPublicKey", "ssh-rsa A", "not properly base64 encoded")),
		Entry("an interface without addresses", writing("networkInterfaces", "[{privateIPConfigs: 0}]", "must be at least 1")),
		Entry("a cache disk placement without a local disk", writing("osDisk.diffDiskSettings", "{option: Local, placement: CacheDisk}", "")),
		Entry("an encrypted local disk", writing("osDisk", "{osType: Linux, diffDiskSettings: {option: Local}, managedDisk: {diskEncryptionSet: {id: x}}}", "diskEncryptionSet is not supported")),
		Entry("an incomplete confidential VM", writing("osDisk.managedDisk", "{securityProfile: {securityEncryptionType: VMGuestStateOnly}}", "SecurityType should be set to 'ConfidentialVM'")),
		Entry("user-managed diagnostics without an account", writing("diagnostics", "{boot: {storageAccountType: UserManaged}}", "userManaged must be specified")),
		Entry("an unknown eviction policy of spot machines", writing("spotVMOptions", "{evictionPolicy: Foo}", `supported values: "Deallocate", "Delete"`)),
		Entry("spot machines that are deallocated", writing("spotVMOptions", "{evictionPolicy: Deallocate}", "")),
		Entry("spot machines that are deleted", writing("spotVMOptions", "{evictionPolicy: Delete, maxPrice: 1}", "")),
	)

	It("reject a change of a field that is immutable in Azure", func(ctx SpecContext) {
		machine := machines(namespace, "m", machineSpec)[0]
		expect.Created(ctx, masters, machine)
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

	It("are immutable as templates, except for the topology's dry run", func(ctx SpecContext) {
		template := machines(namespace, "t", machineSpec)[1]
		expect.Created(ctx, masters, template)
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

	It("have a bounded rolling update, and flexible orchestration only on new enough versions", func(ctx SpecContext) {
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
		expect.Created(ctx, masters, parent)
		Expect(masters.Create(ctx, flexible.DeepCopy(), client.DryRunAll)).To(beInvalid("spec.orchestrationMode", "specified Kubernetes version v1.25.9 must be >= 1.26.0"))
		Expect(change(ctx, masters, parent, set("spec.template.spec.version", "v1.26.0"))).To(Succeed())
		Expect(masters.Create(ctx, flexible.DeepCopy(), client.DryRunAll)).To(Succeed())
		for value, text := range map[string]string{"4": "minimum timeout 5", "16": "maximum timeout 15"} {
			object := mp("{}")
			set("spec.template.terminateNotificationTimeout", value)(object)
			Expect(masters.Create(ctx, object, client.DryRunAll)).To(beInvalid("spec.template.terminateNotificationTimeout", text))
		}
	})

	It("must name their subnet when there are several", func(ctx SpecContext) {
		expect.Created(ctx, masters, capiCluster(namespace, "aks"))
		infrastructure := azureCluster(namespace, "aks")
		expect.Created(ctx, masters, infrastructure)
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

	It("cannot change identity and orchestration in a pool", func(ctx SpecContext) {
		object := objectFrom(fmt.Sprintf("{apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: AzureMachinePoolMachine, metadata: {name: m, namespace: %s}, spec: {}}", namespace))
		expect.Created(ctx, masters, object)
		Expect(change(ctx, masters, object, set("spec.providerID", "a"))).To(Succeed())
		Expect(change(ctx, masters, object, set("spec.providerID", "b"))).To(beInvalid("spec.providerID", "providerID is immutable"))
	})
})
