// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/cmd/gateway/app/options"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/registration"
	"fleetgate.io/fleetgate/pkg/kube/intern"
	"fleetgate.io/fleetgate/pkg/placement/dispatch"
	"fleetgate.io/fleetgate/pkg/placement/ocm/replicaset"
)

// cacheOptions are the options of a cache beside a manager's own.
func (h *hub) cacheOptions(mapper meta.RESTMapper) cache.Options {
	return cache.Options{Scheme: h.scheme, Mapper: mapper, DefaultTransform: h.common.Transform}
}

// withoutManifests returns how the served families of works are cached. It leaves out other
// families, because a cache sends requests to the hub for every kind in its options.
func withoutManifests(parts *options.Features, common *intern.Table) map[client.Object]cache.ByObject {
	objects := map[client.Object]cache.ByObject{}
	if parts.Serves(options.APIFleet) {
		maps.Copy(objects, dispatch.CacheOptions())
	}
	if parts.ServesOCM(options.OCMWorks) || parts.ServesOCM(options.OCMAddOns) {
		maps.Copy(objects, replicaset.CacheOptions())
	}
	for object, kept := range objects {
		kept.Transform = common.After(kept.Transform)
		objects[object] = kept
	}
	return objects
}

// withoutUsage keeps of a MemberCluster only what leads to the member and its owner. The leader has
// a cache of its own with the rest: properties, usage, and the agent's key, which alone is longer
// than everything else.
func withoutUsage(object any) (any, error) {
	member, ok := object.(*clusterv1beta1.MemberCluster)
	if !ok {
		return object, nil
	}
	delete(member.Annotations, registration.AnnotationAgentKey)
	member.Status.Properties, member.Status.ResourceUsage = nil, clusterv1beta1.ResourceUsage{}
	return member, nil
}
