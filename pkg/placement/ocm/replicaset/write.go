// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/kube/naming"
	"fleetgate.io/fleetgate/pkg/placement/objects"
)

const (
	// writers is how many ManifestWorks of a set are written at a time.
	writers = 16
	// maxProblems is how many failed writes a message names.
	maxProblems = 3
	// refusedDelay is the delay after a rejection whose reason causes no event here: a missing
	// namespace, an admission rule of the hub.
	refusedDelay = 5 * time.Second
)

// changes are the pending writes for a set.
type changes struct {
	set  *workv1alpha1.ManifestWorkReplicaSet
	now  time.Time
	give []delivery
	drop []workName
	// left are those that are dropped.
	left map[workName]bool
}

// delivery is a ManifestWork to be written.
type delivery struct {
	of      *placed
	cluster string
	// work is the existing one, nil for none.
	work *workv1.ManifestWork
	// labels is true if the spec already equals the template and only labels differ.
	labels bool
}

func (c *changes) remove(work *workv1.ManifestWork) {
	name := nameOf(work)
	if work.DeletionTimestamp == nil && !c.left[name] {
		c.drop = append(c.drop, name)
	}
	c.left[name] = true
}

// write makes all changes that can be made.
func (r *Reconciler) write(ctx context.Context, c *changes) results {
	written := inParallel(c.give, func(g delivery) error { return r.give(ctx, c, g) })
	return append(written, inParallel(c.drop, func(name workName) error { return r.remove(ctx, name) })...)
}

// give writes one ManifestWork, unless it belongs to another set.
func (r *Reconciler) give(ctx context.Context, c *changes, g delivery) error {
	if g.work == nil {
		return r.create(ctx, c, g)
	}
	// The cached object is incomplete.
	work := &workv1.ManifestWork{}
	if found, err := reconcileutil.GetIfExists(ctx, r.Live, client.ObjectKeyFromObject(g.work), work, "reading ManifestWork %s/%s", g.cluster, g.work.Name); !found {
		return err // Its deletion triggers a reconciliation.
	}
	if work.DeletionTimestamp != nil {
		return nil
	}
	if !c.owns(work, g.of.name) {
		return errNotOwned(work)
	}
	desired := desiredWork(c.set, g.of.name, g.cluster, c.now)
	maps.Copy(work.Labels, desired.Labels)
	if !g.labels {
		if work.Annotations == nil {
			work.Annotations = map[string]string{}
		}
		maps.Copy(work.Annotations, desired.Annotations)
		work.Spec = desired.Spec
	}
	if err := r.Client.Update(ctx, work); err != nil {
		return fmt.Errorf("updating ManifestWork %s/%s: %w", g.cluster, work.Name, err)
	}
	return nil
}

// create creates the ManifestWork. If it already exists, either the cache has not seen it yet, and
// an event will follow, or it belongs to another set.
func (r *Reconciler) create(ctx context.Context, c *changes, g delivery) error {
	work := desiredWork(c.set, g.of.name, g.cluster, c.now)
	err := r.Client.Create(ctx, work)
	if err == nil {
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating ManifestWork %s/%s: %w", g.cluster, work.Name, err)
	}
	there := &metav1.PartialObjectMetadata{}
	there.SetGroupVersionKind(workv1.GroupVersion.WithKind("ManifestWork"))
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(work), there); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading ManifestWork %s/%s: %w", g.cluster, work.Name, err)
	} else if err == nil && !c.owns(there, g.of.name) {
		return errNotOwned(there)
	}
	return nil
}

// owns is true if a ManifestWork was made for a Placement of the set.
func (c *changes) owns(work client.Object, placement string) bool {
	labels := work.GetLabels()
	return labels[workv1alpha1.ReplicaSetLabel] == labelValue(c.set) && labels[workv1alpha1.PlacementNameLabel] == naming.LabelValue(placement)
}

// results are the errors of writes in their order, nil for successes.
type results []error

// inParallel calls do for each of many, some at a time.
func inParallel[T any](all []T, do func(T) error) results {
	out := make(results, len(all))
	var group errgroup.Group
	group.SetLimit(writers)
	for i, one := range all {
		group.Go(func() error {
			out[i] = do(one)
			return nil
		})
	}
	_ = group.Wait() // Each has its own error.
	return out
}

func (r results) failed(i int) bool { return r[i] != nil }

func (r results) first() error {
	for _, err := range r {
		if err != nil {
			return err
		}
	}
	return nil
}

// message names the first errors that users should see; empty if there are none. Conflicts are routine
// and left out.
func (r results) message() string {
	var messages []string
	more := 0
	for _, err := range r {
		switch {
		case err == nil || apierrors.IsConflict(err):
		case len(messages) < maxProblems:
			messages = append(messages, err.Error())
		default:
			more++
		}
	}
	if more > 0 {
		messages = append(messages, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(messages, "; ")
}

// retry returns the delay after which failed writes are repeated, if the hub has answered, or an
// error if the result is unknown.
func (r results) retry() (time.Duration, error) {
	var after time.Duration
	var unknown []error
	for _, err := range r {
		switch {
		case err == nil:
		case apierrors.IsConflict(err):
			after = shorter(after, objects.RetryDelay)
		case isRefused(err), objects.RefusedAsGoing(err), apierrors.IsNotFound(err), apierrors.IsInvalid(err), apierrors.IsForbidden(err),
			apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
			after = shorter(after, refusedDelay)
		default:
			unknown = append(unknown, err)
		}
	}
	return after, errors.Join(unknown...)
}

// shorter is the shorter of two delays, of which the first may be unset.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 {
		return b
	}
	return min(a, b)
}
