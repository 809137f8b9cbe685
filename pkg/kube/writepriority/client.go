// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package writepriority

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Of returns the urgency of writing an object, or its status.
type Of func(object client.Object, status bool) Urgency

// Always is the same urgency for all writes of a client.
func Always(u Urgency) Of { return func(client.Object, bool) Urgency { return u } }

// Client orders the writes of a client: Create, Update, Patch and Delete, and Update and Patch of a
// status. Reads, and all other calls, never wait. If the context ends before the write began, its
// error is returned unchanged.
func (o *Order) Client(of client.Client, urgency Of) client.Client {
	return &ordered{Client: of, order: o, urgency: urgency}
}

type ordered struct {
	client.Client
	order   *Order
	urgency Of
}

// Create implements client.Writer.
func (c *ordered) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	return c.order.pass(ctx, c.urgency(object, false), func() error { return c.Client.Create(ctx, object, options...) })
}

// Update implements client.Writer.
func (c *ordered) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	return c.order.pass(ctx, c.urgency(object, false), func() error { return c.Client.Update(ctx, object, options...) })
}

// Patch implements client.Writer.
func (c *ordered) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	return c.order.pass(ctx, c.urgency(object, false), func() error { return c.Client.Patch(ctx, object, patch, options...) })
}

// Delete implements client.Writer.
func (c *ordered) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	return c.order.pass(ctx, c.urgency(object, false), func() error { return c.Client.Delete(ctx, object, options...) })
}

// Status implements client.StatusClient.
func (c *ordered) Status() client.SubResourceWriter {
	return &orderedStatus{SubResourceWriter: c.Client.Status(), client: c}
}

type orderedStatus struct {
	client.SubResourceWriter
	client *ordered
}

// Update implements client.SubResourceWriter.
func (w *orderedStatus) Update(ctx context.Context, object client.Object, options ...client.SubResourceUpdateOption) error {
	return w.client.order.pass(ctx, w.client.urgency(object, true), func() error { return w.SubResourceWriter.Update(ctx, object, options...) })
}

// Patch implements client.SubResourceWriter.
func (w *orderedStatus) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	return w.client.order.pass(ctx, w.client.urgency(object, true), func() error { return w.SubResourceWriter.Patch(ctx, object, patch, options...) })
}
