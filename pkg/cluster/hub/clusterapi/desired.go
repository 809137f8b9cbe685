// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/version"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
)

// Labels of a member whose cluster Cluster API made. Those with a domain of ours no agent
// can bring.
const (
	// labelRegion is Kubernetes' own topology key, by which placements spread.
	labelRegion = "topology.kubernetes.io/region"
	// labelZone is only on a cluster that is in one zone as a whole.
	labelZone = "topology.kubernetes.io/zone"
	// Azure's three, which the documents of Azure Fleet select by.
	labelLocation      = registrationv1alpha1.LabelLocation
	labelResourceGroup = registrationv1alpha1.LabelResourceGroup
	labelSubscription  = registrationv1alpha1.LabelSubscription

	labelProvider   = clusterv1beta1.InfrastructurePrefix + "provider"
	labelClass      = clusterv1beta1.InfrastructurePrefix + "cluster-class"
	labelSpot       = clusterv1beta1.InfrastructurePrefix + "spot"
	labelPrivate    = clusterv1beta1.InfrastructurePrefix + "private"
	labelExternal   = clusterv1beta1.InfrastructurePrefix + "externally-managed"
	labelZonePrefix = clusterv1beta1.InfrastructurePrefix + "zone-"
)

// Properties of such a member.
const (
	propertyZoneCount = clusterv1beta1.InfrastructurePrefix + "failure-domain-count"
	propertyZones     = clusterv1beta1.InfrastructurePrefix + "failure-domains"
	propertySpotPools = clusterv1beta1.InfrastructurePrefix + "spot-pool-count"
	propertyVersion   = clusterv1beta1.InfrastructurePrefix + "kubernetes-version"
	// propertyMinor is the minor version alone: a number, as placements compare them.
	propertyMinor    = clusterv1beta1.InfrastructurePrefix + "kubernetes-minor"
	propertyPods     = clusterv1beta1.InfrastructurePrefix + "pod-cidrs"
	propertyServices = clusterv1beta1.InfrastructurePrefix + "service-cidrs"
)

// maxZones limits how many failure domains become labels and a property.
const maxZones = 16

// isOptedIn is true if the cluster is to be imported.
func isOptedIn(cluster, namespace map[string]string) bool {
	if value, ok := cluster[LabelAutoImport]; ok {
		return value == "true"
	}
	return namespace[LabelAutoImport] == "true"
}

// desiredLabels are the Cluster's labels on the list, and those that follow from the facts. Invalid
// and reserved ones are left out.
func desiredLabels(own map[string]string, allowed []string, f facts) map[string]string {
	labels := map[string]string{}
	for key, value := range own {
		if isAllowed(key, allowed) && !registrationv1alpha1.IsReservedLabel(key) && key != group && !strings.Contains(key, group+"/") {
			labels[key] = value
		}
	}
	for key, value := range map[string]string{
		labelRegion: f.region, labelProvider: f.provider, labelClass: f.class,
		labelResourceGroup: f.resourceGroup, labelSubscription: f.subscription,
		labelSpot: mark(f.spotPools > 0), labelPrivate: mark(f.private), labelExternal: mark(f.external),
	} {
		if value != "" {
			labels[key] = value
		}
	}
	if f.resourceGroup != "" || f.subscription != "" {
		labels[labelLocation] = f.region
	}
	if len(f.zones) == 1 {
		labels[labelZone] = f.zones[0]
	}
	for _, zone := range f.zones[:min(len(f.zones), maxZones)] {
		labels[labelZonePrefix+zone] = mark(true)
	}
	maps.DeleteFunc(labels, func(key, value string) bool {
		return len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0
	})
	return labels
}

func mark(is bool) string {
	if is {
		return "true"
	}
	return ""
}

func isAllowed(key string, allowed []string) bool {
	return slices.ContainsFunc(allowed, func(pattern string) bool {
		prefix, isPrefix := strings.CutSuffix(pattern, "*")
		return key == pattern || isPrefix && strings.HasPrefix(key, prefix)
	})
}

// desiredProperties are strings. The counts are always set: a region without zones has 0.
func desiredProperties(f facts) map[string]string {
	properties := map[string]string{
		propertyZoneCount: strconv.Itoa(len(f.zones)),
		propertySpotPools: strconv.Itoa(f.spotPools),
	}
	for name, values := range map[string][]string{
		propertyZones: f.zones[:min(len(f.zones), maxZones)], propertyPods: f.pods, propertyServices: f.services,
	} {
		if len(values) > 0 {
			properties[name] = strings.Join(values, ",")
		}
	}
	if parsed, err := version.ParseGeneric(f.version); err == nil {
		properties[propertyVersion] = f.version
		properties[propertyMinor] = strconv.FormatUint(uint64(parsed.Minor()), 10)
	}
	return properties
}

// desired brings the Cluster up to date. Changes by people stay, also in its spec.
func desired(fleet *registrationv1alpha1.Cluster, origin *unstructured.Unstructured, labels, properties map[string]string) error {
	fleet.Spec.KubeConfigSecret = secretName(origin.GetName())
	metav1.SetMetaDataAnnotation(&fleet.ObjectMeta, AnnotationOrigin, origin.GetName())
	metav1.SetMetaDataAnnotation(&fleet.ObjectMeta, AnnotationOriginUID, string(origin.GetUID()))
	for key := range strings.SplitSeq(fleet.Annotations[AnnotationLabels], ",") {
		if _, ok := labels[key]; !ok {
			delete(fleet.Labels, key)
		}
	}
	for key, value := range labels {
		metav1.SetMetaDataLabel(&fleet.ObjectMeta, key, value)
	}
	metav1.SetMetaDataAnnotation(&fleet.ObjectMeta, AnnotationLabels, strings.Join(slices.Sorted(maps.Keys(labels)), ","))
	encoded, err := json.Marshal(properties)
	if err != nil {
		return fmt.Errorf("encoding the properties of Cluster %q: %w", fleet.Name, err)
	}
	metav1.SetMetaDataAnnotation(&fleet.ObjectMeta, clusterv1beta1.AnnotationProperties, string(encoded))
	return nil
}
