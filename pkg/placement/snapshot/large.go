// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

const (
	// manifestLimit is the maximum size of a manifest. etcd accepts 1.5 MiB, and the manifest must fit
	// into a resource snapshot, and into a Work with its status.
	manifestLimit = 1_500_000
	// maxLarge is the number of objects that the condition names.
	maxLarge = 10
)

// fitting replaces manifests that are too large for any snapshot by those of the latest group, because
// objects that are missing from the next group would be removed from the members. It returns the
// manifests that fit, and the names of the others.
func (r *Reconciler) fitting(ctx context.Context, latest *metav1.PartialObjectMetadata, manifests []placementv1beta1.Manifest, limit int) (fits []placementv1beta1.Manifest, large []string, err error) {
	fits = make([]placementv1beta1.Manifest, 0, len(manifests))
	for _, m := range manifests {
		size := stored(m.Raw)
		if size <= limit {
			fits = append(fits, m)
			continue
		}
		id, err := Identify(m.Raw)
		if err != nil {
			return nil, nil, err
		}
		large = append(large, fmt.Sprintf("%s %q (%d bytes)", id.Kind, strings.TrimPrefix(id.Namespace+"/"+id.Name, "/"), size))
		earlier, err := r.earlier(ctx, latest, id)
		if err != nil {
			return nil, nil, err
		}
		if earlier != nil {
			fits = append(fits, *earlier)
		}
	}
	return fits, large, nil
}

// stored is the size of a manifest in etcd, where no character is escaped for HTML.
func stored(raw []byte) int {
	size := len(raw)
	for _, escaped := range []string{`\u003c`, `\u003e`, `\u0026`} {
		size -= bytes.Count(raw, []byte(escaped)) * (len(escaped) - 1)
	}
	return size
}

// earlier is the manifest of an object in the latest group; nil if it has none.
func (r *Reconciler) earlier(ctx context.Context, latest *metav1.PartialObjectMetadata, id placementv1beta1.ResourceIdentifier) (*placementv1beta1.Manifest, error) {
	if latest == nil {
		return nil, nil
	}
	group, err := r.Snapshots.Group(ctx, client.ObjectKeyFromObject(latest))
	if err != nil {
		return nil, err
	}
	for _, part := range group.Parts {
		for i, resource := range part.Resources {
			if part.Envelope == nil && resource == id {
				return &part.Manifests[i], nil
			}
		}
	}
	return nil, nil
}

// reportLarge names on the placement the objects that are too large to be placed.
func (r *Reconciler) reportLarge(ctx context.Context, placement placementv1beta1.PlacementObject, large []string) error {
	before := placement.DeepCopyObject().(client.Object)
	var c *metav1.Condition
	if len(large) > 0 {
		c = &metav1.Condition{Reason: placementv1beta1.ReasonObjectTooLarge, Message: fmt.Sprintf(
			"Selected and not placed: %s. A resource snapshot can hold objects of up to %d bytes. Members keep the version of these objects that they have, and get all other objects. Split the objects", refusal.Names(large, maxLarge), manifestLimit)}
	}
	if !setOrRemove(&placement.GetStatus().Conditions, placementv1beta1.ConditionResourcesTooLarge, placement.GetGeneration(), c) {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, placement, reconcileutil.PatchFrom(before)); err != nil {
		return fmt.Errorf("writing the status of placement %q: %w", placement.GetName(), err)
	}
	return nil
}
