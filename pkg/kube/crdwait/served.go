// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package crdwait

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrMissing is in the error of [UntilServed] when the definition does not exist.
var ErrMissing = errors.New("it does not exist")

// UntilServed waits until the API server serves the kind of a CustomResourceDefinition. It fails when
// the context ends, or when the names of the kind are taken by another definition. The interval
// grows, because definitions are large and a slow API server is busy.
func UntilServed(ctx context.Context, reader client.Reader, name string) error {
	polls := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 1.5, Cap: 2 * time.Second, Steps: 10}
	var reason error
	err := polls.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		now, err := notServed(ctx, reader, name)
		if err != nil {
			return false, err // The reason of the last successful check stays.
		}
		reason = now
		return reason == nil, nil
	})
	if ctx.Err() != nil && reason != nil {
		err = fmt.Errorf("%w: %w", reason, err)
	}
	if err != nil {
		return fmt.Errorf("waiting for CustomResourceDefinition %s to be served: %w", name, err)
	}
	return nil
}

// notServed is the reason why a kind is not served yet; nil if it is. An error means that it is
// unknown, or that the kind will never be served.
func notServed(ctx context.Context, reader client.Reader, name string) (reason, err error) {
	var definition apiextensionsv1.CustomResourceDefinition
	err = reader.Get(ctx, client.ObjectKey{Name: name}, &definition)
	switch {
	case apierrors.IsNotFound(err):
		return ErrMissing, nil
	case err != nil:
		return nil, fmt.Errorf("reading CustomResourceDefinition %s: %w", name, err)
	}
	if names := apihelpers.FindCRDCondition(&definition, apiextensionsv1.NamesAccepted); names != nil && names.Status == apiextensionsv1.ConditionFalse {
		return nil, fmt.Errorf("its names are taken: %s", names.Message)
	}
	if !apihelpers.IsCRDConditionTrue(&definition, apiextensionsv1.Established) {
		return errors.New("the API server has not established it"), nil
	}
	return nil, nil
}
