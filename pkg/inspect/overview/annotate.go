// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

// Annotate writes an annotation of an object.
func (h *Hub) Annotate(ctx context.Context, object client.Object, key, value string) error {
	before := object.DeepCopyObject().(client.Object)
	reconcileutil.SetAnnotation(object, key, value)
	if err := h.Patch(ctx, object, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("annotating %s: %w", NameOf(object), err)
	}
	return nil
}
