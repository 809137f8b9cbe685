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

// answers finds out what the authors of placements may have delivered, and keeps the
// answer on the placement (package author says how the two webhooks share that).
type answers[P placementv1beta1.PlacementObject] struct {
	hub     author.Hub
	authors authors
	// trusting says that authors are not asked. What was answered before stays.
	trusting bool
}

// about returns the answer that belongs on a placement, empty for none, and a refusal
// for each selector that needs a right which the author lacks. Older is the previous
// placement, nil for a new one. Its answer stays valid until somebody changes the spec or
// the answer.
func (a answers[P]) about(ctx context.Context, older *P, newer P) (string, field.ErrorList, error) {
	if older == nil {
		if a.trusting {
			return "", nil, nil
		}
		return a.ask(ctx, newer)
	}
	before, now := answerOn(*older), answerOn(newer)
	if a.trusting || meansTheSame((*older).GetSpec(), newer.GetSpec()) && (now == "" || now == before) {
		return before, nil, nil
	}
	return a.ask(ctx, newer)
}

func (a answers[P]) ask(ctx context.Context, placement P) (string, field.ErrorList, error) {
	asker, err := a.authors.asker(ctx)
	if err != nil {
		return "", nil, err
	}
	bound, refusals, err := a.hub.Placement(ctx, asker, placement.GetNamespace(), placement.GetSpec())
	if err != nil {
		return "", nil, err
	}
	return bound.String(), refusals, nil
}

// check refuses a placement that says of its author anything but the answer.
func (a answers[P]) check(ctx context.Context, older *P, newer P) (field.ErrorList, error) {
	if a.trusting {
		return nil, nil
	}
	answer, refusals, err := a.about(ctx, older, newer)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if len(refusals) == 0 && answerOn(newer) != answer {
		return nil, apierrors.NewServiceUnavailable("annotation " + placementv1beta1.AuthorMayAnnotation +
			" does not say what the author may have delivered: the gateway's mutating webhook did not answer, rights have just changed, or another webhook changes placements after it. Try again")
	}
	return refusals, nil
}

func answerOn[P placementv1beta1.PlacementObject](placement P) string {
	return placement.GetAnnotations()[placementv1beta1.AuthorMayAnnotation]
}

// setAnswer writes an answer, or takes away what stands there if there is none.
func setAnswer[P placementv1beta1.PlacementObject](placement P, answer string) {
	annotations := maps.Clone(placement.GetAnnotations())
	if answer == "" {
		delete(annotations, placementv1beta1.AuthorMayAnnotation)
		placement.SetAnnotations(annotations)
		return
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[placementv1beta1.AuthorMayAnnotation] = answer
	placement.SetAnnotations(annotations)
}
