// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/webhook/author"
)

// authorBounds determines which resources the authors of placements may deliver, and stores that bound
// on the placement. Package author describes how the two webhooks share the work.
type authorBounds[P placementv1beta1.PlacementObject] struct {
	hub     author.Hub
	authors authors
	// trusting disables the author check. Stored bounds stay.
	trusting bool
}

// boundOf returns the bound to store on a placement, empty for none, and a refusal for each selector that
// needs a right which the author lacks. Older is the previous placement, nil for a new one. Its bound
// stays valid until somebody changes the spec or the annotation.
func (a authorBounds[P]) boundOf(ctx context.Context, older *P, newer P) (string, field.ErrorList, error) {
	if older == nil {
		if a.trusting {
			return "", nil, nil
		}
		return a.review(ctx, newer)
	}
	before, now := boundOn(*older), boundOn(newer)
	if a.trusting || meansTheSame((*older).GetSpec(), newer.GetSpec()) && (now == "" || now == before) {
		return before, nil, nil
	}
	return a.review(ctx, newer)
}

func (a authorBounds[P]) review(ctx context.Context, placement P) (string, field.ErrorList, error) {
	checker, err := a.authors.checker(ctx)
	if err != nil {
		return "", nil, err
	}
	bound, refusals, err := a.hub.Placement(ctx, checker, placement.GetNamespace(), placement.GetSpec())
	if err != nil {
		return "", nil, err
	}
	return bound.String(), refusals, nil
}

// check refuses a placement whose annotation is not the bound of its author.
func (a authorBounds[P]) check(ctx context.Context, older *P, newer P) (field.ErrorList, error) {
	if a.trusting {
		return nil, nil
	}
	bound, refusals, err := a.boundOf(ctx, older, newer)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if len(refusals) == 0 && boundOn(newer) != bound {
		return nil, apierrors.NewServiceUnavailable("annotation " + placementv1beta1.AuthorMayAnnotation +
			" does not contain the result of the author check: the gateway's mutating webhook did not respond, rights have just changed, or another webhook changes placements after it. Try again")
	}
	return refusals, nil
}

func boundOn[P placementv1beta1.PlacementObject](placement P) string {
	return placement.GetAnnotations()[placementv1beta1.AuthorMayAnnotation]
}

// setBound writes the annotation with a bound, or removes it if the bound is empty.
func setBound[P placementv1beta1.PlacementObject](placement P, bound string) {
	annotations := maps.Clone(placement.GetAnnotations())
	if bound == "" {
		delete(annotations, placementv1beta1.AuthorMayAnnotation)
		placement.SetAnnotations(annotations)
		return
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[placementv1beta1.AuthorMayAnnotation] = bound
	placement.SetAnnotations(annotations)
}
