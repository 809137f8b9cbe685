// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package standard

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	multiclusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/multicluster/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/placement/slicing"
)

// maxNamed is the number of clusters that an event names.
const maxNamed = 10

// existing are the objects of a placement's decision, by number.
func (r *Reconciler) existing(ctx context.Context, key types.NamespacedName) ([]*multiclusterv1alpha1.PlacementDecision, error) {
	namespace := r.namespaceOf(key)
	var list multiclusterv1alpha1.PlacementDecisionList
	err := r.Client.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{byOwner: r.source.kind(key.Namespace) + "/" + key.Name})
	if err != nil {
		return nil, fmt.Errorf("listing PlacementDecisions of namespace %s: %w", namespace, err)
	}
	var all []*multiclusterv1alpha1.PlacementDecision
	for i := range list.Items {
		if slices.Contains(r.owner(&list.Items[i]), key) {
			all = append(all, &list.Items[i])
		}
	}
	slices.SortFunc(all, func(a, b *multiclusterv1alpha1.PlacementDecision) int {
		return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}

// publish updates the objects of a placement's decision.
func (r *Reconciler) publish(ctx context.Context, key types.NamespacedName, placement client.Object, existing []*multiclusterv1alpha1.PlacementDecision) error {
	parts, done, err := r.source.chosen(ctx, placement)
	if err != nil || !done {
		return err // The decision triggers the placement again.
	}
	r.wanted.set(key, sets.New(slices.Concat(parts...)...))
	published, err := r.published(ctx)
	if err != nil {
		return err
	}
	assigned, missing := cut(parts, published, clustersOf(existing))
	objects, err := r.desired(key, placement, assigned)
	if err != nil {
		return err
	}
	wrote, err := r.write(ctx, objects, existing)
	if wrote != nil && len(missing) > 0 {
		r.Recorder.Eventf(placement, wrote, corev1.EventTypeWarning, multiclusterv1alpha1.EventClustersNotPublished, "DecisionPublished",
			"Not in PlacementDecisions of %s: %s without a ClusterProfile of manager %s in namespace %s", multiclusterv1alpha1.GroupName, refusal.Names(missing, maxNamed), r.Manager, r.Namespace)
	}
	return err
}

// cut divides parts into objects: the published clusters, in order. There is at least one object. The
// other clusters are missing.
func cut(parts [][]string, published sets.Set[string], before [][]string) (assigned [][]string, missing []string) {
	for _, part := range parts {
		var shown []string
		for _, cluster := range part {
			if published.Has(cluster) {
				shown = append(shown, cluster)
			} else {
				missing = append(missing, cluster)
			}
		}
		if len(shown) == 0 {
			continue
		}
		for _, slice := range slicing.Cut(shown, before) {
			var clusters []string
			for _, at := range slice {
				clusters = append(clusters, shown[at])
			}
			assigned = append(assigned, clusters)
		}
	}
	if len(assigned) == 0 {
		assigned = [][]string{{}}
	}
	return assigned, missing
}

func clustersOf(objects []*multiclusterv1alpha1.PlacementDecision) [][]string {
	all := make([][]string, len(objects))
	for i, object := range objects {
		for _, decision := range object.Decisions {
			all[i] = append(all[i], decision.ClusterProfileRef.Name)
		}
	}
	return all
}

func (r *Reconciler) desired(key types.NamespacedName, placement client.Object, assigned [][]string) ([]*multiclusterv1alpha1.PlacementDecision, error) {
	decisionKey := keyOf(r.source.kind(key.Namespace), key.Name)
	objects := make([]*multiclusterv1alpha1.PlacementDecision, len(assigned))
	for i, clusters := range assigned {
		object := &multiclusterv1alpha1.PlacementDecision{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: r.namespaceOf(key), Name: fmt.Sprintf("%s-%d", decisionKey, i),
				Labels: map[string]string{multiclusterv1alpha1.LabelDecisionKey: decisionKey, multiclusterv1alpha1.LabelDecisionIndex: strconv.Itoa(i)},
			},
			Decisions: []multiclusterv1alpha1.ClusterDecision{}, SchedulerName: multiclusterv1alpha1.SchedulerName,
		}
		if workload, ok := placement.GetLabels()[multiclusterv1alpha1.LabelPlacementKey]; ok {
			object.Labels[multiclusterv1alpha1.LabelPlacementKey] = workload
		}
		for _, cluster := range clusters {
			object.Decisions = append(object.Decisions, multiclusterv1alpha1.ClusterDecision{
				ClusterProfileRef: multiclusterv1alpha1.ClusterProfileReference{Namespace: r.Namespace, Name: cluster},
			})
		}
		if err := controllerutil.SetControllerReference(placement, object, r.Client.Scheme()); err != nil {
			return nil, fmt.Errorf("preparing PlacementDecision %s/%s: %w", object.Namespace, object.Name, err)
		}
		objects[i] = object
	}
	return objects, nil
}

