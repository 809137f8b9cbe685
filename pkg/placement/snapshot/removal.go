// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"golang.org/x/sync/errgroup"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/kube/hash"
	"fleetgate.io/fleetgate/pkg/kube/listget"
	"fleetgate.io/fleetgate/pkg/placement/objects"
)

const (
	// removalReaders is the number of objects that are read at a time.
	removalReaders = 16
	// maxRemoved is the number of objects that the condition names.
	maxRemoved = 5
)

// suspendRemoval reports whether the next group has to wait because it would remove many objects from
// members although no user removed them: the selectors are unchanged, or select nothing, and the objects
// exist on the hub. Causes are an incomplete list, a change of labels, or a mistake in the selectors. Small
// removals in a row count together, so the next group records the recent ones.
func (r *Reconciler) suspendRemoval(ctx context.Context, placement placementv1beta1.PlacementObject, latest *metav1.PartialObjectMetadata, objects []*unstructured.Unstructured) (waits bool, recent placementv1beta1.RecentRemovals, err error) {
	lost, all, err := r.noLongerSelected(ctx, placement, latest, objects)
	if err != nil {
		return false, nil, err
	}
	if all > 0 {
		recent = r.recentRemovals(placement, latest, objects)
	}
	var c *metav1.Condition
	token := placementv1beta1.RemovalToken(lost.names)
	switch {
	case placementv1beta1.RemovalConfirmed(placement, token):
		recent = nil // The user confirmed it knowing of the previous ones.
	case len(lost.names) > 0 && placementv1beta1.LargeRemoval(lost.objects+len(recent), all+len(recent)):
		c = suspended(placement, lost, all, len(recent), token)
	case len(lost.names) > 0:
		recent.Add(r.Clock.Now(), lost.names...)
	}
	return c != nil, recent, r.reportSuspension(ctx, placement, c)
}

func (r *Reconciler) reportSuspension(ctx context.Context, placement placementv1beta1.PlacementObject, c *metav1.Condition) error {
	return objects.ReportSuspension(ctx, r.Client, r.Recorder, placement, placementv1beta1.ReasonConfirmationRequired, c, "Select")
}

// recentRemovals are the recorded removals of objects that are not selected again.
func (r *Reconciler) recentRemovals(placement placementv1beta1.PlacementObject, latest *metav1.PartialObjectMetadata, selected []*unstructured.Unstructured) placementv1beta1.RecentRemovals {
	now := objects.RecordTime(placement.GetStatus().Conditions, r.Clock.Now())
	recent := placementv1beta1.ParseRecentRemovals(latest.Annotations[placementv1beta1.RecentRemovalsAnnotation], now)
	for _, object := range selected {
		recent.Forget(removalName(object.GetKind(), object.GetNamespace(), object.GetName()))
	}
	return recent
}

func removalName(kind, namespace, name string) string {
	return fmt.Sprintf("%s %s", kind, klog.KRef(namespace, name))
}

func suspended(placement placementv1beta1.PlacementObject, lost unselected, all, recent int, token string) *metav1.Condition {
	return &metav1.Condition{Message: fmt.Sprintf(
		"%d of %d objects would be removed from the members%s although they exist on the hub and spec.resourceSelectors did not change, or select nothing: %s. Members keep what they have and get no updates. Confirm the removal with \"kubectl fleetgate confirm %s\", which sets annotation %s=%s",
		lost.objects, all, objects.AfterRecent(recent), refusal.Names(lost.names, maxRemoved), klog.KObj(placement), placementv1beta1.ConfirmRemovalAnnotation, token)}
}

// unselected are objects that are no longer selected.
type unselected struct {
	names []string
	// objects is how many members lose. An envelope counts as its contents, a chart as the least that is large.
	objects int
}

// noLongerSelected returns the objects of the latest group that are no longer selected but still exist on the hub,
// and the number of objects in the group. Both are zero if the selectors changed and select something: a
// user who wants to remove everything deletes the placement.
func (r *Reconciler) noLongerSelected(ctx context.Context, placement placementv1beta1.PlacementObject, latest *metav1.PartialObjectMetadata, objects []*unstructured.Unstructured) (unselected, int, error) {
	if latest == nil || r.Snapshots == nil {
		return unselected{}, 0, nil
	}
	if noted, ok := latest.Annotations[placementv1beta1.SelectorsHashAnnotation]; ok && noted != selectorsHash(placement.GetSpec()) && len(objects) > 0 {
		return unselected{}, 0, nil
	}
	group, err := r.Snapshots.Group(ctx, client.ObjectKeyFromObject(latest))
	if apierrors.IsNotFound(err) || errors.Is(err, ErrIncomplete) {
		return unselected{}, 0, nil // A part was deleted: only a new group helps the members.
	}
	if err != nil {
		return unselected{}, 0, err
	}
	lost, err := r.onHub(ctx, group, missingFrom(group.Resources, objects))
	return lost, sizeOf(group, group.Resources), err
}

