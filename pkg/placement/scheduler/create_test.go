// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// storing records the order in which bindings are stored.
type storing struct {
	client.Client
	mu     sync.Mutex
	states []placementv1beta1.BindingState
}

func (s *storing) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.states = append(s.states, object.(placementv1beta1.BindingObject).GetSpec().State)
	return nil
}

// A rollout that saw a waiting binding, but not yet the started ones, would start too many.
func TestCreateAll_StoresBoundBindingsFirst(t *testing.T) {
	var fresh []placementv1beta1.BindingObject
	for i := range 100 {
		b := &placementv1beta1.ClusterResourceBinding{}
		b.Name, b.Spec.State = fmt.Sprint(i), placementv1beta1.BindingScheduled
		if i%2 == 0 {
			b.Spec.State = placementv1beta1.BindingBound
		}
		fresh = append(fresh, b)
	}
	hub := &storing{}
	if err := (&Reconciler{Client: hub}).createAll(t.Context(), fresh); err != nil {
		t.Fatal(err)
	}
	if len(hub.states) != len(fresh) {
		t.Errorf("%d bindings were stored, want %d", len(hub.states), len(fresh))
	}
	if slices.Contains(hub.states[slices.Index(hub.states, placementv1beta1.BindingScheduled):], placementv1beta1.BindingBound) {
		t.Errorf("order = %v", hub.states)
	}
}
