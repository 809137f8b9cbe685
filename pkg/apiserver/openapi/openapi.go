// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"strings"

	aggregator "k8s.io/kube-aggregator/pkg/generated/openapi"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"fleetgate.io/fleetgate/pkg/apiserver/openapi/internal/served"
)

// GetOpenAPIDefinitions returns the schemas of all types that the aggregated API server serves, by
// model name, in the form of that server's OpenAPI configuration.
//
// The schemas of Kubernetes types must equal those of the hub's aggregator. It merges both, and
// different ones would conflict.
func GetOpenAPIDefinitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	definitions := aggregator.GetOpenAPIDefinitions(ref)
	byModelName := func(name string) spec.Ref { return ref(modelName(name)) }
	for name, definition := range served.GetOpenAPIDefinitions(byModelName) {
		for i, dependency := range definition.Dependencies {
			definition.Dependencies[i] = modelName(dependency)
		}
		definitions[name] = definition
	}
	return definitions
}

// modelName returns the model name of a type that the generator knows only by its Go path, because
// it is outside of the packages that it read. Model names of Kubernetes types are their reversed
// paths. A name that is not a path is a model name already.
func modelName(name string) string {
	if !strings.Contains(name, "/") {
		return name
	}
	return util.ToRESTFriendlyName(name)
}
