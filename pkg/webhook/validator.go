// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// rulesOf returns the errors of an object; older is its previous version, nil for a creation. The
// error means that the rules could not be evaluated.
type rulesOf[T client.Object] func(ctx context.Context, older *T, newer T) (field.ErrorList, error)

// validator serves the rules of a kind.
type validator[T client.Object] struct {
	kind  schema.GroupKind
	rules rulesOf[T]
	// warnings, if set, returns warnings for the user who writes a valid object.
	warnings func(older *T, newer T) admission.Warnings
}

// ValidateCreate returns 422 with every error of a new object.
func (v validator[T]) ValidateCreate(ctx context.Context, object T) (admission.Warnings, error) {
	return v.validate(ctx, nil, object)
}

// ValidateUpdate returns 422 with every error of an update. What is being deleted
// may lose its finalizers, whatever it looks like.
func (v validator[T]) ValidateUpdate(ctx context.Context, older, newer T) (admission.Warnings, error) {
	if newer.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	return v.validate(ctx, &older, newer)
}

// ValidateDelete allows.
func (v validator[T]) ValidateDelete(context.Context, T) (admission.Warnings, error) { return nil, nil }

func (v validator[T]) validate(ctx context.Context, older *T, newer T) (admission.Warnings, error) {
	problems, err := v.rules(ctx, older, newer)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	var warnings admission.Warnings
	if v.warnings != nil {
		warnings = v.warnings(older, newer)
	}
	return warnings, invalid(v.kind, newer, problems)
}

// invalid is 422 with a cause for each problem, or nil without any.
func invalid(kind schema.GroupKind, object client.Object, problems field.ErrorList) error {
	if len(problems) == 0 {
		return nil
	}
	if object.GetName() == "" {
		return apierrors.NewInvalid(kind, fmt.Sprintf("(generated from %q)", object.GetGenerateName()), problems)
	}
	return apierrors.NewInvalid(kind, object.GetName(), problems)
}
