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
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/placement/objects"
	"fleetgate.io/fleetgate/pkg/placement/selection"
)

// noNamespaceSelected is upstream's message: clients match it.
const noNamespaceSelected = "NamespaceWithResourceSelectors mode requires exactly one namespace, but no namespaces were selected"

// Take makes a group of resource snapshots of what a placement selects now, unless
// the latest group holds just that, or what cannot be read now, and returns the metadata of the
// latest master.
// The error is a refusal if the selectors are at fault. Somebody else
// may be doing the same: then it is a conflict, or AlreadyExists.
func (r *Reconciler) Take(ctx context.Context, placement placementv1beta1.PlacementObject) (*metav1.PartialObjectMetadata, error) {
	latest, _, err := r.take(ctx, placement, Intervals{})
	return latest, err
}

// take is Take at its time: where the intervals do not allow another group yet, it makes
// none and returns how long to wait.
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
	latest := objects.LatestResourceSnapshot(objects.OwnedBy(placement, existing))
	if latest == nil && len(selected.Withheld)+len(selected.Unreadable) == 0 && selection.LacksNamespace(placement.GetSpec().ResourceSelectors, selected.Objects) {
		return nil, 0, refusal.New(placementv1beta1.ReasonInvalidResourceSelectors, "%s", noNamespaceSelected)
	}
	stays, err := r.holds(ctx, latest, selected.Unreadable)
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
		if waits, err := r.suspendRemoval(ctx, placement, latest, selected.Objects); waits || err != nil {
			return latest, 0, err
		}
		if left, err := r.turn(ctx, latest, intervals); left > 0 || err != nil {
			return latest, left, err
		}
		if latest, err = r.createResources(ctx, placement, manifests, hash, nextIndex(existing, objects.ResourceIndex)); err != nil {
			return nil, 0, err
		}
		existing = append(existing, latest) // It counts: the limit is of all revisions.
	} else if err := r.asBefore(ctx, placement, latest); err != nil {
		return nil, 0, err
	}
	if err := r.demoteResources(ctx, existing, latest.Name); err != nil {
		return nil, 0, err
	}
	return latest, 0, r.trimResources(ctx, key, existing, placement)
}

// manifests turns what is selected into what a snapshot can hold.
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
func (r *Reconciler) createResources(ctx context.Context, placement placementv1beta1.PlacementObject, manifests []placementv1beta1.Manifest, hash string, index int) (*metav1.PartialObjectMetadata, error) {
	group := desiredResourceSnapshots(placement, split(manifests, sizeLimit), hash, index, r.Envelopes)
	group[len(group)-1].GetAnnotations()[placementv1beta1.SelectorsHashAnnotation] = selectorsHash(placement.GetSpec())
	for _, s := range group {
		if err := controllerutil.SetControllerReference(placement, s, r.Client.Scheme()); err != nil {
			return nil, fmt.Errorf("owning resource snapshot %q: %w", s.GetName(), err)
		}
		if err := r.Live.Create(ctx, s); err != nil {
			return nil, fmt.Errorf("creating resource snapshot %q: %w", s.GetName(), err)
		}
	}
	log := ctrl.LoggerFrom(ctx)
	log.V(1).Info("Made a resource snapshot", "index", index, "resources", len(manifests), "parts", len(group))
	if len(manifests) == 0 {
		log.Info("The placement selects nothing on the hub: create what spec.resourceSelectors name, or correct them")
	}
	return r.await(ctx, group[len(group)-1])
}

// await returns when the cache knows a snapshot that was just written. Without
// it the next look could take an older snapshot for the latest.
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

// Intervals say for how long changes of what a placement selects are gathered into one
// group of resource snapshots, as KubeFleet's hub does. Zero values: each change makes
// one at once. Update runs, which have groups made when somebody asks, do not wait.
type Intervals struct {
	// Least is how old the latest group must be before another follows.
	Least time.Duration
	// Collection is how long after the first change since the latest group another follows.
	Collection time.Duration
}

// next is when a group may follow one of the time latest, if the first change since was
// seen at the time seen.
func (i Intervals) next(latest, seen time.Time) time.Time {
	after, gathered := latest.Add(i.Least), seen.Add(i.Collection)
	if after.After(gathered) {
		return after
	}
	return gathered
}

// turn returns how long a changed selection has to wait, and notes on the latest master
// when it was seen to have changed: a gateway that starts goes on from there.
func (r *Reconciler) turn(ctx context.Context, latest *metav1.PartialObjectMetadata, intervals Intervals) (time.Duration, error) {
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

// asBefore notes that what the latest group holds is selected.
func (r *Reconciler) asBefore(ctx context.Context, placement placementv1beta1.PlacementObject, latest *metav1.PartialObjectMetadata) error {
	if err := r.noCandidate(ctx, latest); err != nil {
		return err
	}
	before := placement.DeepCopyObject().(client.Object)
	if setOrRemove(&placement.GetStatus().Conditions, placementv1beta1.ConditionRemovalSuspended, placement.GetGeneration(), nil) {
		if err := r.Client.Status().Patch(ctx, placement, reconcileutil.PatchFrom(before)); err != nil {
			return fmt.Errorf("writing the status of placement %q: %w", placement.GetName(), err)
		}
	}
	return r.noteSelectors(ctx, placement, latest)
}

// noCandidate forgets a change that was taken back before its turn.
func (r *Reconciler) noCandidate(ctx context.Context, latest *metav1.PartialObjectMetadata) error {
	if _, noted := latest.Annotations[placementv1beta1.NextSnapshotCandidateTimeAnnotation]; !noted {
		return nil
	}
	return r.annotateCandidate(ctx, latest, "null")
}

// annotateCandidate is a conflict if the cache is behind: then the first time would be lost.
func (r *Reconciler) annotateCandidate(ctx context.Context, latest *metav1.PartialObjectMetadata, value string) error {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q,"annotations":{%q:%s}}}`,
		latest.ResourceVersion, placementv1beta1.NextSnapshotCandidateTimeAnnotation, value))
	if err := r.Live.Patch(ctx, latest.DeepCopy(), patch); err != nil {
		return fmt.Errorf("noting on resource snapshot %q when something else was selected: %w", latest.Name, err)
	}
	return nil
}
