// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/naming"
	"fleetgate.io/fleetgate/pkg/placement/slicing"
)

// round writes one decision.
type round struct {
	*Reconciler
	placement *ocmclusterv1beta1.Placement
	result    *result
	existing  map[string]*ocmclusterv1beta1.PlacementDecision
	// lastChanged is the last decision that gained or lost clusters.
	lastChanged *ocmclusterv1beta1.PlacementDecision
}

func byName(existing []*ocmclusterv1beta1.PlacementDecision) map[string]*ocmclusterv1beta1.PlacementDecision {
	named := make(map[string]*ocmclusterv1beta1.PlacementDecision, len(existing))
	for _, decision := range existing {
		named[decision.Name] = decision
	}
	return named
}

// expect registers the pending writes in the decision index.
func (r *Reconciler) expect(placement *ocmclusterv1beta1.Placement, o *result, existing []*ocmclusterv1beta1.PlacementDecision) {
	there, wanted := byName(existing), sets.New[string]()
	for i := range o.slices {
		s := &o.slices[i]
		wanted.Insert(s.name)
		if was := there[s.name]; was == nil || !isAs(was, placement, s) {
			is := content{placement: placement.Name, group: s.group, index: strconv.Itoa(s.index), owner: placement.UID, decisions: s.decisions}
			r.decisions.expect(types.NamespacedName{Namespace: placement.Namespace, Name: s.name}, is, false)
		}
	}
	for name := range there {
		if !wanted.Has(name) {
			r.decisions.expect(types.NamespacedName{Namespace: placement.Namespace, Name: name}, content{placement: placement.Name}, true)
		}
	}
}

// isAs is true if a decision is up to date.
func isAs(is *ocmclusterv1beta1.PlacementDecision, placement *ocmclusterv1beta1.Placement, s *slice) bool {
	return hasMeta(is, placement, s) && hasStatus(is, s)
}

func hasStatus(is *ocmclusterv1beta1.PlacementDecision, s *slice) bool {
	return is.Status.Decisions != nil && slices.EqualFunc(is.Status.Decisions, s.decisions, sameDecision)
}

func hasMeta(is *ocmclusterv1beta1.PlacementDecision, placement *ocmclusterv1beta1.Placement, s *slice) bool {
	for key, value := range s.labels(placement.Name) {
		if got, ok := is.Labels[key]; !ok || got != value {
			return false
		}
	}
	return naming.Labelled(is, ocmclusterv1beta1.PlacementLabel) == placement.Name && metav1.IsControlledBy(is, placement)
}

// write writes differences to the hub: decisions first, then the status.
func (r *Reconciler) write(ctx context.Context, placement *ocmclusterv1beta1.Placement, o *result, existing []*ocmclusterv1beta1.PlacementDecision) error {
	w := &round{Reconciler: r, placement: placement, result: o, existing: byName(existing)}
	err := w.writeSlices(ctx, existing)
	if w.lastChanged != nil {
		w.recordScores()
	}
	if err != nil {
		return err
	}
	return w.writeStatus(ctx)
}

// writeSlices writes decisions in an order in which a cluster that moves from one to another is
// never in none, because ManifestWorks are deleted where no decision has the cluster.
func (w *round) writeSlices(ctx context.Context, existing []*ocmclusterv1beta1.PlacementDecision) error {
	before := make([]slicing.Slice, 0, len(existing))
	for _, decision := range slices.SortedFunc(slices.Values(existing), func(a, b *ocmclusterv1beta1.PlacementDecision) int { return byNumber(a.Name, b.Name) }) {
		before = append(before, slicing.Slice{Name: decision.Name, Clusters: clustersOf(decision)})
	}
	after, wanted := make([]slicing.Slice, 0, len(w.result.slices)), map[string]*slice{}
	for i := range w.result.slices {
		s := &w.result.slices[i]
		after, wanted[s.name] = append(after, slicing.Slice{Name: s.name, Clusters: s.clusters()}), s
	}
	number := max(len(before), len(after))
	return slicing.Rewrite(before, after, slicing.Writer{
		Put: func(s slicing.Slice) error { return w.ensure(ctx, wanted[s.Name]) },
		Park: func(clusters []string) (string, error) {
			s := &slice{decisions: make([]ocmclusterv1beta1.ClusterDecision, 0, len(clusters))}
			s.name = sliceName(w.placement.Name, number+1)
			for ; w.existing[s.name] != nil; number++ {
				s.name = sliceName(w.placement.Name, number+2)
			}
			for _, cluster := range clusters {
				s.decisions = append(s.decisions, ocmclusterv1beta1.ClusterDecision{ClusterName: cluster})
			}
			return s.name, w.park(ctx, s)
		},
		Remove: func(name string) error { return w.remove(ctx, w.existing[name]) },
	})
}

// park creates a temporary decision that is deleted at the end of this round.
func (w *round) park(ctx context.Context, s *slice) error {
	written, err := w.writeSlice(ctx, nil, s)
	if err == nil {
		w.existing[s.name] = written
	}
	return err
}

// errChanged is returned when somebody else changed a decision while it was written: the event of
// their change may have been ignored.
var errChanged = errors.New("somebody else changes it")

