// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// withWrittenNamespaces returns the set without the namespaces of manifests whose kind is
// cluster-scoped on the hub: its author was checked for the whole cluster. The agent rejects every
// other manifest of a set with a namespace and a kind that is cluster-scoped on its cluster, because
// the author was checked in that namespace.
func withWrittenNamespaces(set *workv1alpha1.ManifestWorkReplicaSet, mapper meta.RESTMapper) (*workv1alpha1.ManifestWorkReplicaSet, error) {
	written := set
	for i, m := range set.Spec.ManifestWorkTemplate.Workload.Manifests {
		raw, err := withWrittenNamespace(m, mapper)
		if err != nil {
			return nil, err
		}
		if raw == nil {
			continue
		}
		if written == set {
			written = set.DeepCopy()
		}
		written.Spec.ManifestWorkTemplate.Workload.Manifests[i].Raw = raw
	}
	return written, nil
}

// withWrittenNamespace returns nil if the manifest can stay as it is, or cannot be read: the agent
// reports that.
func withWrittenNamespace(m workv1.Manifest, mapper meta.RESTMapper) ([]byte, error) {
	object, err := manifest.Decode(m.Raw)
	if err != nil || object.GetNamespace() == "" {
		//lint:ignore nilerr The agent reports it.
		return nil, nil
	}
	kind := object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("asking the hub for kind %s: %w", kind, err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return nil, nil
	}
	object.SetNamespace("")
	return json.Marshal(object)
}
