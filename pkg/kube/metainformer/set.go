// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package metainformer

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

// Options are common to all watches of a Set.
type Options struct {
	// Keep returns the part of an object that stays in memory.
	Keep cache.TransformFunc
	// Indexers may be nil.
	Indexers cache.Indexers
	// Handler handles the events of a watch. The context ends with the watch.
	Handler func(ctx context.Context, resource schema.GroupVersionResource) cache.ResourceEventHandler
	// Failed is called when a list or a watch failed. It is retried, unless the watch is given up.
	// If nil, the error is logged.
	Failed func(ctx context.Context, watch *Watch, reflector *cache.Reflector, err error)
}

// Set is a set of watches. It is safe for concurrent use.
type Set struct {
	client  metadata.Interface
	options Options

	//nolint:containedctx // It is the life of all watches, which start one by one.
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex // guards the following fields, and prevents starts after ctx has ended
	watches map[schema.GroupVersionResource]*Watch
}

// Watch is the watch of one resource, with its objects.
type Watch struct {
	cache.SharedIndexInformer
	// Resource is the watched resource, in all namespaces.
	Resource schema.GroupVersionResource

	stop    context.CancelFunc
	givenUp atomic.Bool
}

// Begin returns an empty Set, whose watches end with ctx. The caller must call End.
func Begin(ctx context.Context, client metadata.Interface, options Options) *Set {
	ctx, cancel := context.WithCancel(ctx)
	return &Set{client: client, options: options, ctx: ctx, cancel: cancel, watches: map[schema.GroupVersionResource]*Watch{}}
}

// End stops all watches and returns when they have stopped. None starts any more.
func (s *Set) End() {
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	s.running.Wait()
}

// Need starts missing watches of these resources and stops all others. It does not wait. Once the
// Set has ended nothing changes, and the error is the context's.
func (s *Set) Need(resources map[schema.GroupVersionResource]struct{}) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ctx.Err(); err != nil {
		return err
	}
	for resource := range s.watches {
		if _, still := resources[resource]; !still {
			s.drop(resource)
		}
	}
	for resource := range resources {
		if s.watches[resource] == nil {
			s.start(resource)
		}
	}
	return nil
}

// Of is the watch of a resource; nil if there is none.
func (s *Set) Of(resource schema.GroupVersionResource) *Watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watches[resource]
}

// GivenUp lists the watches in the Set that were given up.
func (s *Set) GivenUp() []*Watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*Watch
	for _, watch := range s.watches {
		if watch.GivenUp() {
			found = append(found, watch)
		}
	}
	return found
}

// Forget stops a watch, and reports whether it was still in the Set. The next Need of its resource
// starts another.
func (s *Set) Forget(watch *Watch) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watches[watch.Resource] != watch {
		return false
	}
	s.drop(watch.Resource)
	return true
}

// GiveUp stops the watch, which stays in its Set with its objects. It reports whether this was the
// first call.
func (w *Watch) GiveUp() bool {
	w.stop()
	return !w.givenUp.Swap(true)
}

// GivenUp is true if the watch was given up, or is not in its Set any more.
func (w *Watch) GivenUp() bool { return w.givenUp.Load() }

// drop is called with mu held.
func (s *Set) drop(resource schema.GroupVersionResource) {
	s.watches[resource].GiveUp()
	delete(s.watches, resource)
}

// start is called with mu held. Setting up an informer fails only when it already runs.
func (s *Set) start(resource schema.GroupVersionResource) {
	ctx, stop := context.WithCancel(s.ctx)
	informer := metadatainformer.NewFilteredMetadataInformer(s.client, resource, metav1.NamespaceAll, 0, s.indexers(), nil).Informer()
	watch := &Watch{SharedIndexInformer: informer, Resource: resource, stop: stop}
	_ = informer.SetTransform(s.options.Keep)
	_, _ = informer.AddEventHandler(s.options.Handler(ctx, resource))
	if failed := s.options.Failed; failed != nil {
		_ = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) { failed(ctx, watch, r, err) })
	}
	s.watches[resource] = watch
	s.running.Go(func() { informer.RunWithContext(ctx) })
}

func (s *Set) indexers() cache.Indexers {
	indexers := cache.Indexers{} // not shared: an informer adds to its own
	maps.Copy(indexers, s.options.Indexers)
	return indexers
}