// sizeOf is how many objects members have of resources of a group. What a chart renders is unknown here.
func sizeOf(group *Group, resources []placementv1beta1.ResourceIdentifier) int {
	contents := map[placementv1beta1.EnvelopeIdentifier]int{}
	for _, part := range group.Parts {
		switch {
		case part.Chart:
			contents[*part.Envelope] = placementv1beta1.LargeRemovalLeast
		case part.Envelope != nil:
			contents[*part.Envelope] = len(part.Resources)
		}
	}
	size := 0
	for _, id := range resources {
		size += max(1, contents[placementv1beta1.EnvelopeIdentifier{Name: id.Name, Namespace: id.Namespace, Type: placementv1beta1.EnvelopeType(id.Kind)}])
	}
	return size
}

// missingFrom are the resources that are not among the objects, in any version.
func missingFrom(resources []placementv1beta1.ResourceIdentifier, objects []*unstructured.Unstructured) []placementv1beta1.ResourceIdentifier {
	key := func(group, kind, namespace, name string) string {
		return strings.Join([]string{group, kind, namespace, name}, "/")
	}
	selected := make(sets.Set[string], len(objects))
	for _, object := range objects {
		gvk := object.GroupVersionKind()
		selected.Insert(key(gvk.Group, gvk.Kind, object.GetNamespace(), object.GetName()))
	}
	var missing []placementv1beta1.ResourceIdentifier
	for _, id := range resources {
		if !selected.Has(key(id.Group, id.Kind, id.Namespace, id.Name)) {
			missing = append(missing, id)
		}
	}
	return missing
}

// onHub returns the resources of a group that are not known to be deleted on the hub. A resource of a kind that the
// hub does not serve counts as existing.
func (r *Reconciler) onHub(ctx context.Context, of *Group, resources []placementv1beta1.ResourceIdentifier) (unselected, error) {
	namespaces := map[string]bool{}
	for _, id := range resources {
		if _, known := namespaces[id.Namespace]; known || id.Namespace == "" {
			continue
		}
		gone, err := r.gone(ctx, schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, types.NamespacedName{Name: id.Namespace})
		if err != nil {
			return unselected{}, err
		}
		namespaces[id.Namespace] = gone
	}
	var mu sync.Mutex // Guards there.
	var there []placementv1beta1.ResourceIdentifier
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(removalReaders)
	for _, id := range resources {
		if namespaces[id.Namespace] {
			continue
		}
		group.Go(func() error {
			gone, err := r.gone(ctx, schema.GroupVersionKind{Group: id.Group, Version: id.Version, Kind: id.Kind}, types.NamespacedName{Namespace: id.Namespace, Name: id.Name})
			if err == nil && !gone {
				mu.Lock()
				defer mu.Unlock()
				there = append(there, id)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return unselected{}, err
	}
	names := sets.New[string]()
	for _, id := range there {
		names.Insert(removalName(id.Kind, id.Namespace, id.Name))
	}
	return unselected{names: sets.List(names), objects: sizeOf(of, there)}, nil
}

// gone reports whether an object was deleted on the hub, or is being deleted. The gateway can list what it places, but
// cannot get it.
func (r *Reconciler) gone(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (bool, error) {
	object, err := listget.Get(ctx, listget.Through(r.Live, kind, key.Namespace), kind.GroupVersion().WithResource(kind.Kind), key, "")
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case meta.IsNoMatchError(err), apierrors.IsForbidden(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("finding out whether %s %q was deleted: %w", kind.Kind, key, err)
	}
	return object.GetDeletionTimestamp() != nil, nil
}

func selectorsHash(spec *placementv1beta1.PlacementSpec) string {
	text, err := hash.JSON(spec.ResourceSelectors)
	if err != nil {
		return "" // Nothing in them fails; an empty hash counts as unchanged.
	}
	return text
}

// noteSelectors records the selectors of a group when new selectors select the same.
func (r *Reconciler) noteSelectors(ctx context.Context, placement placementv1beta1.PlacementObject, latest *metav1.PartialObjectMetadata) error {
	hash := selectorsHash(placement.GetSpec())
	if latest.Annotations[placementv1beta1.SelectorsHashAnnotation] == hash {
		return nil
	}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, placementv1beta1.SelectorsHashAnnotation, hash))
	snapshot := objects.ResourceSnapshotMetadata(latest.Namespace)
	snapshot.Namespace, snapshot.Name = latest.Namespace, latest.Name
	if err := r.Live.Patch(ctx, snapshot, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("noting the selectors of resource snapshot %q: %w", latest.Name, err)
	}
	return nil
}
