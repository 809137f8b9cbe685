// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/helmchart"
	"fleetgate.io/fleetgate/pkg/placement/snapshot"
)

// foreign is the error for objects that no gateway selects: somebody wrote the snapshot or the binding
// by hand.
const foreign = "nothing is sent, as a placement of a namespace brings objects of that namespace only"

// belongsTo rejects objects outside the namespace of a namespaced placement. The hub decides the scope
// of a kind, not the object: a namespace in the metadata of a cluster-scoped object means nothing. An
// envelope may contain kinds that only members serve.
func belongsTo(namespace string, parts []part, scopes helmchart.Scopes) error {
	if namespace == "" {
		return nil
	}
	for _, p := range parts {
		ids, err := identities(p)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := ofNamespace(namespace, id, p.Envelope != nil, scopes); err != nil {
				return err
			}
		}
	}
	return nil
}

// identities returns the objects of a part; for a chart, those in its rendered manifests.
func identities(p part) ([]placementv1beta1.ResourceIdentifier, error) {
	if !p.Chart {
		return p.Resources, nil
	}
	var ids []placementv1beta1.ResourceIdentifier
	for _, m := range p.Manifests {
		id, err := snapshot.Identify(m.Raw)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func ofNamespace(namespace string, id placementv1beta1.ResourceIdentifier, enveloped bool, scopes helmchart.Scopes) error {
	what := fmt.Sprintf("%s (%s) %q", id.Kind, schema.GroupVersion{Group: id.Group, Version: id.Version}, id.Name)
	if id.Namespace != namespace {
		return unsent(foreign+": %s is of namespace %q, not %q; find out who wrote the snapshot, and delete it", what, id.Namespace, namespace)
	}
	namespaced, known, err := scopes(schema.GroupVersionKind{Group: id.Group, Version: id.Version, Kind: id.Kind})
	switch {
	case err != nil:
		return fmt.Errorf("finding out whether %s lives in namespaces: %w", what, err)
	case known && !namespaced:
		return unsent(foreign+": %s is of the whole cluster; find out who wrote the snapshot, and delete it", what)
	case !known && !enveloped:
		return fmt.Errorf("nothing is sent, as the hub no longer serves the kind of %s and cannot determine its scope; install its CustomResourceDefinition again, or remove it from the selectors", what)
	}
	return nil
}
