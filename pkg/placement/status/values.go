// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// redacted stands for a value, in KubeFleet's words.
const redacted = "(redacted for security reasons)"

// viewed are the kinds that readers of placements are taken to read: those of Kubernetes' role view,
// into which the right to read placements is aggregated. The status of a placement shows the values of
// their differing fields only. Of other kinds, such as Secrets, roles and custom resources, it
// shows the paths; the binding has the values.
var viewed = kindsOf(map[string][]string{
	"": {
		"ConfigMap", "Endpoints", "LimitRange", "Namespace", "PersistentVolumeClaim", "Pod", "ReplicationController",
		"ResourceQuota", "Service", "ServiceAccount",
	},
	"apps":              {"ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"},
	"autoscaling":       {"HorizontalPodAutoscaler"},
	"batch":             {"CronJob", "Job"},
	"discovery.k8s.io":  {"EndpointSlice"},
	"networking.k8s.io": {"Ingress", "NetworkPolicy"},
	"policy":            {"PodDisruptionBudget"},
})

func kindsOf(groups map[string][]string) map[schema.GroupKind]bool {
	known := map[schema.GroupKind]bool{}
	for group, kinds := range groups {
		for _, kind := range kinds {
			known[schema.GroupKind{Group: group, Kind: kind}] = true
		}
	}
	return known
}

// visible returns the fields as readers of placements may see them. It does not change what it is given.
func visible(of *placementv1beta1.ResourceIdentifier, fields []placementv1beta1.PatchDetail) []placementv1beta1.PatchDetail {
	if len(fields) == 0 || viewed[schema.GroupKind{Group: of.Group, Kind: of.Kind}] {
		return fields
	}
	shown := make([]placementv1beta1.PatchDetail, len(fields))
	for i, field := range fields {
		shown[i] = placementv1beta1.PatchDetail{Path: field.Path}
		if field.ValueInHub != "" {
			shown[i].ValueInHub = redacted
		}
		if field.ValueInMember != "" {
			shown[i].ValueInMember = redacted
		}
	}
	return shown
}

func visibleDrifts(all []placementv1beta1.DriftedResourcePlacement) []placementv1beta1.DriftedResourcePlacement {
	var shown []placementv1beta1.DriftedResourcePlacement
	for _, d := range all {
		d.ObservedDrifts = visible(&d.ResourceIdentifier, d.ObservedDrifts)
		shown = append(shown, d)
	}
	return shown
}

func visibleDiffs(all []placementv1beta1.DiffedResourcePlacement) []placementv1beta1.DiffedResourcePlacement {
	var shown []placementv1beta1.DiffedResourcePlacement
	for _, d := range all {
		d.ObservedDiffs = visible(&d.ResourceIdentifier, d.ObservedDiffs)
		shown = append(shown, d)
	}
	return shown
}
