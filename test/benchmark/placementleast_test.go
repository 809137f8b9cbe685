// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// leastWritesPerWork are a creation and a status of a binding and of a Work.
const leastWritesPerWork = 4

// leastWrites is what a Work and its binding cost, whoever delivers them.
type leastWrites struct {
	client  client.Client
	binding *placementv1beta1.ClusterResourceBinding
	work    *placementv1beta1.Work
}

// leastWrites takes a binding and its Work from the hub for a pattern.
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
	l := &leastWrites{client: p.hub, binding: &bindings.Items[0], work: &works.Items[0]}
	l.work.Namespace = namespace.Name
	for _, pattern := range []client.Object{l.binding, l.work} {
		pattern.SetResourceVersion("")
		pattern.SetUID("")
		pattern.SetOwnerReferences(nil)
	}
	return l, nil
}

// write delivers to as many.
func (l *leastWrites) write(ctx context.Context, works int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	for i := range works {
		group.Go(func() error { return l.deliver(ctx, fmt.Sprintf("bare-%d", i)) })
	}
	return group.Wait()
}

func (l *leastWrites) deliver(ctx context.Context, name string) error {
	binding, work := l.binding.DeepCopy(), l.work.DeepCopy()
	for _, object := range []client.Object{binding, work} {
		object.SetName(name)
		if err := l.client.Create(ctx, object); err != nil {
			return err
		}
	}
	binding.Status, work.Status = l.binding.Status, l.work.Status
	return errors.Join(l.client.Status().Update(ctx, work), l.client.Status().Update(ctx, binding))
}
