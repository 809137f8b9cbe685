// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	viewv1alpha1 "fleetgate.io/fleetgate/pkg/apis/view/v1alpha1"
	"fleetgate.io/fleetgate/pkg/apiserver/paths"
)

// Views returns the FleetViews of the hub from memory.
type Views interface {
	// FleetView returns the view of that name. The error is NotFound if there is none, and any
	// other of package apierrors if that is not known.
	FleetView(ctx context.Context, name string) (*viewv1alpha1.FleetView, error)
}

// ViewsFunc adapts a function to Views.
type ViewsFunc func(ctx context.Context, name string) (*viewv1alpha1.FleetView, error)

// FleetView implements Views.
func (f ViewsFunc) FleetView(ctx context.Context, name string) (*viewv1alpha1.FleetView, error) {
	return f(ctx, name)
}

// NoViews is for a hub without FleetViews.
var NoViews = ViewsFunc(func(_ context.Context, name string) (*viewv1alpha1.FleetView, error) { return nil, notFound(name) })

func notFound(name string) error {
	return apierrors.NewNotFound(viewv1alpha1.GroupVersion.WithResource(viewv1alpha1.Resource).GroupResource(), name)
}

// view is which members are read, and how.
type view struct {
	name      string
	selector  labels.Selector
	qualified bool
}

// viewOf resolves a name in a path.
func (h *Handler) viewOf(ctx context.Context, name string) (*view, error) {
	if name == viewv1alpha1.AllMembers {
		return &view{name: name, selector: labels.Everything()}, nil
	}
	parsed, err := paths.ParseViewSelector(name)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if parsed != nil {
		return &view{name: name, selector: parsed.Members, qualified: parsed.Qualified}, nil
	}
	object, err := h.views.FleetView(ctx, name)
	if apierrors.IsNotFound(err) {
		return nil, notFound(name) // The same message for every implementation.
	}
	if err != nil {
		return nil, err
	}
	selector := labels.Everything()
	if object.Spec.MemberSelector != nil {
		var err error
		if selector, err = metav1.LabelSelectorAsSelector(object.Spec.MemberSelector); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("FleetView %q has a selector that cannot be read: %v", name, err))
		}
	}
	return &view{name: name, selector: selector, qualified: object.Spec.Names == viewv1alpha1.NamesQualified}, nil
}

// members are the sorted names of the members of a view.
func (h *Handler) members(of *view) []string {
	all, _ := h.inventory.List()
	var names []string
	for _, member := range all {
		if of.selector.Matches(labels.Set(member.Labels)) {
			names = append(names, member.Name)
		}
	}
	return names
}
