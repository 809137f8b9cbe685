// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// A manifest can move from one ManifestWork to another. If the first deleted the object before the
// second applied it, a Deployment would stop and a volume lose its data. One write therefore makes
// the other ManifestWork the owner. In OCM's agent the order of the two is undefined.

// worksByObject is the index of ManifestWorks by the objects of their manifests.
const worksByObject = "object"

// owner decides about the objects of one ManifestWork. An object can have any number of owners.
type owner struct {
	engine.DefaultOwner
	r    *Reconciler
	work *workv1.ManifestWork // may no longer exist
}

// Orphans implements engine.Owner.
func (o owner) Orphans(entry engine.Entry) bool { return stays(o.work.Spec.DeleteOption, entry.Ref) }

// NextOwner implements engine.Owner.
func (o owner) NextOwner(ctx context.Context, e engine.Entry) (*metav1.OwnerReference, error) {
	list := &workv1.ManifestWorkList{}
	err := o.r.hub.List(ctx, list, client.InNamespace(o.r.options.Cluster), client.UnsafeDisableDeepCopy,
		client.MatchingFields{worksByObject: manifest.KeyOf(e.Ref).String()})
	if err != nil {
		return nil, fmt.Errorf("finding other owners of %s %q: %w", e.Kind, e.Name, err)
	}
	for i := range list.Items {
		if other := &list.Items[i]; inherits(o.work, other, e.Ref) {
			return o.r.ownerFor(ctx, other.DeepCopy())
		}
	}
	return nil, nil
}

// inherits reports whether another ManifestWork becomes the owner of a removed object. It must
// write the object and remove it later. A ManifestWork with another executor does not inherit: it
// could prevent the removal of an object by naming it.
func inherits(from, next *workv1.ManifestWork, ref manifest.Ref) bool {
	mode, known := modeOf(strategyOf(configOf(&next.Spec, ref)))
	return next.Name != from.Name && next.DeletionTimestamp == nil && known && mode.Method != engine.ReadOnly &&
		!isResting(next) && !stays(next.Spec.DeleteOption, ref) &&
		(next.Spec.Executor == nil || apiequality.Semantic.DeepEqual(from.Spec.Executor, next.Spec.Executor))
}

// ownerFor returns the owner reference of a ManifestWork; nil if it cannot own objects.
func (r *Reconciler) ownerFor(ctx context.Context, work *workv1.ManifestWork) (*metav1.OwnerReference, error) {
	record, err := r.records.ensure(ctx, work)
	if err != nil || record.DeletionTimestamp != nil {
		return nil, err
	}
	owner := ownerOf(record)
	return &owner, nil
}

// objectsOf returns the index keys of a ManifestWork: the objects of its manifests.
func objectsOf(object client.Object) []string {
	work, is := object.(*workv1.ManifestWork)
	if !is {
		return nil
	}
	return manifest.KeysIn(work.Spec.Workload.Manifests, func(m workv1.Manifest) []byte { return m.Raw })
}