// ensure writes one decision.
func (w *round) ensure(ctx context.Context, s *slice) error {
	is := w.existing[s.name]
	if is != nil && isAs(is, w.placement, s) {
		return nil
	}
	written, err := w.writeSlice(ctx, is, s)
	key := types.NamespacedName{Namespace: w.placement.Namespace, Name: s.name}
	if err != nil {
		w.decisions.wrote(key, nil)
		return err
	}
	w.decisions.wrote(key, written)
	if !isAs(written, w.placement, s) {
		return fmt.Errorf("writing PlacementDecision %s: %w", key, errChanged)
	}
	return nil
}

func (w *round) writeSlice(ctx context.Context, is *ocmclusterv1beta1.PlacementDecision, s *slice) (*ocmclusterv1beta1.PlacementDecision, error) {
	is, err := w.bringObject(ctx, is, s)
	if err != nil || hasStatus(is, s) {
		return is, err
	}
	after := is.DeepCopy()
	after.Status.Decisions = s.decisions
	if err := w.Client.Status().Patch(ctx, after, client.MergeFrom(is)); err != nil {
		return nil, fmt.Errorf("writing the status of PlacementDecision %s/%s: %w", is.Namespace, is.Name, err)
	}
	w.recordUpdated(after)
	w.lastChanged = after
	return after, nil
}

// bringObject creates the decision, or sets its labels and its owner.
func (w *round) bringObject(ctx context.Context, is *ocmclusterv1beta1.PlacementDecision, s *slice) (*ocmclusterv1beta1.PlacementDecision, error) {
	if is == nil {
		made := w.desired(s)
		err := w.Client.Create(ctx, made)
		if err == nil {
			w.recordCreated(made)
			return made, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("creating PlacementDecision %s/%s: %w", made.Namespace, made.Name, err)
		}
		is = &ocmclusterv1beta1.PlacementDecision{}
		if err := w.Live.Get(ctx, client.ObjectKeyFromObject(made), is); err != nil {
			return nil, fmt.Errorf("reading PlacementDecision %s/%s: %w", made.Namespace, made.Name, err)
		}
	}
	if hasMeta(is, w.placement, s) {
		return is, nil
	}
	if owner := metav1.GetControllerOf(is); owner != nil && (owner.Kind != "Placement" || owner.Name != w.placement.Name) {
		return nil, fmt.Errorf("PlacementDecision %s/%s belongs to %s %q: remove it, or rename the Placement", is.Namespace, is.Name, owner.Kind, owner.Name)
	}
	after := is.DeepCopy()
	if after.Labels == nil {
		after.Labels = map[string]string{}
	}
	maps.Copy(after.Labels, s.labels(w.placement.Name))
	naming.Label(after, ocmclusterv1beta1.PlacementLabel, w.placement.Name)
	// A decision of a previous Placement of that name is reused, so that readers always find it.
	after.OwnerReferences = slices.DeleteFunc(after.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.Kind == "Placement" && ref.Name == w.placement.Name })
	after.OwnerReferences = append(after.OwnerReferences, w.owner())
	if err := w.Client.Patch(ctx, after, client.MergeFrom(is)); err != nil {
		return nil, fmt.Errorf("updating PlacementDecision %s/%s: %w", is.Namespace, is.Name, err)
	}
	return after, nil
}

// desired is the decision to create. The API server ignores its status then, but readers of the
// request see what will follow.
func (w *round) desired(s *slice) *ocmclusterv1beta1.PlacementDecision {
	decision := &ocmclusterv1beta1.PlacementDecision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.placement.Namespace, Name: s.name, Labels: s.labels(w.placement.Name), OwnerReferences: []metav1.OwnerReference{w.owner()},
		},
		Status: ocmclusterv1beta1.PlacementDecisionStatus{Decisions: s.decisions},
	}
	naming.Label(decision, ocmclusterv1beta1.PlacementLabel, w.placement.Name)
	return decision
}

func (w *round) owner() metav1.OwnerReference {
	return *metav1.NewControllerRef(w.placement, ocmclusterv1beta1.GroupVersion.WithKind("Placement"))
}

func (w *round) remove(ctx context.Context, decision *ocmclusterv1beta1.PlacementDecision) error {
	key := client.ObjectKeyFromObject(decision)
	err := w.Client.Delete(ctx, decision, client.Preconditions{UID: &decision.UID})
	if apierrors.IsNotFound(err) {
		w.decisions.lost(key)
		return nil
	}
	if err != nil {
		w.decisions.wrote(key, nil)
		return fmt.Errorf("deleting PlacementDecision %s: %w", key, err)
	}
	w.recordDeleted(decision)
	return nil
}

func (w *round) writeStatus(ctx context.Context) error {
	status := w.result.status(w.placement, w.Clock.Now())
	key := client.ObjectKeyFromObject(w.placement)
	w.statusMu.Lock()
	w.statuses[key] = &status
	w.statusMu.Unlock()
	if equality.Semantic.DeepEqual(status, w.placement.Status) {
		return nil
	}
	after := w.placement.DeepCopy()
	after.Status = status
	if err := w.Client.Status().Patch(ctx, after, client.MergeFrom(w.placement)); client.IgnoreNotFound(err) != nil {
		// It may have been carried out anyway. Its event then counts as a change, whatever is
		// decided in the meantime.
		w.forgetStatus(key)
		return fmt.Errorf("writing the status of Placement %s: %w", key, err)
	}
	return nil
}
