// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterapi

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// facts are the data of Cluster API and its providers about a cluster. Unknown ones are empty.
type facts struct {
	// provider is the kind of the infrastructure, such as AzureCluster.
	provider string
	class    string
	region   string
	// resourceGroup and subscription are Azure's.
	resourceGroup, subscription string
	// zones are the names of the failure domains, sorted.
	zones []string
	// version is the control plane's Kubernetes version.
	version string
	// pods and services are CIDRs.
	pods, services []string
	// private is true if the API server has no public address.
	private bool
	// external is true if something other than the provider's controller manages the
	// infrastructure.
	external bool
	// spotPools are the machine pools and deployments whose machines are spot instances.
	spotPools int
}

// objects are a Cluster and the objects that it refers to; nil where there is none.
type objects struct {
	cluster, infrastructure, controlPlane *unstructured.Unstructured
	// machines are the infrastructure of each machine pool and deployment.
	machines []*unstructured.Unstructured
}

// factsOf reads them. Providers use several names for the same field, and versions of Cluster API
// several places: the first existing one counts.
func factsOf(o objects) facts {
	f := facts{
		provider: text(o.cluster, "spec", "infrastructureRef", "kind"),
		class:    cmp.Or(text(o.cluster, "spec", "topology", "classRef", "name"), text(o.cluster, "spec", "topology", "class")),
		region: cmp.Or(
			text(o.infrastructure, "spec", "location"), text(o.infrastructure, "spec", "region"),
			text(o.controlPlane, "spec", "location"), text(o.controlPlane, "spec", "region"),
		),
		resourceGroup: cmp.Or(text(o.infrastructure, "spec", "resourceGroup"), text(o.controlPlane, "spec", "resourceGroupName")),
		subscription:  cmp.Or(text(o.infrastructure, "spec", "subscriptionID"), text(o.controlPlane, "spec", "subscriptionID")),
		version: cmp.Or(
			text(o.controlPlane, "status", "version"), text(o.controlPlane, "spec", "version"), text(o.cluster, "spec", "topology", "version"),
		),
		pods:     texts(o.cluster, "spec", "clusterNetwork", "pods", "cidrBlocks"),
		services: texts(o.cluster, "spec", "clusterNetwork", "services", "cidrBlocks"),
		private: text(o.infrastructure, "spec", "networkSpec", "apiServerLB", "type") == "Internal" ||
			flag(o.controlPlane, "spec", "apiServerAccessProfile", "enablePrivateCluster"),
	}
	f.zones = failureDomains(o.cluster)
	if len(f.zones) == 0 {
		f.zones = failureDomains(o.infrastructure)
	}
	if o.infrastructure != nil {
		_, f.external = o.infrastructure.GetAnnotations()[annotationManagedBy]
	}
	for _, machines := range o.machines {
		if isSpot(machines) {
			f.spotPools++
		}
	}
	return f
}

// isInitialized is true if the API server has ever accepted requests, which stays true. The phase
// Provisioned would say less.
func isInitialized(cluster *unstructured.Unstructured) bool {
	return flag(cluster, "status", "initialization", "controlPlaneInitialized") ||
		hasCondition(cluster, "ControlPlaneInitialized", "status", "conditions") ||
		hasCondition(cluster, "ControlPlaneInitialized", "status", "v1beta2", "conditions")
}

func isPaused(cluster *unstructured.Unstructured) bool {
	_, annotated := cluster.GetAnnotations()[annotationPaused]
	return annotated || flag(cluster, "spec", "paused")
}

func hasCondition(o *unstructured.Unstructured, kind string, path ...string) bool {
	conditions, _, _ := unstructured.NestedSlice(o.Object, path...)
	return slices.ContainsFunc(conditions, func(c any) bool {
		condition, ok := c.(map[string]any)
		return ok && condition["type"] == kind && condition["status"] == "True"
	})
}

// failureDomains reads a list of objects with a name (v1beta2), or a map by name (v1beta1).
func failureDomains(o *unstructured.Unstructured) []string {
	if o == nil {
		return nil
	}
	found, _, _ := unstructured.NestedFieldNoCopy(o.Object, "status", "failureDomains")
	switch domains := found.(type) {
	case map[string]any:
		return slices.Sorted(maps.Keys(domains))
	case []any:
		var names []string
		for _, d := range domains {
			if domain, ok := d.(map[string]any); ok {
				if name, ok := domain["name"].(string); ok && name != "" {
					names = append(names, name)
				}
			}
		}
		slices.Sort(names)
		return slices.Compact(names)
	}
	return nil
}

// isSpot knows Azure's managed pools, and the pools and templates of providers that have a field of
// options for spot instances.
func isSpot(machines *unstructured.Unstructured) bool {
	if text(machines, "spec", "scaleSetPriority") == "Spot" {
		return true
	}
	for _, path := range [][]string{
		{"spec", "template", "spotVMOptions"}, {"spec", "template", "spec", "spotVMOptions"},
		{"spec", "awsLaunchTemplate", "spotMarketOptions"}, {"spec", "template", "spec", "spotMarketOptions"},
	} {
		options, found, _ := unstructured.NestedFieldNoCopy(machines.Object, path...)
		if found && options != nil {
			return true
		}
	}
	return false
}

// text is empty for a missing field, and for one that is not a string.
func text(o *unstructured.Unstructured, path ...string) string {
	if o == nil {
		return ""
	}
	found, _, _ := unstructured.NestedString(o.Object, path...)
	return found
}

func texts(o *unstructured.Unstructured, path ...string) []string {
	if o == nil {
		return nil
	}
	found, _, _ := unstructured.NestedStringSlice(o.Object, path...)
	return found
}

func flag(o *unstructured.Unstructured, path ...string) bool {
	if o == nil {
		return false
	}
	found, _, _ := unstructured.NestedBool(o.Object, path...)
	return found
}
