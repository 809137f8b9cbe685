// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/expect"
)

var _ = Describe("A field that the member's stored version of a kind lacks", func() {
	for _, strategy := range []placementv1beta1.ApplyStrategyType{placementv1beta1.ClientSideApply, placementv1beta1.ServerSideApply} {
		for _, field := range []string{`"color": "red"`, `"colors": []`} {
			It("is not written again and again with "+string(strategy)+": "+field, func(ctx SpecContext) {
				ns := expect.FreshNamespace(ctx, memberClient)
				group := ns + ".example.org"
				definition := versions(group)
				expect.Created(ctx, memberClient, definition)
				DeferCleanup(func(ctx SpecContext) { Expect(memberClient.Delete(ctx, definition)).To(Succeed()) })
				gadget := fmt.Sprintf(`{"apiVersion": "%s/v1", "kind": "Gadget", "metadata": {"namespace": %q, "name": "g"}, "spec": {"size": 1, %s}}`, group, ns, field)
				name := "futile-" + ns
				createWork(ctx, name, &placementv1beta1.ApplyStrategy{Type: strategy,
					ServerSideApplyConfig: &placementv1beta1.ServerSideApplyConfig{ForceConflicts: strategy == placementv1beta1.ServerSideApply}}, gadget)
				isLost := field != `"colors": []` // An empty list and none are the same.
				settled := HaveField("Applied", "True/AllManifestsApplied")
				if isLost {
					settled = HaveField("Applied", "False/SomeManifestsAreNotApplied")
				}
				found := func(g Gomega) map[string]any {
					object, err := expect.Found(ctx, memberClient, group+"/v1", "Gadget", ns, "g")
					g.Expect(err).NotTo(HaveOccurred())
					spec, _ := object.Object["spec"].(map[string]any)
					return map[string]any{"generation": object.GetGeneration(), "size": spec["size"], "color": spec["color"]}
				}

				Eventually(found).Should(HaveKeyWithValue("size", BeEquivalentTo(1))) // The member may serve the kind a bit later.
				Eventually(reported(ctx, name)).Should(settled)

				By("changing it on the member, and reconciling it often")
				object, err := expect.Found(ctx, memberClient, group+"/v1", "Gadget", ns, "g")
				Expect(err).NotTo(HaveOccurred())
				Expect(memberClient.Patch(ctx, object, expect.MergePatch(`{"spec":{"size":2}}`))).To(Succeed())
				Eventually(found).Should(HaveKeyWithValue("size", BeEquivalentTo(1)))
				var before any
				for i := range 5 {
					if i == 1 { // An empty value shows in the first write only that the member does not store it.
						before = found(NewGomega(Fail))["generation"]
					}
					Expect(memberClient.Patch(ctx, object, expect.MergePatch(fmt.Sprintf(`{"metadata":{"labels":{"other":"%d"}}}`, i)))).To(Succeed())
					changeWork(ctx, name, strings.TrimSuffix(gadget, "}")+fmt.Sprintf(`, "status": {"look": %d}}`, i))
					Eventually(reported(ctx, name)).Should(settled)
				}
				Expect(found(NewGomega(Fail))).To(HaveKeyWithValue("generation", before))
				Expect(getWork(ctx, name).Status.Conditions).NotTo(ContainElement(HaveField("Type", placementv1beta1.ConditionContested)))
				if !isLost {
					return
				}

				By("adding the field to the stored version")
				Expect(memberClient.Get(ctx, client.ObjectKeyFromObject(definition), definition)).To(Succeed())
				definition.Spec.Versions[1].Schema = definition.Spec.Versions[0].Schema
				Expect(memberClient.Update(ctx, definition)).To(Succeed())
				Eventually(found).Should(HaveKeyWithValue("color", "red"))
				Eventually(reported(ctx, name)).Should(HaveField("Applied", "True/AllManifestsApplied"))
			})
		}
	}
})

// versions defines a kind with the fields size, color and colors in v1. The member stores it in v2, which has only
// the first.
func versions(group string) *apiextensionsv1.CustomResourceDefinition {
	schema := func(properties map[string]apiextensionsv1.JSONSchemaProps) *apiextensionsv1.CustomResourceValidation {
		return &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Type: "object", Properties: properties}},
		}}
	}
	size, color := apiextensionsv1.JSONSchemaProps{Type: "integer"}, apiextensionsv1.JSONSchemaProps{Type: "string"}
	colors := apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &color}}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	definition.Name = "gadgets." + group
	definition.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: group, Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "gadgets", Singular: "gadget", Kind: "Gadget", ListKind: "GadgetList"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
			{Name: "v1", Served: true, Schema: schema(map[string]apiextensionsv1.JSONSchemaProps{"size": size, "color": color, "colors": colors})},
			{Name: "v2", Served: true, Storage: true, Schema: schema(map[string]apiextensionsv1.JSONSchemaProps{"size": size})},
		},
	}
	return definition
}
