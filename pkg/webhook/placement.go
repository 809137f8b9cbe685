// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/webhook/validation"
)

// scopesOf asks the hub's own discovery; the mapper looks again when it does not know a kind.
func scopesOf(mapper meta.RESTMapper) validation.Scopes {
	return func(kind schema.GroupVersionKind) (bool, error) {
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return false, err
		}
		return mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
	}
}

// placementDefaulter completes both kinds of placement.
type placementDefaulter[P placementv1beta1.PlacementObject] struct {
	// defaults enables the defaults for unset fields.
	defaults bool
	bounds   authorBounds[P]
}

// Default sets defaults of unset fields, and the annotation with the author's rights.
func (d placementDefaulter[P]) Default(ctx context.Context, placement P) error {
	if d.defaults {
		validation.DefaultPlacement(placement.GetSpec())
	}
	older, err := olderOf[P](ctx)
	if err != nil {
		return err
	}
	bound, _, err := d.bounds.boundOf(ctx, older, placement)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	setBound(placement, bound)
	return nil
}

// olderOf returns the object before an update, nil for a creation.
func olderOf[P placementv1beta1.PlacementObject](ctx context.Context) (older *P, err error) {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return nil, err
	}
	if request.Operation == admissionv1.Create {
		return nil, nil
	}
	older = new(P)
	if err := json.Unmarshal(request.OldObject.Raw, older); err != nil {
		return nil, fmt.Errorf("decoding the object before the update: %w", err)
	}
	return older, nil
}

// placementValidator serves both kinds of placement with the same rules.
type placementValidator[P placementv1beta1.PlacementObject] struct {
	kind          string
	clusterScoped bool
	scopes        validation.Scopes
	bounds        authorBounds[P]
}

// ValidateCreate returns 422 with every error of a new placement.
func (v placementValidator[P]) ValidateCreate(ctx context.Context, placement P) (admission.Warnings, error) {
	return nil, v.refuse(ctx, nil, placement, v.problems(placement))
}

// ValidateUpdate returns 422 with every error of an update. One that leaves the
// spec as it was passes: a kind that the hub has stopped to serve must not keep
// controllers from their finalizers, nor users from their labels. So does one of
// a placement that is being deleted.
func (v placementValidator[P]) ValidateUpdate(ctx context.Context, older, newer P) (admission.Warnings, error) {
	if newer.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	if meansTheSame(older.GetSpec(), newer.GetSpec()) {
		return nil, v.refuse(ctx, &older, newer, nil)
	}
	problems := validation.ValidatePlacementUpdate(older.GetSpec(), newer.GetSpec())
	return nil, v.refuse(ctx, &older, newer, append(problems, v.problems(newer)...))
}

// refuse returns the problems and those of the author, or nil without any.
func (v placementValidator[P]) refuse(ctx context.Context, older *P, newer P, problems field.ErrorList) error {
	refusals, err := v.bounds.check(ctx, older, newer)
	if err != nil {
		return err
	}
	return invalid(schema.GroupKind{Group: placementv1beta1.GroupVersion.Group, Kind: v.kind}, newer, append(problems, refusals...))
}

// meansTheSame takes defaults into account: they are filled in with the first
// update of a placement that is older than the webhook.
func meansTheSame(older, newer *placementv1beta1.PlacementSpec) bool {
	older, newer = older.DeepCopy(), newer.DeepCopy()
	validation.DefaultPlacement(older)
	validation.DefaultPlacement(newer)
	return equality.Semantic.DeepEqual(older, newer)
}

// ValidateDelete allows.
func (v placementValidator[P]) ValidateDelete(context.Context, P) (admission.Warnings, error) {
	return nil, nil
}

func (v placementValidator[P]) problems(placement P) field.ErrorList {
	meta := metav1.ObjectMeta{Name: placement.GetName(), Namespace: placement.GetNamespace()}
	return validation.ValidatePlacement(&meta, placement.GetSpec(), v.clusterScoped, v.scopes)
}
