// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/selection"
)

const (
	// maxKinds limits the kinds of a namespace that are checked one by one.
	maxKinds = 800
	// maxNamed limits the kinds that a refusal names.
	maxNamed = 10
)

// Contents knows what namespaces of the hub contain.
type Contents interface {
	// Kinds are the kinds that are placed with a namespace.
	Kinds() ([]selection.Kind, error)
	// Holds is true if the namespace has an object of the kind that would be placed with it.
	Holds(ctx context.Context, namespace string, kind selection.Kind) (bool, error)
}

// A Hub is what questions about placements need besides the user's permissions.
type Hub struct {
	Resources Resources
	Contents  Contents
}

// Placement returns which of the selected objects the author of a placement may have delivered. It
// returns a refusal for each selector for which that is not enough, or if the author asks to have a
// status mirrored without permission to write it. The namespace is that of the placement, empty for
// a ClusterResourcePlacement. The error means that this could not be determined.
func (h Hub) Placement(ctx context.Context, checker *Checker, namespace string, spec *placementv1beta1.PlacementSpec) (*selection.Bound, field.ErrorList, error) {
	single, contents, err := wanted(namespace, spec.ResourceSelectors, h.Resources)
	if err != nil {
		return nil, nil, err
	}
	d := &decision{hub: h, checker: checker, bound: &selection.Bound{Author: checker.user.Username}}
	if d.refusals, err = checker.Refused(ctx, "a placement", reporting(spec, append(contents, single...))); err != nil {
		return nil, nil, err
	}
	everything, err := d.everything(ctx, namespace, append(contents, single...))
	if err != nil {
		return nil, nil, err
	}
	if everything {
		d.bound.AddAll(namespace)
		return d.bound, d.refusals, nil
	}
	if err := d.single(ctx, single); err != nil {
		return nil, nil, err
	}
	for _, w := range contents {
		if err := d.contents(ctx, w); err != nil {
			return nil, nil, err
		}
	}
	return d.bound, d.refusals, nil
}

// decision is one decision in progress.
type decision struct {
	hub      Hub
	checker  *Checker
	bound    *selection.Bound
	refusals field.ErrorList
}

func (d *decision) refuse(path *field.Path, what string) {
	d.refusals = append(d.refusals, field.Forbidden(path, fmt.Sprintf(
		"user %q cannot %s on the hub, and a placement does not bypass that. Either right will do: one that reads it, or the verb %s, with which it is placed unread",
		d.checker.user.Username, what, placementv1beta1.PlaceVerb)))
}

// everything is true if the user may have everything in the placement's scope delivered, with the
// verb of each want. Without wants there is nothing to check.
func (d *decision) everything(ctx context.Context, scope string, wants []want) (bool, error) {
	var questions []Question
	for _, w := range wants {
		questions = append(questions, wide(w.path, w.verb, scope))
	}
	may, err := d.checker.May(ctx, questions...)
	if err != nil {
		return false, err
	}
	return len(may) > 0 && !slices.Contains(may, false), nil
}

func (d *decision) single(ctx context.Context, wants []want) error {
	questions := make([]Question, len(wants))
	for i, w := range wants {
		questions[i] = w.question()
	}
	may, err := d.checker.May(ctx, questions...)
	if err != nil {
		return err
	}
	for i, w := range wants {
		if may[i] {
			d.bound.Add(w.namespace, w.resource, w.name)
		} else {
			d.refuse(w.path, questions[i].String())
		}
	}
	return nil
}

// contents decides about a namespace with all that is in it. A label selector can match any
// namespace, so it requires everything.
func (d *decision) contents(ctx context.Context, w want) error {
	all := wide(w.path, w.verb, w.namespace)
	may, err := d.checker.May(ctx, all)
	if err != nil {
		return err
	}
	switch {
	case may[0]:
		d.bound.AddAll(w.namespace)
		return nil
	case w.namespace == "":
		d.refuse(w.path, all.String()+", any of which the selector can match (to need the right in one namespace only, name that namespace)")
		return nil
	}
	kinds, err := d.hub.Contents.Kinds()
	if err != nil {
		return err
	}
	if len(kinds) > maxKinds {
		d.refuse(w.path, fmt.Sprintf("%s, where the hub has more than %d kinds to ask about one by one", all, maxKinds))
		return nil
	}
	return d.kinds(ctx, w, kinds)
}

// kinds decides about a namespace kind by kind.
func (d *decision) kinds(ctx context.Context, w want, kinds []selection.Kind) error {
	questions := make([]Question, len(kinds))
	for i, kind := range kinds {
		questions[i] = readOrPlace(w.path, w.verb, Access{Group: kind.Group, Resource: kind.Resource, Namespace: w.namespace})
	}
	may, err := d.checker.May(ctx, questions...)
	if err != nil {
		return err
	}
	var denied []selection.Kind
	for i, kind := range kinds {
		if may[i] {
			d.bound.Add(w.namespace, kind.GVR().GroupResource(), "")
		} else {
			denied = append(denied, kind)
		}
	}
	there, err := d.there(ctx, w.namespace, denied)
	if err != nil || len(there) == 0 {
		return err
	}
	named := make([]string, 0, maxNamed)
	for _, resource := range there[:min(len(there), maxNamed)] {
		named = append(named, resource.String())
	}
	text := strings.Join(named, ", ")
	if more := len(there) - len(named); more > 0 {
		text += fmt.Sprintf(" and %d more kinds", more)
	}
	d.refuse(w.path, fmt.Sprintf("%s or %s %s in namespace %q, which it holds", w.verb, placementv1beta1.PlaceVerb, text, w.namespace))
	return nil
}

// there returns the kinds that have objects in the namespace.
func (d *decision) there(ctx context.Context, namespace string, kinds []selection.Kind) ([]schema.GroupResource, error) {
	holds, err := inParallel(ctx, kinds, func(ctx context.Context, kind selection.Kind) (bool, error) {
		return d.hub.Contents.Holds(ctx, namespace, kind)
	})
	if err != nil {
		return nil, err
	}
	var there []schema.GroupResource
	for i, kind := range kinds {
		if holds[i] {
			there = append(there, kind.GVR().GroupResource())
		}
	}
	return there, nil
}
