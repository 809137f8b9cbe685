// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/objects"
)

// input is what the Works of a binding depend on.
type input struct {
	binding placementv1beta1.BindingObject
	// placement is owned by the cache and must not be changed; nil if it is deleted.
	placement placementv1beta1.PlacementObject
	// member is nil if it is deleted or being deleted.
	member *clusterv1beta1.MemberCluster
	// works are the current Works of the binding, sorted by name.
	works []*placementv1beta1.Work
}

func (r *Reconciler) read(ctx context.Context, b placementv1beta1.BindingObject) (in input, err error) {
	in.binding = b
	if in.works, err = r.worksOf(ctx, b); err != nil {
		return in, err
	}
	if in.member, err = r.member(ctx, b.GetSpec().TargetCluster); err != nil {
		return in, err
	}
	in.placement, err = r.placement(ctx, b)
	return in, err
}

// worksOf lists the binding's Works from the cache, sorted by name.
func (r *Reconciler) worksOf(ctx context.Context, b placementv1beta1.BindingObject) ([]*placementv1beta1.Work, error) {
	var list placementv1beta1.WorkList
	err := r.Client.List(ctx, &list, client.MatchingFields{worksByBinding: b.GetName()},
		client.InNamespace(clusterv1beta1.MemberNamespace(b.GetSpec().TargetCluster)))
	if err != nil {
		return nil, fmt.Errorf("listing the works of binding %q: %w", b.GetName(), err)
	}
	var works []*placementv1beta1.Work
	for i := range list.Items {
		if belongs(&list.Items[i], b) {
			works = append(works, &list.Items[i])
		}
	}
	slices.SortFunc(works, func(a, b *placementv1beta1.Work) int { return strings.Compare(a.Name, b.Name) })
	return works, nil
}

// liveWorksOf lists the metadata of the binding's Works from the API server, because none may be
// missed.
func (r *Reconciler) liveWorksOf(ctx context.Context, b placementv1beta1.BindingObject) ([]*metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind("WorkList"))
	err := r.Live.List(ctx, list, client.MatchingLabels{placementv1beta1.ParentBindingLabel: b.GetName()},
		client.InNamespace(clusterv1beta1.MemberNamespace(b.GetSpec().TargetCluster)))
	if err != nil {
		return nil, fmt.Errorf("listing the works of binding %q: %w", b.GetName(), err)
	}
	var works []*metav1.PartialObjectMetadata
	for i := range list.Items {
		if belongs(&list.Items[i], b) {
			works = append(works, &list.Items[i])
		}
	}
	return works, nil
}

func belongs(w metav1.Object, b placementv1beta1.BindingObject) bool {
	return w.GetLabels()[placementv1beta1.ParentBindingLabel] == b.GetName() &&
		w.GetLabels()[placementv1beta1.ParentPlacementNamespaceLabel] == b.GetNamespace()
}

// member reads a member; nil if it is deleted or being deleted.
func (r *Reconciler) member(ctx context.Context, name string) (*clusterv1beta1.MemberCluster, error) {
	var member clusterv1beta1.MemberCluster
	err := r.Client.Get(ctx, types.NamespacedName{Name: name}, &member)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading member %q: %w", name, err)
	}
	if err != nil || member.DeletionTimestamp != nil {
		//lint:ignore nilerr A missing object is a result, not an error.
		return nil, nil
	}
	return &member, nil
}

// placement reads a binding's placement; nil if it is deleted. It is not copied: its status grows with
// the members, and each binding reads it.
func (r *Reconciler) placement(ctx context.Context, b placementv1beta1.BindingObject) (placementv1beta1.PlacementObject, error) {
	key, ok := objects.KeyOf(b)
	if !ok {
		return nil, nil
	}
	placement, err := objects.Placement(ctx, r.Client, key, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err != nil {
		//lint:ignore nilerr Its binding goes too.
		return nil, nil
	}
	return placement, nil
}
