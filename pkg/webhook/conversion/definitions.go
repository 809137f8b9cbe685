// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/apis/crds"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
)

// Definitions returns the CustomResourceDefinitions of the kinds that are converted. They serve all
// versions and send reviews to the address, or serve the stored version only if it is nil.
func Definitions(to *admissionregistrationv1.WebhookClientConfig) ([]client.Object, error) {
	found, err := crds.Named("clustermanagementaddons."+addonv1alpha1.GroupName, "managedclusteraddons."+addonv1alpha1.GroupName)
	if err != nil {
		return nil, fmt.Errorf("reading CustomResourceDefinitions: %w", err)
	}
	definitions := make([]client.Object, len(found))
	for i, definition := range found {
		definition.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
		if to != nil {
			convertBy(definition, to)
		}
		definitions[i] = definition
	}
	return definitions, nil
}

func convertBy(definition *apiextensionsv1.CustomResourceDefinition, to *admissionregistrationv1.WebhookClientConfig) {
	config := apiextensionsv1.WebhookClientConfig{URL: to.URL, CABundle: to.CABundle}
	if service := to.Service; service != nil {
		config.Service = &apiextensionsv1.ServiceReference{Namespace: service.Namespace, Name: service.Name, Path: service.Path, Port: service.Port}
	}
	definition.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook:  &apiextensionsv1.WebhookConversion{ClientConfig: &config, ConversionReviewVersions: []string{"v1"}},
	}
	for i := range definition.Spec.Versions {
		definition.Spec.Versions[i].Served = true
	}
}
