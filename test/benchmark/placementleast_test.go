// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// leastWritesPerWork are a creation and a status of a binding and of a Work.
const leastWritesPerWork = 4

// leastWrites are the least writes for a Work and its binding.
type leastWrites struct {
	client  client.Client
	binding *placementv1beta1.ClusterResourceBinding
	work    *placementv1beta1.Work
	// bindings and works are the created objects.
	bindings []*placementv1beta1.ClusterResourceBinding
	works    []*placementv1beta1.Work
}

// leastWrites copies a binding and its Work from the hub.
func (p *placementBed) leastWrites(ctx context.Context) (*leastWrites, error) {
	var bindings placementv1beta1.ClusterResourceBindingList
	var works placementv1beta1.WorkList
	measured := client.MatchingLabels{placementv1beta1.ParentPlacementLabel: p.placementNames()[0]}
	if err := errors.Join(p.hub.List(ctx, &bindings, measured), p.hub.List(ctx, &works, measured)); err != nil {
		return nil, err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bare"}}
	if err := p.hub.Create(ctx, namespace); err != nil {
		return nil, err
	}
	l := &leastWrites{client: p.hub, binding: &bindings.Items[0], work: &works.Items[0],
		bindings: make([]*placementv1beta1.ClusterResourceBinding, p.works()), works: make([]*placementv1beta1.Work, p.works())}
	l.work.Namespace = namespace.Name
	for _, pattern := range []client.Object{l.binding, l.work} {
		pattern.SetResourceVersion("")
		pattern.SetUID("")
		pattern.SetOwnerReferences(nil)
	}
	return l, nil
}

// bind creates the bindings.
func (l *leastWrites) bind(ctx context.Context) error {
	return l.each(ctx, len(l.works), func(ctx context.Context, i int) error {
		binding := l.binding.DeepCopy()
		binding.Name = fmt.Sprintf("bare-%d", i)
		l.bindings[i] = binding
		return l.client.Create(ctx, binding)
	})
}

// deliver creates the Works, and writes the status of both.
func (l *leastWrites) deliver(ctx context.Context) error {
	return l.each(ctx, len(l.works), func(ctx context.Context, i int) error {
		work, binding := l.work.DeepCopy(), l.bindings[i]
		work.Name = binding.Name
		l.works[i] = work
		if err := l.client.Create(ctx, work); err != nil {
			return err
		}
		binding.Status, work.Status = l.binding.Status, l.work.Status
		return errors.Join(l.client.Status().Update(ctx, work), l.client.Status().Update(ctx, binding))
	})
}

// change changes the first of those Works without a change of size.
func (l *leastWrites) change(ctx context.Context, works int) error {
	return l.each(ctx, works, func(ctx context.Context, i int) error {
		slices.Reverse(l.works[i].Spec.Workload.Manifests)
		return l.client.Update(ctx, l.works[i])
	})
}

func (l *leastWrites) each(ctx context.Context, works int, write func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	for i := range works {
		group.Go(func() error { return write(ctx, i) })
	}
	return group.Wait()
}