// write writes objects in an order in which a cluster that moves between them is always in one, and
// deletes surplus ones last. It returns one of the written objects, nil if nothing changed.
func (r *Reconciler) write(ctx context.Context, objects, existing []*multiclusterv1alpha1.PlacementDecision) (wrote *multiclusterv1alpha1.PlacementDecision, err error) {
	there, wanted := byName(existing), byName(objects)
	number := max(len(existing), len(objects))
	err = slicing.Rewrite(slicesOf(existing), slicesOf(objects), slicing.Writer{
		Put: func(s slicing.Slice) error {
			changed, err := r.ensure(ctx, there[s.Name], wanted[s.Name])
			if changed {
				wrote = wanted[s.Name]
			}
			return err
		},
		Park: func(clusters []string) (string, error) {
			object := r.parked(objects[0], clusters, number)
			for ; there[object.Name] != nil; number++ {
				object = r.parked(objects[0], clusters, number+1)
			}
			there[object.Name] = object
			_, err := r.ensure(ctx, nil, object)
			return object.Name, err
		},
		Remove: func(name string) error { return r.remove(ctx, there[name]) },
	})
	return wrote, err
}

func byName(objects []*multiclusterv1alpha1.PlacementDecision) map[string]*multiclusterv1alpha1.PlacementDecision {
	named := make(map[string]*multiclusterv1alpha1.PlacementDecision, len(objects))
	for _, object := range objects {
		named[object.Name] = object
	}
	return named
}

func slicesOf(objects []*multiclusterv1alpha1.PlacementDecision) []slicing.Slice {
	all := make([]slicing.Slice, len(objects))
	for i, clusters := range clustersOf(objects) {
		all[i] = slicing.Slice{Name: objects[i].Name, Clusters: clusters}
	}
	return all
}

// parked is an additional object of a decision, with an unused number.
func (r *Reconciler) parked(like *multiclusterv1alpha1.PlacementDecision, clusters []string, number int) *multiclusterv1alpha1.PlacementDecision {
	object := like.DeepCopy()
	object.Name = fmt.Sprintf("%s-%d", like.Labels[multiclusterv1alpha1.LabelDecisionKey], number)
	object.Labels[multiclusterv1alpha1.LabelDecisionIndex] = strconv.Itoa(number)
	object.Decisions = nil
	for _, cluster := range clusters {
		object.Decisions = append(object.Decisions, multiclusterv1alpha1.ClusterDecision{
			ClusterProfileRef: multiclusterv1alpha1.ClusterProfileReference{Namespace: r.Namespace, Name: cluster},
		})
	}
	return object
}

// ensure creates or updates one object. Foreign labels, annotations and owners stay.
func (r *Reconciler) ensure(ctx context.Context, was, is *multiclusterv1alpha1.PlacementDecision) (changed bool, err error) {
	if was == nil {
		if was, err = r.orphan(ctx, is); err != nil {
			return false, err
		}
	}
	if was == nil {
		if err := r.Client.Create(ctx, is); err != nil {
			return false, fmt.Errorf("creating PlacementDecision %s/%s (if another client created one of this name, remove it or rename the placement): %w", is.Namespace, is.Name, err)
		}
		return true, nil
	}
	after := was.DeepCopy()
	after.Decisions, after.SchedulerName = is.Decisions, is.SchedulerName
	delete(after.Labels, multiclusterv1alpha1.LabelPlacementKey)
	for key, value := range is.Labels {
		metav1.SetMetaDataLabel(&after.ObjectMeta, key, value)
	}
	// An earlier placement of that name owned it.
	after.OwnerReferences = slices.DeleteFunc(after.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.Controller != nil && *ref.Controller })
	after.OwnerReferences = append(after.OwnerReferences, is.OwnerReferences...)
	if equality.Semantic.DeepEqual(was, after) {
		return false, nil
	}
	// A deleted object triggers the placement again.
	if err := r.Client.Update(ctx, after); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("updating PlacementDecision %s/%s: %w", after.Namespace, after.Name, err)
	}
	return true, nil
}

// orphan is the object of that name whose owner reference somebody removed, nil if there is none.
func (r *Reconciler) orphan(ctx context.Context, is *multiclusterv1alpha1.PlacementDecision) (*multiclusterv1alpha1.PlacementDecision, error) {
	there := &multiclusterv1alpha1.PlacementDecision{}
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(is), there)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading PlacementDecision %s/%s: %w", is.Namespace, is.Name, err)
	}
	if err != nil || metav1.GetControllerOf(there) != nil || there.SchedulerName != multiclusterv1alpha1.SchedulerName {
		//lint:ignore nilerr It is not there: that is an answer.
		return nil, nil
	}
	return there, nil
}

func (r *Reconciler) removeAll(ctx context.Context, objects []*multiclusterv1alpha1.PlacementDecision) error {
	for _, object := range objects {
		if err := r.remove(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) remove(ctx context.Context, object *multiclusterv1alpha1.PlacementDecision) error {
	if err := r.Client.Delete(ctx, object, client.Preconditions{UID: &object.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting PlacementDecision %s/%s: %w", object.Namespace, object.Name, err)
	}
	return nil
}
