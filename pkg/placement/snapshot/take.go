// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/placement/objects"
	"fleetgate.io/fleetgate/pkg/placement/selection"
)

// noNamespaceSelected is upstream's message: clients match it.
const noNamespaceSelected = "NamespaceWithResourceSelectors mode requires exactly one namespace, but no namespaces were selected"

// Take creates a group of resource snapshots from the placement's current selection and returns the
// metadata of its master. It returns the latest master if that group has the same content, or has
// objects of a kind that is unreadable now. The error is a refusal if the selectors are invalid. It is
// a conflict or AlreadyExists if somebody else does the same concurrently.
func (r *Reconciler) Take(ctx context.Context, placement placementv1beta1.PlacementObject) (*metav1.PartialObjectMetadata, error) {
	latest, _, err := r.take(ctx, placement, Intervals{})
	return latest, err
}

// take is Take with intervals: if they do not allow another group yet, it creates none and returns how
// long to wait.
func (r *Reconciler) take(ctx context.Context, placement placementv1beta1.PlacementObject, intervals Intervals) (*metav1.PartialObjectMetadata, time.Duration, error) {
	key := types.NamespacedName{Namespace: placement.GetNamespace(), Name: placement.GetName()}
	selected, err := r.Selector.Select(ctx, key, placement.GetSpec().ResourceSelectors, r.bound(placement))
	if err != nil {
		return nil, 0, err
	}
	if err := r.reportAuthor(ctx, placement, selected.Withheld); err != nil {
		return nil, 0, err
	}
	existing, err := objects.ResourceSnapshots(ctx, r.Client, key)
	if err != nil {
		return nil, 0, err
	}
	latest := objects.LatestResourceSnapshot(placement, existing)
	if latest == nil && len(selected.Withheld)+len(selected.Unreadable) == 0 && selection.LacksNamespace(placement.GetSpec().ResourceSelectors, selected.Objects) {
		return nil, 0, refusal.New(placementv1beta1.ReasonInvalidResourceSelectors, "%s", noNamespaceSelected)
	}
	stays, err := r.containsAny(ctx, latest, selected.Unreadable)
	if err != nil {
		return nil, 0, err
	}
	if err := r.reportKinds(ctx, placement, selected.Unreadable, stays); err != nil || stays {
		return latest, 0, err
	}
	manifests, err := r.manifests(ctx, placement, latest, selected.Objects)
	if err != nil {
		return nil, 0, err
	}
	if hash := resourceHash(manifests); latest == nil || latest.Annotations[placementv1beta1.ResourceHashAnnotation] != hash {
		waits, recent, err := r.suspendRemoval(ctx, placement, latest, selected.Objects)
		if waits || err != nil {
			return latest, 0, err
		}
		if left, err := r.waitOf(ctx, latest, intervals); left > 0 || err != nil {
			return latest, left, err
		}
		if latest, err = r.createResources(ctx, placement, manifests, hash, nextIndex(existing, objects.ResourceIndex), recent); err != nil {
			return nil, 0, err
		}
		existing = append(existing, latest) // The limit counts all revisions, including this one.
	} else if err := r.asBefore(ctx, placement, latest); err != nil {
		return nil, 0, err
	}
	if err := r.demoteResources(ctx, existing, latest.Name); err != nil {
		return nil, 0, err
	}
	return latest, 0, r.trimResources(ctx, key, existing, placement)
}

// manifests turns the selection into manifests that fit into a snapshot.
func (r *Reconciler) manifests(ctx context.Context, placement placementv1beta1.PlacementObject, latest *metav1.PartialObjectMetadata, objects []*unstructured.Unstructured) ([]placementv1beta1.Manifest, error) {
	all, err := manifestsOf(objects)
	if err != nil {
		return nil, err
	}
	fits, large, err := r.fitting(ctx, latest, all, manifestLimit)
	if err != nil {
		return nil, err
	}
	return fits, r.reportLarge(ctx, placement, large)
}

