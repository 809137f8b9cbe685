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
	// retryFaultsAfter is how often kinds that could not be read are tried again.
	retryFaultsAfter = 10 * time.Second
	// probeTimeout is how long such a try may take.
	probeTimeout = 10 * time.Second
	// probed is how many objects a try lists if no single one is known to be unreadable.
	probed = 100
)

// fault is why a kind perhaps cannot be read.
type fault struct {
	// text is the first answer. Later ones may differ in an address only.
	text string
	// object is one that could not be read; empty if the kind could not be listed.
	object types.NamespacedName
	// confirmed says that a second try failed too. Before, an API server may just be restarting.
	confirmed bool
	// told says that a placement's status depends on it.
	told bool
}

// suspect notes that a kind could not be read. The next retry confirms it or finds that it has
// passed.
func (w *Watcher) suspect(gvr schema.GroupVersionResource, f fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known, is := w.faults[gvr]
	if !is {
		w.faults[gvr] = &f
		return
	}
	known.told = known.told || f.told
	if known.object.Name == "" {
		known.object = f.object // A kind whose list succeeds again may have an object that cannot be read.
	}
}

// retryFaults tries kinds that could not be read. Placements that depend on one that can be read
// now, or that is found to be unreadable, look again and tell it in their status.
func (w *Watcher) retryFaults(ctx context.Context) {
	w.mu.Lock()
	faults := maps.Clone(w.faults)
	w.mu.Unlock()
	for gvr, f := range faults {
		watch := w.watches.Of(gvr)
		if watch == nil || watch.GivenUp() {
			w.passed(gvr, f) // Nobody selects it any more, or the gateway lost the right, which has a reason of its own.
			continue
		}
		if !watch.HasSynced() {
			continue // The watch itself tries again.
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
	if f.told || f.confirmed {
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
	log.FromContext(ctx).Info("Could not read a kind that placements select; those that have objects of it stay as they are until it can be read",
		"resource", gvr.GroupResource().String(), "problem", f.text)
	w.queueInterested(gvr)
}

// probe reads the object that could not be read, or some of the kind.
func (w *Watcher) probe(ctx context.Context, gvr schema.GroupVersionResource, object types.NamespacedName) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	options := metav1.ListOptions{Limit: probed}
	if object.Name != "" {
		options = metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, object.Name).String()}
	}
	_, err := w.client.Resource(gvr).Namespace(object.Namespace).List(ctx, options)
	if apierrors.IsForbidden(err) {
		return nil // A missing right has a reason of its own.
	}
	return err
}
