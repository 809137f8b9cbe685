// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/objects"
	"fleetgate.io/fleetgate/pkg/placement/ocm/scheduler/clustercel"
)

// Name is the controller's name.
const Name = "placement.decisions"

// EventSource is the component in events of decisions. It is upstream's name.
const EventSource = "placementController"

// settle is how long changes are gathered.
const settle = 50 * time.Millisecond

// Reconciler decides for Placements.
type Reconciler struct {
	// Client reads through the cache, and sees its own writes there.
	Client client.Client
	// Live reads without the cache, for an object that exists but is not in the cache.
	Live     client.Reader
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
	// Workers is how many Placements are decided at a time.
	Workers int
	// Metrics registers the metrics. If nil, there are none.
	Metrics prometheus.Registerer

	metrics   *metrics
	cache     *clusterCache
	decisions *decisionIndex
	compiler  *clustercel.Compiler
	// deciding is held during a decision that the next one must see, so that several workers
	// balance like one.
	deciding sync.Mutex

	statusMu sync.Mutex // guards statuses
	// statuses are the last written ones.
	statuses map[types.NamespacedName]*ocmclusterv1beta1.PlacementStatus
}

// Reconcile decides for one Placement.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	key := req.NamespacedName
	placement := &ocmclusterv1beta1.Placement{}
	if err := r.Client.Get(ctx, key, placement); apierrors.IsNotFound(err) {
		r.forget(key)
		return ctrl.Result{}, nil
	} else if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading Placement %s: %w", key, err)
	}
	if placement.DeletionTimestamp != nil || isDisabled(placement) {
		r.cache.setParsed(key, nil)
		return ctrl.Result{}, nil
	}
	existing, err := r.existing(ctx, key)
	if err != nil {
		return ctrl.Result{}, err
	}
	w := r.cache.parsedOf(key)
	if w == nil || w.generation != placement.Generation || w.uid != placement.UID {
		w = parsePlacement(placement, r.compiler)
		w.watch = &stopwatch{clock: r.Clock, metrics: r.metrics}
		r.cache.setParsed(key, w)
	}
	began := r.Clock.Now()
	o := r.decide(placement, w, existing)
	decided := r.Clock.Now()
	r.metrics.decided.Observe(decided.Sub(began).Seconds())
	err = r.write(ctx, placement, o, existing)
	r.metrics.bound.Observe(r.Clock.Since(decided).Seconds())
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err), errors.Is(err, errChanged):
		// Another actor is at work: the garbage collector, after a previous Placement of that name.
		return ctrl.Result{RequeueAfter: objects.RetryDelay}, nil
	case objects.RefusedAsGoing(err):
		return ctrl.Result{RequeueAfter: objects.GoingDelay}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: r.until(o.again)}, nil
}

func isDisabled(placement *ocmclusterv1beta1.Placement) bool {
	return placement.Annotations[ocmclusterv1beta1.DisableAnnotation] == "true"
}

// decide decides, and counts the result for other Placements before it is written.
func (r *Reconciler) decide(placement *ocmclusterv1beta1.Placement, w *parsedPlacement, existing []*ocmclusterv1beta1.PlacementDecision) *result {
	key := client.ObjectKeyFromObject(placement)
	from := r.cache.availableTo(key.Namespace, w)
	r.deciding.Lock()
	defer r.deciding.Unlock()
	counts, most := r.decisions.others(key)
	for i := range from.clusters {
		from.clusters[i].Decided = counts(from.clusters[i].Name)
	}
	o := decide(placement, w, from, most, r.Clock.Now(), existing)
	r.expect(placement, o, existing)
	return o
}

// existing are a Placement's decisions, sorted by number.
func (r *Reconciler) existing(ctx context.Context, key types.NamespacedName) ([]*ocmclusterv1beta1.PlacementDecision, error) {
	var all []*ocmclusterv1beta1.PlacementDecision
	for _, name := range r.decisions.objectsOf(key) {
		decision := &ocmclusterv1beta1.PlacementDecision{}
		err := r.Client.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: name}, decision)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading PlacementDecision %s/%s: %w", key.Namespace, name, err)
		}
		all = append(all, decision)
	}
	return all, nil
}

// until is the time until again; 0 if that is zero.
func (r *Reconciler) until(again time.Time) time.Duration {
	if again.IsZero() {
		return 0
	}
	return max(again.Sub(r.Clock.Now()), time.Millisecond)
}

func (r *Reconciler) forget(key types.NamespacedName) {
	r.cache.setParsed(key, nil)
	r.forgetStatus(key)
}

// forgetStatus treats the next event of a Placement's status as a change.
func (r *Reconciler) forgetStatus(key types.NamespacedName) {
	r.statusMu.Lock()
	defer r.statusMu.Unlock()
	delete(r.statuses, key)
}
