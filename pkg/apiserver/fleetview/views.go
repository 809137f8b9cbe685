// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	viewv1alpha1 "fleetgate.io/fleetgate/pkg/apis/view/v1alpha1"
)

const (
	// selectorPrefix begins the name of a view that is a label selector. No object's name contains
	// a colon.
	selectorPrefix = "labels:"
	// qualifiedPrefix is the same for a view that qualifies names.
	qualifiedPrefix = "qualified:"
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
	made, err := selecting(name)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if made != nil {
		return made, nil
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

// selecting is the view of a name that is a selector, or nil if it is none.
func selecting(name string) (*view, error) {
	for _, prefix := range []string{selectorPrefix, qualifiedPrefix} {
		text, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		// A slash would end the path segment, so a colon replaces it. Selectors contain no other
		// colon.
		selector, err := labels.Parse(strings.ReplaceAll(text, ":", "/"))
		if err != nil {
			return nil, fmt.Errorf("the view %q is no selector of labels (a colon stands for the slash of a key): %w", name, err)
		}
		return &view{name: name, selector: selector, qualified: prefix == qualifiedPrefix}, nil
	}
	return nil, nil
}

// ValidateName checks the syntax of a view's name, without asking for the view.
func ValidateName(name string) error {
	if made, err := selecting(name); made != nil || err != nil {
		if strings.Contains(name, "/") {
			return fmt.Errorf("the view %q has a slash: write a colon for that of a label's key", name)
		}
		return err
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return fmt.Errorf("%q is neither the name of a FleetView nor %sSELECTOR: %s", name, selectorPrefix, strings.Join(problems, ", "))
	}
	return nil
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
