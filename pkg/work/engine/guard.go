// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// refuseNamespace is the result of an item that must not be written into its namespace, or nil. It
// reads the namespace as the agent itself, because the account that writes need not be allowed to.
func (e *Engine) refuseNamespace(ctx context.Context, it Item) *ManifestResult {
	name := it.Ref.Namespace
	if it.Ref.Group == "" && it.Ref.Kind == "Namespace" {
		name = it.Ref.Name
	}
	if e.namespaces == nil || name == "" || it.Mode.Method == Compare || it.Mode.Method == ReadOnly {
		return nil
	}
	namespace, err := e.namespaces.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return &ManifestResult{Ref: it.Ref, Owned: true, Err: fmt.Errorf("getting namespace %q to see whether works may be written into it: %w", name, err)}
	}
	if why := e.family.ReservedNamespace(namespace); why != "" {
		return &ManifestResult{Ref: it.Ref, Owned: true, Refused: &refusal.Refusal{Reason: Kept, Message: why}}
	}
	return nil
}
