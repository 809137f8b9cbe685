// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"strings"

	aggregator "k8s.io/kube-aggregator/pkg/generated/openapi"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"fleetgate.io/fleetgate/pkg/apis/openapi/internal/served"
)

// GetOpenAPIDefinitions are the descriptions of all types that the aggregated
// API server serves, by model name: it is what that server's OpenAPI
// configuration asks for.
//
// The descriptions of Kubernetes' own types are those of the hub's aggregator,
// which puts ours beside its own: two that differed would clash there.
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

// modelName is the model name of a type that the generator knew only by its Go
// path, since it lies outside the packages that it read: model names of
// Kubernetes' packages are their paths turned around. What is no path is a
// model name already.
func modelName(name string) string {
	if !strings.Contains(name, "/") {
		return name
	}
	return util.ToRESTFriendlyName(name)
}