// createResources writes a group, and returns the metadata of its master.
func (r *Reconciler) createResources(ctx context.Context, placement placementv1beta1.PlacementObject, manifests []placementv1beta1.Manifest, hash string, index int, recent placementv1beta1.RecentRemovals) (*metav1.PartialObjectMetadata, error) {
	group := desiredResourceSnapshots(placement, split(manifests, sizeLimit), hash, index, r.Envelopes)
	noted := group[len(group)-1].GetAnnotations()
	noted[placementv1beta1.SelectorsHashAnnotation] = selectorsHash(placement.GetSpec())
	if len(recent) > 0 {
		noted[placementv1beta1.RecentRemovalsAnnotation] = recent.String()
	}
	for _, s := range group {
		if err := controllerutil.SetControllerReference(placement, s, r.Client.Scheme()); err != nil {
			return nil, fmt.Errorf("owning resource snapshot %q: %w", s.GetName(), err)
		}
		if err := r.Live.Create(ctx, s); err != nil {
			return nil, fmt.Errorf("creating resource snapshot %q: %w", s.GetName(), err)
		}
	}
	log := ctrl.LoggerFrom(ctx)
	log.V(1).Info("Created a resource snapshot", "index", index, "resources", len(manifests), "parts", len(group))
	if len(manifests) == 0 {
		log.Info("The placement selects nothing on the hub: create what spec.resourceSelectors name, or correct them")
	}
	return r.await(ctx, group[len(group)-1])
}

// await returns when the cache has a snapshot that was just written. Otherwise the next reconcile could
// treat an older snapshot as the latest.
func (r *Reconciler) await(ctx context.Context, written client.Object) (*metav1.PartialObjectMetadata, error) {
	const interval, limit = 5 * time.Millisecond, 10 * time.Second
	s := objects.ResourceSnapshotMetadata(written.GetNamespace())
	err := wait.PollUntilContextTimeout(ctx, interval, limit, true, func(ctx context.Context) (bool, error) {
		err := r.Client.Get(ctx, client.ObjectKeyFromObject(written), s)
		return err == nil && s.UID == written.GetUID(), client.IgnoreNotFound(err)
	})
	if err != nil {
		return nil, fmt.Errorf("waiting for resource snapshot %q in the cache: %w", written.GetName(), err)
	}
	return s, nil
}

// Intervals are the durations for which changes of a placement's selection are gathered into one group
// of resource snapshots, as in KubeFleet's hub. With zero values, each change creates a group at once.
// Update runs do not wait, because somebody requested their groups.
type Intervals struct {
	// Least is the minimum age of the latest group before another follows.
	Least time.Duration
	// Collection is the duration from the first change after the latest group to the next group.
	Collection time.Duration
}

// next is the earliest time of the next group, for the latest group's time and the time when the first
// change since was seen.
func (i Intervals) next(latest, seen time.Time) time.Time {
	after, gathered := latest.Add(i.Least), seen.Add(i.Collection)
	if after.After(gathered) {
		return after
	}
	return gathered
}

// waitOf returns how long a changed selection has to wait. It records on the latest master when the
// change was seen, so that a restarted gateway continues from there.
func (r *Reconciler) waitOf(ctx context.Context, latest *metav1.PartialObjectMetadata, intervals Intervals) (time.Duration, error) {
	if latest == nil || intervals == (Intervals{}) {
		return 0, nil
	}
	now := r.Clock.Now()
	seen, err := time.Parse(time.RFC3339, latest.Annotations[placementv1beta1.NextSnapshotCandidateTimeAnnotation])
	if err != nil {
		seen = now
		if err := r.annotateCandidate(ctx, latest, strconv.Quote(now.UTC().Format(time.RFC3339))); err != nil {
			return 0, err
		}
	}
	return max(0, intervals.next(latest.CreationTimestamp.Time, seen).Sub(now)), nil
}

// asBefore records that the selection is the content of the latest group.
func (r *Reconciler) asBefore(ctx context.Context, placement placementv1beta1.PlacementObject, latest *metav1.PartialObjectMetadata) error {
	if err := r.noCandidate(ctx, latest); err != nil {
		return err
	}
	if err := r.reportSuspension(ctx, placement, nil); err != nil {
		return err
	}
	return r.noteSelectors(ctx, placement, latest)
}

// noCandidate removes the record of a change that was reverted before its turn.
func (r *Reconciler) noCandidate(ctx context.Context, latest *metav1.PartialObjectMetadata) error {
	if _, noted := latest.Annotations[placementv1beta1.NextSnapshotCandidateTimeAnnotation]; !noted {
		return nil
	}
	return r.annotateCandidate(ctx, latest, "null")
}

// annotateCandidate fails with a conflict if the cache lags, because the first time would be lost.
func (r *Reconciler) annotateCandidate(ctx context.Context, latest *metav1.PartialObjectMetadata, value string) error {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q,"annotations":{%q:%s}}}`,
		latest.ResourceVersion, placementv1beta1.NextSnapshotCandidateTimeAnnotation, value))
	if err := r.Live.Patch(ctx, latest.DeepCopy(), patch); err != nil {
		return fmt.Errorf("noting on resource snapshot %q when something else was selected: %w", latest.Name, err)
	}
	return nil
}
