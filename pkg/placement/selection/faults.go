// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// retryFaultsAfter is the interval at which unreadable kinds are retried.
	retryFaultsAfter = 10 * time.Second
	// probeTimeout limits one retry.
	probeTimeout = 10 * time.Second
	// probed is the number of objects that a retry lists if no single object is known to be unreadable.
	probed = 100
)

// fault is the reason why a kind is perhaps unreadable.
type fault struct {
	// text is the first error. Later ones may differ only in an address.
	text string
	// object is the unreadable object; empty if the kind could not be listed.
	object types.NamespacedName
	// confirmed is true if a second attempt failed too. Until then, an API server may just be
	// restarting.
	confirmed bool
	// reported is true if a placement's status depends on the fault.
	reported bool
}

// suspect records that a kind could not be read. The next retry confirms or removes the fault.
func (w *Watcher) suspect(gvr schema.GroupVersionResource, f fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known, is := w.faults[gvr]
	if !is {
		w.faults[gvr] = &f
		return
	}
	known.reported = known.reported || f.reported
	if known.object.Name == "" {
		known.object = f.object // A kind that can be listed again may still have an unreadable object.
	}
}

// retryFaults retries unreadable kinds. It queues the placements that depend on a kind which is
// readable again, or whose fault is confirmed, so that their status reports it.
func (w *Watcher) retryFaults(ctx context.Context) {
	w.mu.Lock()
	faults := maps.Clone(w.faults)
	w.mu.Unlock()
	for gvr, f := range faults {
		watch := w.watches.Of(gvr)
		if watch == nil || watch.GivenUp() {
			w.passed(gvr, f) // Nobody selects it any more, or the gateway lost the right, which is reported separately.
			continue
		}
		if !watch.HasSynced() {
			continue // The watch retries by itself.
		}
		switch err := w.probe(ctx, gvr, f.object); {
		case err == nil:
			w.passed(gvr, f)
		case OfTheKind(err):
			w.confirm(ctx, gvr, f)
		}
	}
}

func (w *Watcher) passed(gvr schema.GroupVersionResource, f *fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.faults[gvr] == f {
		delete(w.faults, gvr)
	}
	if f.reported || f.confirmed {
		w.queueInterested(gvr)
	}
}

func (w *Watcher) confirm(ctx context.Context, gvr schema.GroupVersionResource, f *fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f.confirmed {
		return
	}
	f.confirmed = true
	log.FromContext(ctx).Info("Could not read a kind that placements select; placements with its objects do not change until it can be read",
		"resource", gvr.GroupResource().String(), "problem", f.text)
	w.queueInterested(gvr)
}

// probe reads the unreadable object, or some objects of the kind.
func (w *Watcher) probe(ctx context.Context, gvr schema.GroupVersionResource, object types.NamespacedName) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	options := metav1.ListOptions{Limit: probed}
	if object.Name != "" {
		options = metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, object.Name).String()}
	}
	_, err := w.client.Resource(gvr).Namespace(object.Namespace).List(ctx, options)
	if apierrors.IsForbidden(err) {
		return nil // A missing right is reported separately.
	}
	return err
}
