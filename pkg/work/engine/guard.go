// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// guard keeps writes out of namespaces of the member. It reads them as the agent itself, because the
// account that writes need not be allowed to.
type guard struct {
	namespaces dynamic.ResourceInterface
	refuses    func(metav1.Object) string
}

// guardOf is nil if works are written into all namespaces.
func guardOf(member dynamic.Interface, refuses func(metav1.Object) string) *guard {
	if refuses == nil {
		return nil
	}
	return &guard{member.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")), refuses}
}

// refuseNamespace is the outcome of an item that must not be written into its namespace, or nil.
func (e *Engine) refuseNamespace(ctx context.Context, it Item) *Outcome {
	name := it.Ref.Namespace
	if it.Ref.Group == "" && it.Ref.Kind == "Namespace" {
		name = it.Ref.Name
	}
	if e.guard == nil || name == "" || it.Way.By == Compare || it.Way.By == ReadOnly {
		return nil
	}
	namespace, err := e.guard.namespaces.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return &Outcome{Ref: it.Ref, Holds: true, Err: fmt.Errorf("getting namespace %q to see whether works may be written into it: %w", name, err)}
	}
	if why := e.guard.refuses(namespace); why != "" {
		return &Outcome{Ref: it.Ref, Holds: true, Refused: &refusal.Refusal{Reason: Kept, Message: why}}
	}
	return nil
}
