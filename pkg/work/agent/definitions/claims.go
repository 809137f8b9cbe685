// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package definitions

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/apis/crds"
)

// EnsureClaims installs the kinds with which people state facts about a member: ClusterClaim and
// ClusterProperty. Unlike [Ensure] it does not wait, because the agent works without them.
func EnsureClaims(ctx context.Context, member client.Client) error {
	wanted, err := crds.Named(crds.ClusterClaims)
	if err != nil {
		return err
	}
	for _, crd := range append(wanted, clusterProperties()) {
		if err := ensureOne(ctx, member, crd); err != nil {
			return fmt.Errorf("installing CustomResourceDefinition %s on the member: %w", crd.Name, err)
		}
	}
	return nil
}

// All returns every kind that an agent can install, with its label. Ensure and EnsureClaims keep
// definitions with this label up to date, also if another tool created them.
func All() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	all, err := crds.Named(crds.AppliedWorks, crds.AppliedManifestWorks, crds.ClusterClaims)
	if err != nil {
		return nil, err
	}
	all = append(all, clusterProperties())
	for _, crd := range all {
		metav1.SetMetaDataLabel(&crd.ObjectMeta, InstalledByLabel, InstalledByAgent)
	}
	return all, nil
}

// clusterProperties is ClusterProperty of about.k8s.io. v1alpha1 is the storage version: a definition
// that others apply later may lack v1beta1, and every stored version must be in it.
func clusterProperties() *apiextensionsv1.CustomResourceDefinition {
	const group, plural = "about.k8s.io", "clusterproperties"
	value := apiextensionsv1.JSONSchemaProps{Type: "string", MinLength: ptr.To[int64](1)}
	schema := &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
		Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"apiVersion": {Type: "string"}, "kind": {Type: "string"}, "metadata": {Type: "object"},
			"spec":   {Type: "object", Required: []string{"value"}, Properties: map[string]apiextensionsv1.JSONSchemaProps{"value": value}},
			"status": {Type: "object"},
		},
	}}
	crd := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta: metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group, Annotations: map[string]string{
			"api-approved.kubernetes.io": "https://github.com/kubernetes/enhancements/pull/3084",
		}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: "clusterproperty", Kind: "ClusterProperty", ListKind: "ClusterPropertyList"},
		},
	}
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Served: true, Storage: version == "v1alpha1", Schema: schema,
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			AdditionalPrinterColumns: []apiextensionsv1.CustomResourceColumnDefinition{
				{Name: "Value", Type: "string", JSONPath: ".spec.value"},
				{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"},
			},
		})
	}
	return crd
}
