// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package readyourwrites

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patience is how long a read waits for the cache. If a hub's watches are later than that, nothing
// should be decided.
const patience = time.Minute

// errLate is why a read ended.
var errLate = errors.New("the cache has not seen what was written through this client for " + patience.String())

// NewClient returns a client of the hub, and stops the manager with an error once a read has waited
// for a minute. Each kind that is written through it is cached. Delete refuses with a conflict if
// another object has the name by now.
func NewClient(mgr ctrl.Manager, config *rest.Config) (client.Client, error) {
	waiting, err := client.New(config, client.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		Cache: &client.CacheOptions{Reader: mgr.GetCache(), EnableReadYourWritesConsistency: new(true)},
	})
	if err != nil {
		return nil, fmt.Errorf("making a cached client of the hub: %w", err)
	}
	c := &impatient{Client: waiting, late: make(chan error, 1)}
	if err := mgr.Add(c); err != nil {
		return nil, fmt.Errorf("adding what looks whether caches are late: %w", err)
	}
	return c, nil
}

// impatient is a client whose reads do not wait indefinitely.
type impatient struct {
	client.Client
	// late has the first error of a read that waited too long.
	late chan error
}

// Start implements manager.Runnable.
func (c *impatient) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-c.late:
		return err
	}
}

// Get implements client.Reader.
func (c *impatient) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return c.read(ctx, func(ctx context.Context) error { return c.Client.Get(ctx, key, object, options...) })
}

// List implements client.Reader.
func (c *impatient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return c.read(ctx, func(ctx context.Context) error { return c.Client.List(ctx, list, options...) })
}

func (c *impatient) read(ctx context.Context, read func(context.Context) error) error {
	bounded, cancel := context.WithTimeoutCause(ctx, patience, errLate)
	defer cancel()
	err := read(bounded)
	if err == nil || !errors.Is(context.Cause(bounded), errLate) {
		return err
	}
	err = fmt.Errorf("%w: %w", errLate, err)
	select {
	case c.late <- err:
	default: // One is enough.
	}
	return err
}

// Delete implements client.Writer.
func (c *impatient) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	o := (&client.DeleteOptions{}).ApplyOptions(options)
	if o.Preconditions == nil {
		o.Preconditions = &metav1.Preconditions{}
	}
	if o.Preconditions.UID == nil {
		o.Preconditions.UID = new(object.GetUID())
	}
	if *o.Preconditions.UID == "" {
		return fmt.Errorf("deleting %T %s: a deletion must name the UID of the object", object, client.ObjectKeyFromObject(object))
	}
	return c.Client.Delete(ctx, object, o)
}
